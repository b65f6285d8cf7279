// Video files that end too soon.
#include <gtest/gtest.h>

#include <algorithm>

#include "pipeline/video/file_parts.h"
#include "tests/pipeline/video/remux.h"
#include "tests/pipeline/video/test_frames.h"
#include "tests/temporary_folder.h"

namespace tessera {
namespace {

constexpr std::int64_t kFrames = 100;

class CutVideos : public testing::TestWithParam<const char*> {
 protected:
  // MP4 and MOV begin with their index, as those do that are made for the web.
  CutVideos() {
    if (path_.extension() == ".mp4" || path_.extension() == ".mov") {
      WriteNumbered(folder_ / "other.mkv", kFrames);
      Remux(folder_ / "other.mkv", path_, {.format_options = "movflags=faststart"});
    } else {
      WriteNumbered(path_, kFrames);
    }
    bytes_ = ReadBytes(path_);
  }

  // All that comes of the video's first bytes; if it cannot be opened, only the error.
  ReadFrames ReadCut(std::size_t bytes) const {
    WriteBytes(cut_, bytes_.substr(0, bytes));
    try {
      return ReadAllFrames(cut_);
    } catch (const Error& error) {
      ReadFrames none;
      none.error = error.what();
      return none;
    }
  }

  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / (std::string("clip.") + GetParam());
  const std::filesystem::path cut_ = folder_ / (std::string("cut.") + GetParam());
  std::string bytes_;
};

// Wherever it is cut.
TEST_P(CutVideos, LoseNoFrameSilently) {
  std::vector<std::size_t> cuts;
  for (std::size_t i = 1; i <= 20; ++i) cuts.push_back(bytes_.size() * i / 21);
  // Near the end, where only a frame or two are lost.
  for (std::size_t i = 0; i < 10; ++i) cuts.push_back(bytes_.size() - (std::size_t{1} << i));
  for (const std::size_t cut : cuts) {
    const ReadFrames frames = ReadCut(cut);
    EXPECT_EQ(frames.error != "", std::ssize(frames.contents) < kFrames)
        << cut << " of " << bytes_.size() << " bytes, " << frames.contents.size() << " frames, "
        << frames.error;
  }
  EXPECT_EQ(ReadAllFrames(path_).error, "");
}

TEST_P(CutVideos, SayHowFarTheyGot) {
  for (const std::size_t cut : {bytes_.size() * 6 / 10, bytes_.size() * 8 / 10}) {
    const ReadFrames frames = ReadCut(cut);
    ASSERT_GT(frames.contents.size(), 5u);
    ASSERT_LT(frames.contents.size(), 100u);
    // The last ones may lack what they are predicted from.
    const std::vector<std::int64_t> sound(frames.contents.begin(), frames.contents.end() - 4);
    EXPECT_EQ(sound, Range(0, std::ssize(sound)));
    EXPECT_EQ(frames.error, StrCat(cut_.string(), ": is cut off: it ended after ",
                                   frames.contents.size(), " of 100 frames"));
    // Those who do not want the end do not miss it.
    EXPECT_EQ(ReadAllFrames(cut_, {.end = 5}).error, "");
    // Those who want only the end are told.
    EXPECT_EQ(ReadAllFrames(cut_, {.start = 99}).error, frames.error);
  }
}

INSTANTIATE_TEST_SUITE_P(All, CutVideos, testing::Values("mp4", "mov", "mkv", "avi", "webm"));

// They tell no length, but end in the middle of something.
TEST(CutStreams, AreNoticed) {
  const TemporaryFolder folder;
  WriteNumbered(folder / "other.mkv", kFrames);
  Remux(folder / "other.mkv", folder / "clip.ts");
  const std::string bytes = ReadBytes(folder / "clip.ts");
  ASSERT_EQ(bytes.size() % 188, 0u);
  for (const std::size_t cut : {bytes.size() - 1, bytes.size() / 2 / 188 * 188 + 100}) {
    WriteBytes(folder / "cut.ts", bytes.substr(0, cut));
    const ReadFrames frames = ReadAllFrames(folder / "cut.ts");
    EXPECT_GT(frames.contents.size(), 10u);
    EXPECT_EQ(frames.error, StrCat((folder / "cut.ts").string(), ": is cut off: it ended after ",
                                   frames.contents.size(), " frames"));
  }
  EXPECT_EQ(ReadAllFrames(folder / "clip.ts").error, "");
}

class FileParts : public testing::Test {
 protected:
  bool Ends(const std::string& bytes) const {
    WriteBytes(folder_ / "x", bytes);
    return EndsInsideItsParts(folder_ / "x");
  }

  const TemporaryFolder folder_;
};

std::string Bytes(std::string_view bytes) { return std::string(bytes); }

TEST_F(FileParts, OfAviAreChunks) {
  using std::literals::operator""sv;
  const std::string first = Bytes("RIFF\4\0\0\0AVI "sv), second = Bytes("RIFF\3\0\0\0AVX\0"sv);
  EXPECT_FALSE(Ends(first + second));
  EXPECT_FALSE(Ends(first + second + "something else"));
  EXPECT_TRUE(Ends(first + second.substr(0, 10)));
  EXPECT_TRUE(Ends(first.substr(0, 11)));
  // Written to a pipe.
  EXPECT_FALSE(Ends(Bytes("RIFF\xFF\xFF\xFF\xFFsome"sv)));
  EXPECT_FALSE(Ends(Bytes("RIFF\0\0\0\0some"sv)));
}

TEST_F(FileParts, OfMp4AreBoxes) {
  using std::literals::operator""sv;
  const std::string first = Bytes(
      "\0\0\0\x0C"
      "ftypisom"sv);
  EXPECT_FALSE(Ends(first + Bytes("\0\0\0\x0Amdat12"sv)));
  EXPECT_TRUE(Ends(first + Bytes("\0\0\0\x0Bmdat12"sv)));
  EXPECT_FALSE(Ends(first + Bytes("\0\0\0\0mdat123"sv)));  // to the end
  EXPECT_FALSE(Ends(first + Bytes("\0\0\0\1mdat\0\0\0\0\0\0\0\x11"
                                  "1"sv)));
  EXPECT_TRUE(Ends(first + Bytes("\0\0\0\1mdat\0\0\0\1\0\0\0\x11"
                                 "1"sv)));
  EXPECT_TRUE(Ends(first + Bytes("\0\0\0\1mdat\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"sv)));
  EXPECT_FALSE(Ends(first + Bytes("\0\0\0\7mdat"sv)));  // no box
}

TEST_F(FileParts, OfMatroskaAreElements) {
  using std::literals::operator""sv;
  const std::string first = Bytes(
      "\x1A\x45\xDF\xA3\x82"
      "12"sv);
  EXPECT_FALSE(Ends(first + Bytes("\x18\x53\x80\x67\x01\0\0\0\0\0\0\2"
                                  "12"sv)));
  EXPECT_TRUE(Ends(first + Bytes("\x18\x53\x80\x67\x01\0\0\0\0\0\0\3"
                                 "12"sv)));
  EXPECT_TRUE(Ends(first + Bytes("\x18\x53\x80\x67\x83"
                                 "12"sv)));
  // Of unknown size.
  EXPECT_FALSE(Ends(first + Bytes("\x18\x53\x80\x67\xFF"
                                  "12"sv)));
  EXPECT_FALSE(Ends(first + Bytes("\x18\x53\x80\x67\x01\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
                                  "1"sv)));
  EXPECT_FALSE(Ends(first + Bytes("\0\0\0"sv)));
}

TEST_F(FileParts, OfStreamsAreWhole) {
  std::string packet(188, '\0');
  packet[0] = '\x47';
  const auto lacks = [&](const std::string& bytes) {
    WriteBytes(folder_ / "x", bytes);
    return LacksItsEnd(folder_ / "x");
  };
  EXPECT_FALSE(lacks(packet + packet + packet));
  EXPECT_TRUE(lacks(packet + packet + packet + packet.substr(0, 187)));
  const std::string timed = "time" + packet;
  EXPECT_FALSE(lacks(timed + timed + timed));
  EXPECT_TRUE(lacks(timed + timed + timed + packet));
  EXPECT_FALSE(lacks("GIF89a and so on;"));
  EXPECT_TRUE(lacks("GIF89a and so on"));
  EXPECT_FALSE(lacks("G"));
  EXPECT_FALSE(lacks(""));
  EXPECT_FALSE(LacksItsEnd(folder_ / "none"));
}

TEST_F(FileParts, OfOtherFilesAreUnknown) {
  EXPECT_FALSE(Ends(""));
  EXPECT_FALSE(Ends("RIF"));
  EXPECT_FALSE(Ends("words, and no video at all"));
  EXPECT_FALSE(EndsInsideItsParts(folder_ / "none"));
}

}  // namespace
}  // namespace tessera
