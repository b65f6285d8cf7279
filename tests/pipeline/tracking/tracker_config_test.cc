// Text files that describe a tracker's network.
#include "pipeline/tracking/tracker_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "ops/error.h"
#include "tests/temporary_folder.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class TrackerConfigFile : public ::testing::Test {
 protected:
  TrackerConfig Read(const std::string& text) {
    WriteBytes(path(), text);
    return ReadTrackerConfig(path());
  }

  // The message without the file's name.
  std::string ErrorOf(const std::string& text) {
    try {
      Read(text);
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_THAT(message, StartsWith(path().string()));
      return message.substr(std::min(message.size(), path().string().size()));
    }
    ADD_FAILURE() << "no error";
    return {};
  }

  std::filesystem::path path() const { return folder_ / "t.cfg"; }

  const TemporaryFolder folder_;
};

TEST_F(TrackerConfigFile, SetsEveryField) {
  const TrackerConfig config = Read(R"(
name = my tracker
template_size = 112
search_size = 224
stride = 8
colours = RGB
mean = 123.5 116.25, 103
deviation = 58.5, 57, 57.25
score = sigmoid
box = log-pixels
template_input = z
search_input = x
class_output = output/cls.1
box_output = output/box.1
context = 0.25
window_influence = 0.125
penalty = 0.0625
rate = 0.75
min_side = 5
lost_below = 0.1
found_above = 0.9
)");
  EXPECT_EQ(config.name, "my tracker");
  EXPECT_EQ(config.template_size, 112);
  EXPECT_EQ(config.search_size, 224);
  EXPECT_EQ(config.stride, 8);
  EXPECT_TRUE(config.pixels.rgb);
  EXPECT_THAT(config.pixels.mean, ElementsAre(123.5f, 116.25f, 103.0f));
  EXPECT_THAT(config.pixels.deviation, ElementsAre(58.5f, 57.0f, 57.25f));
  EXPECT_EQ(config.score, ScoreKind::kSigmoid);
  EXPECT_EQ(config.box, BoxKind::kLogPixels);
  EXPECT_EQ(config.template_input, "z");
  EXPECT_EQ(config.search_input, "x");
  EXPECT_EQ(config.class_output, "output/cls.1");
  EXPECT_EQ(config.box_output, "output/box.1");
  EXPECT_EQ(config.context, 0.25);
  EXPECT_EQ(config.window_influence, 0.125);
  EXPECT_EQ(config.penalty, 0.0625);
  EXPECT_EQ(config.rate, 0.75);
  EXPECT_EQ(config.min_side, 5);
  EXPECT_EQ(config.lost_below, 0.1);
  EXPECT_EQ(config.found_above, 0.9);
}

TEST_F(TrackerConfigFile, LeavesOutWhatIsNotGiven) {
  const TrackerConfig defaults;
  for (const char* text : {"", "\n\n", "# nothing", "  # nothing\r\n\t\r\n"}) {
    const TrackerConfig config = Read(text);
    EXPECT_EQ(config.name, "");
    EXPECT_EQ(config.search_size, defaults.search_size);
    EXPECT_FALSE(config.pixels.rgb);
    EXPECT_EQ(config.pixels.deviation, defaults.pixels.deviation);
    EXPECT_EQ(config.score, ScoreKind::kSoftmax);
    EXPECT_EQ(config.lost_below, defaults.lost_below);
  }
}

TEST_F(TrackerConfigFile, TakesCommentsBlanksAndEveryKindOfLineEnd) {
  const TrackerConfig config = Read(
      "\xEF\xBB\xBF# of Windows\r\nname = a = b \r\n\r\n\tstride=4# close\r\n  rate\t=\t.5  # "
      "half");
  EXPECT_EQ(config.name, "a = b");
  EXPECT_EQ(config.stride, 4);
  EXPECT_EQ(config.rate, 0.5);
}

TEST_F(TrackerConfigFile, KnowsAllKinds) {
  EXPECT_EQ(Read("score = softmax").score, ScoreKind::kSoftmax);
  EXPECT_EQ(Read("score = probability").score, ScoreKind::kProbability);
  EXPECT_EQ(Read("box = pixels").box, BoxKind::kPixels);
  EXPECT_EQ(Read("box = cells").box, BoxKind::kCells);
  EXPECT_FALSE(Read("colours = BGR").pixels.rgb);
}

TEST_F(TrackerConfigFile, ErrorsNameLineKeyAndReason) {
  EXPECT_EQ(ErrorOf("\nname\n"), ":2: want 'key = value', got 'name'");
  EXPECT_EQ(ErrorOf("# a\n\nname = \n"), ":3: name: has no value");
  EXPECT_EQ(ErrorOf("name = # b"), ":1: name: has no value");
  EXPECT_THAT(ErrorOf("size = 3"),
              StartsWith(":1: no key is called 'size' (keys: base, name, template_"));
  EXPECT_THAT(ErrorOf("Name = 3"), StartsWith(":1: no key is called 'Name'"));
  EXPECT_THAT(ErrorOf("= 3"), StartsWith(":1: no key is called ''"));
  EXPECT_EQ(ErrorOf("rate = 0.1\nstride = 8\nrate = 0.1\n"), ":3: 'rate' is given twice");
  EXPECT_EQ(ErrorOf("score = Softmax"),
            ":1: score: 'Softmax' is none of softmax, sigmoid, probability");
  EXPECT_EQ(ErrorOf("box = ltrb"), ":1: box: 'ltrb' is none of pixels, log-pixels, cells");
  EXPECT_EQ(ErrorOf("colours = rgb"), ":1: colours: 'rgb' is none of BGR, RGB");
}

TEST_F(TrackerConfigFile, MayChangeAVersionOfNanoTrack) {
  const TrackerConfig config = Read("base = v2\nlost_below = 0\n"), v2 = NanoTrackConfig(2);
  EXPECT_EQ(config.lost_below, 0);
  EXPECT_EQ(config.found_above, v2.found_above);
  EXPECT_EQ(config.rate, v2.rate);
  EXPECT_EQ(config.name, v2.name);
  EXPECT_EQ(ErrorOf("base = v4"), ":1: base: 'v4' is none of v1, v2, v3");
  EXPECT_EQ(ErrorOf("rate = 0.5\nbase = v2"), ":2: 'base' comes before all others");
  EXPECT_EQ(ErrorOf("base = v1\nbase = v2"), ":2: 'base' comes before all others");
}

TEST_F(TrackerConfigFile, RefusesNumbersThatCannotBe) {
  EXPECT_EQ(ErrorOf("stride = 0"), ":1: stride: '0' is no whole number from 1 to 4096");
  EXPECT_EQ(ErrorOf("rate = 1.5"), ":1: rate: '1.5' is no number from 0 to 1");
  EXPECT_EQ(ErrorOf("penalty = -1"), ":1: penalty: '-1' is no number of at least 0");
  for (const char* size : {"-1", "4097", "16.5", "16 px", "1e2", "99999999999999999999", "0x10"}) {
    for (const char* key : {"template_size", "search_size", "stride"}) {
      EXPECT_THAT(ErrorOf(std::string(key) + " = " + size),
                  HasSubstr("is no whole number from 1 to 4096"));
    }
  }
  for (const char* key : {"window_influence", "rate", "lost_below", "found_above"}) {
    for (const char* value : {"-0.1", "1.01", "nan", "inf", "0,5", "1/2", "a"}) {
      EXPECT_THAT(ErrorOf(std::string(key) + " = " + value), HasSubstr("is no number from 0 to 1"));
    }
  }
  EXPECT_THAT(ErrorOf("context = 11"), HasSubstr("is no number from 0 to 10"));
  EXPECT_THAT(ErrorOf("min_side = 0"), HasSubstr("is no number from 1 to"));
  EXPECT_THAT(ErrorOf("penalty = inf"), HasSubstr("is no number of at least 0"));
}

TEST_F(TrackerConfigFile, RefusesPixelScalingThatCannotBe) {
  EXPECT_EQ(ErrorOf("mean = 1 2"), ":1: mean: '1 2' are fewer than three numbers");
  EXPECT_EQ(ErrorOf("mean = 1, 2, 3, 4"), ":1: mean: '1, 2, 3, 4' are more than three numbers");
  EXPECT_THAT(ErrorOf("mean = 1 2 x"), StartsWith(":1: mean: 'x' is no number"));
  EXPECT_THAT(ErrorOf("mean = 1 2 nan"), StartsWith(":1: mean: 'nan' is no number"));
  EXPECT_THAT(ErrorOf("deviation = 1 0 1"), StartsWith(":1: deviation: '0' is no number"));
  EXPECT_THAT(ErrorOf("deviation = 1 -2 1"), StartsWith(":1: deviation: '-2' is no number"));
  EXPECT_THAT(Read("mean = -1 -2 -3").pixels.mean, ElementsAre(-1, -2, -3));
}

TEST_F(TrackerConfigFile, LimitsOfScoresHaveAnOrder) {
  EXPECT_THAT(ErrorOf("found_above = 0.2\nlost_below = 0.4\n"),
              StartsWith(": lost_below, 0.4, is more than found_above, 0.2"));
  EXPECT_EQ(Read("found_above = 0.6\nlost_below = 0.6").lost_below, 0.6);
}

TEST_F(TrackerConfigFile, OtherFilesAreErrors) {
  EXPECT_EQ(ErrorOf(std::string(5000, 'a')), ":1: the line is too long");
  EXPECT_EQ(ErrorOf(std::string("\b\0\x12\n", 4)).find_first_of("\b\x12\n"), std::string::npos);
  for (const std::filesystem::path& path : {folder_ / "none.cfg", folder_.path()}) {
    try {
      ReadTrackerConfig(path);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), StartsWith(path.string() + ": "));
    }
  }
}

// The file that people start from describes the network that it names.
TEST_F(TrackerConfigFile, TheSampleIsGood) {
  const TrackerConfig config = ReadTrackerConfig(std::filesystem::path(TESSERA_SOURCE_DIR) /
                                                 "samples/tracker-configs/siamese-two-tower.cfg");
  EXPECT_EQ(config.name, "siamese-two-tower");
  EXPECT_EQ(config.template_size, 128);
  EXPECT_EQ(config.search_size, 256);
  EXPECT_EQ(config.score, ScoreKind::kSigmoid);
  EXPECT_TRUE(config.pixels.rgb);
}

}  // namespace
}  // namespace tessera
