// Videos that are written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <opencv2/imgproc.hpp>

#include "tests/pipeline/file_size_limit.h"
#include "tests/pipeline/video/test_frames.h"
#include "tests/temporary_folder.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class VideoKinds : public testing::TestWithParam<const char*> {
 protected:
  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / (std::string("clip.") + GetParam());
};

TEST_P(VideoKinds, HaveCountSizeAndRate) {
  struct Case {
    cv::Size size;
    double rate;
  };
  for (const auto& [size, rate] : {Case{{64, 48}, 30000.0 / 1001}, Case{{63, 47}, 24000.0 / 1001},
                                   Case{{2, 3}, 25}, Case{{48, 64}, 7.5}}) {
    WriteNumbered(path_, 20, {.frames_per_second = rate, .overwrite = true}, size);
    const VideoContent seen = ReadVideo(path_);
    EXPECT_EQ(seen.frames, 20);
    EXPECT_EQ(seen.announced_frames, 20);
    EXPECT_EQ(seen.size, size);
    EXPECT_NEAR(seen.rate, rate, 1e-9 * rate);
  }
  EXPECT_EQ(folder_.NumFiles(), 1u);
}

TEST_P(VideoKinds, KeepPixelsAndOrder) {
  for (const cv::Size size : {cv::Size(64, 48), cv::Size(63, 47)}) {
    WriteNumbered(path_, 60, {.overwrite = true}, size);
    EXPECT_EQ(ReadAllFrames(path_).contents, Range(0, 60));
  }
}

// Round, colourful and moving: what encoders like less than plain frames.
TEST_P(VideoKinds, LookLikeTheFrames) {
  const auto frame = [](int i) {
    cv::Mat pixels(120, 160, CV_8UC3);
    for (int y = 0; y < pixels.rows; ++y)
      for (int x = 0; x < pixels.cols; ++x)
        pixels.at<cv::Vec3b>(y, x) =
            cv::Vec3b(static_cast<std::uint8_t>(x + 5 * i), static_cast<std::uint8_t>(2 * y),
                      static_cast<std::uint8_t>(200 - x));
    cv::circle(pixels, {30 + 4 * i, 60}, 20, cv::Scalar(20, 20, 230), cv::FILLED);
    return pixels;
  };
  const auto sink = OpenFrameSink(path_, {});
  for (int i = 0; i < 10; ++i) sink->Write({.pixels = frame(i), .name = {}});
  sink->Close();
  const auto source = OpenFrameSource(path_, {});
  Frame seen;
  for (int i = 0; source->Read(seen); ++i) {
    const double error =
        cv::norm(seen.pixels, frame(i), cv::NORM_L1) / static_cast<double>(seen.pixels.total() * 3);
    EXPECT_LT(error, 4) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, VideoKinds,
                         testing::Values("mp4", "m4v", "MOV", "mkv", "avi", "webm"));

TEST(VideoSink, NotesWhatItCannotDoBest) {
  const TemporaryFolder folder;
  const auto notes = [&](cv::Size size) {
    const auto sink = OpenFrameSink(folder / "clip.mp4", {.overwrite = true});
    sink->Write(NumberedFrame(0, size));
    sink->Close();
    return sink->TakeNotes();
  };
  EXPECT_THAT(notes({64, 48}), IsEmpty());
  EXPECT_THAT(notes({64, 47}), ElementsAre(AllOf(HasSubstr("clip.mp4: written as MPEG-4"),
                                                 HasSubstr("no odd sizes like 64x47"))));
}

// HD video is mostly of Rec. 709 (1), and so is what is made of it. AVI has no place for it.
TEST(VideoSink, StatesTheColoursOfItsSource) {
  const TemporaryFolder folder;
  for (const char* name : {"clip.mp4", "clip.mov", "clip.mkv", "clip.webm"}) {
    for (const ColorCoding& colors : {kRec601, ColorCoding{1, 1, 1}, ColorCoding{2, 2, 2}}) {
      WriteNumbered(folder / name, 3, {.colors = colors, .overwrite = true});
      const ReadFrames frames = ReadAllFrames(folder / name);
      EXPECT_EQ(frames.info.colors.primaries, colors.primaries) << name;
      EXPECT_EQ(frames.info.colors.transfer, colors.transfer) << name;
      EXPECT_EQ(frames.info.colors.matrix, colors.matrix) << name;
      EXPECT_EQ(frames.contents, Range(0, 3)) << name;  // converted in one way in any case
    }
  }
}

TEST(VideoSink, ScalesFramesToTheFirstOnesSize) {
  const TemporaryFolder folder;
  const auto sink = OpenFrameSink(folder / "clip.mkv", {});
  const std::vector<cv::Size> sizes = {{64, 48}, {128, 96}, {10, 10}, {1, 1}, {64, 48}};
  for (std::size_t i = 0; i < sizes.size(); ++i)
    sink->Write(NumberedFrame(static_cast<std::int64_t>(i), sizes[i]));
  sink->Close();
  const ReadFrames frames = ReadAllFrames(folder / "clip.mkv");
  EXPECT_EQ(frames.contents, Range(0, 5));
  EXPECT_THAT(frames.sizes, Each(cv::Size(64, 48)));
}

TEST(VideoSink, TakesFramesWithGapsBetweenRows) {
  const TemporaryFolder folder;
  const auto sink = OpenFrameSink(folder / "clip.mp4", {});
  cv::Mat wide(48, 100, CV_8UC3, cv::Scalar::all(0));
  NumberedPixels(77).copyTo(wide.colRange(20, 84));
  sink->Write({.pixels = wide.colRange(20, 84), .name = {}});
  sink->Close();
  EXPECT_EQ(ReadAllFrames(folder / "clip.mp4").contents, Range(77, 78));
}

TEST(VideoSink, IsThereOnlyWhenClosed) {
  const TemporaryFolder folder;
  WriteBytes(folder / "old.mp4", "old");
  {
    const auto sink = OpenFrameSink(folder / "new.mp4", {});
    const auto replacing = OpenFrameSink(folder / "old.mp4", {.overwrite = true});
    for (int i = 0; i < 100; ++i) {
      sink->Write(NumberedFrame(i));
      replacing->Write(NumberedFrame(i));
    }
    EXPECT_FALSE(std::filesystem::exists(folder / "new.mp4"));
    EXPECT_EQ(ReadBytes(folder / "old.mp4"), "old");
  }
  EXPECT_EQ(folder.NumFiles(), 1u);
  EXPECT_EQ(ReadBytes(folder / "old.mp4"), "old");
}

TEST(VideoSink, IsClosedAfterAnyFrame) {
  const TemporaryFolder folder;
  for (const std::int64_t count : {1, 2, 3}) {
    WriteNumbered(folder / "clip.mp4", count, {.overwrite = true});
    EXPECT_EQ(ReadAllFrames(folder / "clip.mp4").contents, Range(0, count));
  }
  EXPECT_THROW(OpenFrameSink(folder / "none.mp4", {})->Close(), Error);
  EXPECT_FALSE(std::filesystem::exists(folder / "none.mp4"));
}

TEST(VideoSink, ReplacesOnlyWhatItMay) {
  const TemporaryFolder folder;
  WriteNumbered(folder / "clip.mp4", 3);
  std::filesystem::create_symlink("clip.mp4", folder / "link.mp4");
  const std::string old = ReadBytes(folder / "clip.mp4");
  for (const char* name : {"clip.mp4", "link.mp4"}) {
    EXPECT_THAT(SinkError(folder / name),
                EndsWith(std::string(name) + ": exists already; --overwrite replaces it"));
    EXPECT_THAT(SinkError(folder / name, {.overwrite = true, .source = folder / "clip.mp4"}),
                EndsWith(std::string(name) + ": is the input"));
  }
  EXPECT_EQ(ReadBytes(folder / "clip.mp4"), old);
  WriteNumbered(folder / "link.mp4", 5, {.overwrite = true, .source = folder / "other.mp4"});
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.mp4"));
  EXPECT_EQ(ReadAllFrames(folder / "clip.mp4").contents, Range(0, 5));
}

TEST(VideoSink, WhatSomebodyElseMakesMeanwhileStays) {
  const TemporaryFolder folder;
  const auto sink = OpenFrameSink(folder / "clip.mp4", {});
  sink->Write(NumberedFrame(0));
  WriteBytes(folder / "clip.mp4", "theirs");
  EXPECT_THROW(sink->Close(), Error);
  EXPECT_EQ(ReadBytes(folder / "clip.mp4"), "theirs");
}

TEST(VideoSink, NoticesWhatTheDiskDoesNotTake) {
  const TemporaryFolder folder;
  for (const char* name : {"clip.mp4", "clip.mkv", "clip.avi", "clip.webm"}) {
    std::string error;
    try {
      const FileSizeLimit full(20000);
      const auto sink = OpenFrameSink(folder / name, {});
      cv::RNG random(3);
      for (int i = 0; i < 60; ++i) {
        Frame frame = NumberedFrame(i);
        random.fill(frame.pixels, cv::RNG::UNIFORM, 0, 256);
        sink->Write(frame);
      }
      sink->Close();
    } catch (const Error& caught) {
      error = caught.what();
    }
    EXPECT_THAT(error, AllOf(StartsWith((folder / name).string()), HasSubstr("File too large")));
  }
  EXPECT_EQ(folder.NumFiles(), 0u);
}

TEST(VideoSink, TellsWhatCannotBeWritten) {
  const TemporaryFolder folder;
  WriteBytes(folder / "file", "x");
  EXPECT_THAT(SinkError(folder / "no" / "clip.mp4"), HasSubstr("clip.mp4: cannot create"));
  EXPECT_THAT(SinkError(folder / "file" / "clip.mp4"), HasSubstr("clip.mp4: cannot create"));
  EXPECT_THAT(SinkError(folder / "clip.wmv"), HasSubstr("known are mp4, m4v, mov, mkv, avi, webm"));
  EXPECT_THAT(SinkError(""), HasSubstr("empty name"));
  for (const double rate : {0.0, -5.0, std::nan("")}) {
    const auto sink = OpenFrameSink(folder / "rate.mp4", {.frames_per_second = rate});
    EXPECT_THROW(sink->Write(NumberedFrame(0)), Error) << rate;
  }
  const auto sink = OpenFrameSink(folder / "large.webm", {});
  EXPECT_THROW(sink->Write({.pixels = cv::Mat(2, 70000, CV_8UC3), .name = {}}), Error);
}

TEST(VideoSink, MayHaveAPercentSignInItsName) {
  const TemporaryFolder folder;
  WriteNumbered(folder / "50%.mp4", 2);
  EXPECT_EQ(ReadAllFrames(folder / "50%.mp4").contents, Range(0, 2));
}

}  // namespace
}  // namespace tessera
