// Cameras and streams that come and go.
#include "pipeline/video/live_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <future>
#include <thread>

#include "tests/pipeline/video/test_frames.h"
#include "tests/temporary_folder.h"

namespace tessera {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

constexpr std::int64_t kNoFrame = -1, kNoPixels = -2;

// A camera that gives frames of these numbers and then no more. For kNoFrame there is nothing to
// grab once, for kNoPixels nothing to retrieve.
class FakeCamera : public cv::VideoCapture {
 public:
  explicit FakeCamera(std::deque<std::int64_t> numbers) : numbers_(std::move(numbers)) {}

  bool isOpened() const override { return true; }
  double get(int property) const override { return property == cv::CAP_PROP_FPS ? 30 : 0; }
  bool grab() override {
    if (numbers_.empty()) return false;
    grabbed_ = numbers_.front();
    numbers_.pop_front();
    return grabbed_ != kNoFrame;
  }
  bool retrieve(cv::OutputArray pixels, int) override {
    if (grabbed_ == kNoPixels) return false;
    NumberedPixels(grabbed_).copyTo(pixels);
    return true;
  }

 private:
  std::deque<std::int64_t> numbers_;
  std::int64_t grabbed_ = 0;
};

// What a camera gives each time that it is opened; empty: it cannot be.
using Openings = std::vector<std::deque<std::int64_t>>;

class FakeSite {
 public:
  explicit FakeSite(Openings openings) : openings_(std::move(openings)) {}

  std::unique_ptr<FrameSource> Open(const SourceOptions& options) {
    return MakeLiveSource(OpenOnce(),
                          {.shown_name = "yard",
                           .open = [this] { return OpenOnce(); },
                           .wait =
                               [this](milliseconds time) {
                                 waits.push_back(time);
                                 waiting();
                               }},
                          options);
  }

  std::function<void()> waiting = [] {};  // what happens meanwhile
  std::vector<milliseconds> waits;

 private:
  std::unique_ptr<cv::VideoCapture> OpenOnce() {
    if (next_ >= openings_.size() || openings_[next_++].empty()) return nullptr;
    return std::make_unique<FakeCamera>(openings_[next_ - 1]);
  }

  Openings openings_;
  std::size_t next_ = 0;
};

TEST(LiveSource, GivesWhatComes) {
  FakeSite site(Openings{{0, 1, 2, 3, 4}});
  const auto source = site.Open({.every = 2});
  EXPECT_TRUE(source->info().live);
  EXPECT_EQ(source->info().frames, std::nullopt);
  EXPECT_EQ(source->info().frames_per_second, 15);
  const ReadFrames frames = ReadAllFrames(*source);
  EXPECT_EQ(frames.contents, Range(0, 5, 2));
  EXPECT_EQ(frames.numbers, Range(0, 5, 2));
  EXPECT_EQ(frames.seconds[0], 0);
  EXPECT_TRUE(std::is_sorted(frames.seconds.begin(), frames.seconds.end()));
  EXPECT_EQ(frames.error, "yard: no frame comes any more");
  EXPECT_THAT(site.waits, IsEmpty());
}

// Streams over a network are damaged now and then.
TEST(LiveSource, PassesOverWhatCannotBeDecoded) {
  FakeSite site(Openings{{kNoFrame, kNoFrame, 1, 2, kNoFrame, 3, kNoFrame}});
  const ReadFrames frames = ReadAllFrames(*site.Open({}));
  EXPECT_EQ(frames.contents, Range(1, 4));
  EXPECT_EQ(frames.numbers, Range(0, 3));
}

TEST(LiveSource, StartsAndEndsWhereItIsTold) {
  FakeSite site(Openings{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}});
  const ReadFrames frames = ReadAllFrames(*site.Open({.start = 2, .end = 8, .every = 3}));
  EXPECT_EQ(frames.contents, Range(2, 8, 3));
  EXPECT_EQ(frames.error, "");
}

TEST(LiveSource, TimesAreThoseOfTheClock) {
  FakeSite site(Openings{{0, 1, 2}});
  const auto source = site.Open({});
  Frame frame;
  ASSERT_TRUE(source->Read(frame));
  std::this_thread::sleep_for(milliseconds(30));
  ASSERT_TRUE(source->Read(frame));
  EXPECT_GE(frame.seconds, 0.03);
  EXPECT_LT(frame.seconds, 10);
}

TEST(LiveSource, IsOpenedAgainWhenFramesStayAway) {
  FakeSite site(Openings{{0, 1, 2}, {}, {3, 4}, {5, kNoPixels, 6}, {7}});
  const auto source = site.Open({.reconnect = 2});
  Frame frame;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(source->Read(frame));
  EXPECT_THAT(source->TakeNotes(), IsEmpty());
  ASSERT_TRUE(source->Read(frame));
  EXPECT_EQ(NumberIn(frame.pixels), 3);
  EXPECT_EQ(frame.number, 3);
  EXPECT_THAT(source->TakeNotes(), ElementsAre(AllOf(StartsWith("yard: "), HasSubstr("(1 of 2)")),
                                               AllOf(StartsWith("yard: "), HasSubstr("(2 of 2)"))));
  const ReadFrames rest = ReadAllFrames(*source);
  EXPECT_EQ(rest.contents, (std::vector<std::int64_t>{4, 5, 7}));
  EXPECT_EQ(rest.numbers, (std::vector<std::int64_t>{4, 5, 6}));
  EXPECT_THAT(rest.error, AllOf(StartsWith("yard: "), HasSubstr("2 times")));
  // A frame that came makes the camera a good one again.
  EXPECT_THAT(site.waits, ElementsAre(milliseconds(250), milliseconds(500), milliseconds(250),
                                      milliseconds(250), milliseconds(250), milliseconds(500)));
}

// Grabbing alone proves nothing.
TEST(LiveSource, IsNotOpenedForEverWithoutPixels) {
  FakeSite site(Openings(20, {kNoPixels, kNoPixels}));
  const ReadFrames frames = ReadAllFrames(*site.Open({.reconnect = 3}));
  EXPECT_THAT(frames.contents, IsEmpty());
  EXPECT_THAT(frames.error, AllOf(StartsWith("yard: "), HasSubstr("3 times")));
  EXPECT_THAT(site.waits, SizeIs(3));
}

TEST(LiveSource, EndsWhenItIsStopped) {
  std::atomic<bool> stop = false;
  FakeSite site(Openings{{0, 1, 2}, {3, 4}});
  site.waiting = [&] { stop = true; };
  const auto source = site.Open({.reconnect = 9, .stop = &stop});
  const ReadFrames frames = ReadAllFrames(*source);
  EXPECT_EQ(frames.contents, Range(0, 3));
  EXPECT_EQ(frames.error, "");
  EXPECT_THAT(site.waits, SizeIs(1));
  Frame frame;
  EXPECT_FALSE(source->Read(frame));
}

TEST(LiveSource, TellsWhatHappensWhileItWaits) {
  std::promise<void> told;
  FakeSite site(Openings{{0}});
  site.waiting = [seen = told.get_future().share()] { seen.wait(); };
  const auto source = site.Open({.reconnect = 1});
  const std::jthread reader([&] { ReadAllFrames(*source); });
  std::vector<std::string> notes;
  while (notes.empty()) {
    notes = source->TakeNotes();
    std::this_thread::sleep_for(milliseconds(1));
  }
  told.set_value();
  EXPECT_THAT(notes, ElementsAre(HasSubstr("(1 of 1)")));
}

TEST(LiveSource, WaitsLongerEachTimeUpToSomeSeconds) {
  FakeSite site(Openings{{0}});
  const ReadFrames frames = ReadAllFrames(*site.Open({.reconnect = 40}));
  EXPECT_EQ(frames.contents, Range(0, 1));
  ASSERT_THAT(site.waits, SizeIs(40));
  EXPECT_TRUE(std::is_sorted(site.waits.begin(), site.waits.end()));
  EXPECT_EQ(site.waits.back(), milliseconds(4000));
}

TEST(LiveSource, ThatCannotBeOpenedAtAllIsAnError) {
  FakeSite site(Openings{{}, {1}});
  EXPECT_THROW(site.Open({.reconnect = 5}), Error);
  EXPECT_THAT(SourceError("99"), StartsWith("camera 99: "));
  EXPECT_THAT(SourceError("http://127.0.0.1:1/x"), StartsWith("http://127.0.0.1:1/x: "));
}

TEST(LiveSource, NumbersThatAreFilesAreFiles) {
  const TemporaryFolder folder;
  WriteNumbered(folder / "clip.avi", 3);
  std::filesystem::rename(folder / "clip.avi", folder / "0");
  const std::filesystem::path old = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const ReadFrames frames = ReadAllFrames("0");
  std::filesystem::current_path(old);
  EXPECT_FALSE(frames.info.live);
  EXPECT_EQ(frames.contents, Range(0, 3));
}

}  // namespace
}  // namespace tessera
