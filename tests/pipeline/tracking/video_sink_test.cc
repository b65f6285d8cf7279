// Videos that are written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <opencv2/videoio.hpp>

#include "tests/pipeline/file_size_limit.h"
#include "tests/pipeline/tracking/test_frames.h"
#include "tests/temporary_folder.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct Seen {
  int frames = 0;
  double announced = 0, rate = 0;
  cv::Size size;
};

// As OpenCV sees it by itself.
Seen See(const std::filesystem::path& path) {
  cv::VideoCapture capture(path.string(), cv::CAP_FFMPEG);
  Seen seen{.announced = capture.get(cv::CAP_PROP_FRAME_COUNT),
            .rate = capture.get(cv::CAP_PROP_FPS),
            .size = {}};
  for (cv::Mat pixels; capture.read(pixels); ++seen.frames) seen.size = pixels.size();
  return seen;
}

class VideoKinds : public testing::TestWithParam<const char*> {};

TEST_P(VideoKinds, HaveCountSizeAndRate) {
  const TemporaryFolder folder;
  for (const cv::Size size : {cv::Size(64, 48), cv::Size(63, 47), cv::Size(2, 3)}) {
    for (const double rate : {25.0, 30000.0 / 1001, 24000.0 / 1001, 7.5}) {
      const std::filesystem::path path = folder / (std::string("clip.") + GetParam());
      WriteNumbered(path, 40, {.frames_per_second = rate, .overwrite = true}, size);
      const Seen seen = See(path);
      EXPECT_EQ(seen.frames, 40);
      EXPECT_EQ(seen.announced, 40);
      EXPECT_EQ(seen.size, size);
      EXPECT_NEAR(seen.rate, rate, 1e-9 * rate);
    }
  }
  EXPECT_EQ(folder.NumFiles(), 1u);
}

TEST_P(VideoKinds, KeepPixelsAndOrder) {
  const TemporaryFolder folder;
  for (const cv::Size size : {cv::Size(64, 48), cv::Size(63, 47)}) {
    const std::filesystem::path path = folder / (std::string("clip.") + GetParam());
    WriteNumbered(path, 100, {.overwrite = true}, size);
    EXPECT_EQ(ReadAllFrames(path).contents, Range(0, 100));
  }
}

INSTANTIATE_TEST_SUITE_P(All, VideoKinds,
                         testing::Values("mp4", "m4v", "mov", "mkv", "avi", "webm", "MP4"));

}  // namespace
}  // namespace tessera
