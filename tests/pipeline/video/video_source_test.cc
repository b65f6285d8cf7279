// Video files as sources.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <opencv2/videoio.hpp>
#include <set>
#include <thread>

#include "tests/pipeline/video/remux.h"
#include "tests/pipeline/video/test_frames.h"
#include "tests/temporary_folder.h"

namespace tessera {
namespace {

using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr double kRate = 30000.0 / 1001;

void ExpectEvenTimes(const ReadFrames& frames, double rate) {
  for (std::size_t i = 0; i < frames.seconds.size(); ++i)
    ASSERT_NEAR(frames.seconds[i], static_cast<double>(frames.numbers[i]) / rate, 1e-3) << i;
}

class VideoFiles : public testing::TestWithParam<const char*> {
 protected:
  std::filesystem::path Make(std::int64_t frames) {
    const std::filesystem::path path = folder_ / (std::string("clip.") + GetParam());
    WriteNumbered(path, frames, {.frames_per_second = kRate});
    return path;
  }

  const TemporaryFolder folder_;
};

TEST_P(VideoFiles, HaveNumbersTimesAndRate) {
  const ReadFrames frames = ReadAllFrames(Make(50));
  EXPECT_EQ(frames.error, "");
  EXPECT_EQ(frames.contents, Range(0, 50));
  EXPECT_EQ(frames.numbers, Range(0, 50));
  EXPECT_THAT(frames.names, Each(""));
  ExpectEvenTimes(frames, kRate);
  EXPECT_NEAR(frames.info.frames_per_second, kRate, 1e-6);
  EXPECT_EQ(frames.info.frames, 50);
  EXPECT_FALSE(frames.info.live);
  EXPECT_FALSE(frames.info.pictures);
}

TEST_P(VideoFiles, GiveThePartThatIsAskedFor) {
  const std::filesystem::path path = Make(50);
  for (const std::int64_t start : {0, 1, 17, 49}) {
    for (const std::int64_t end : {start + 1, start + 10, start + 100}) {
      for (const std::int64_t every : {1, 3, 20}) {
        const ReadFrames frames = ReadAllFrames(path, {.start = start, .end = end, .every = every});
        EXPECT_EQ(frames.numbers, Range(start, std::min<std::int64_t>(end, 50), every));
        EXPECT_EQ(frames.contents, frames.numbers);
        EXPECT_EQ(frames.info.frames, frames.numbers.size());
        EXPECT_EQ(frames.error, "");
        ExpectEvenTimes(frames, kRate);
        EXPECT_NEAR(frames.info.frames_per_second, kRate / static_cast<double>(every), 1e-6);
      }
    }
  }
  // It takes its time to get there.
  EXPECT_EQ(ReadAllFrames(path, {.start = 50}).error,
            path.string() + ": has 50 frames; frame 50 is beyond the last");
}

INSTANTIATE_TEST_SUITE_P(All, VideoFiles, testing::Values("mp4", "mov", "mkv", "avi", "webm"));

TEST(VideoSource, EndsWhenItIsStopped) {
  const TemporaryFolder folder;
  WriteNumbered(folder / "clip.avi", 20);
  std::atomic<bool> stop = false;
  const auto source = OpenFrameSource(folder / "clip.avi", {.stop = &stop});
  Frame frame;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(source->Read(frame));
  stop = true;
  EXPECT_FALSE(source->Read(frame));
  // No error of those that an end like this would be.
  const ReadFrames none = ReadAllFrames(folder / "clip.avi", {.start = 50, .stop = &stop});
  EXPECT_EQ(none.numbers, Range(0, 0));
  EXPECT_EQ(none.error, "");
}

TEST(VideoSource, UsesMemoryAgain) {
  const TemporaryFolder folder;
  WriteNumbered(folder / "clip.avi", 5);
  const auto source = OpenFrameSource(folder / "clip.avi", {});
  Frame frame;
  ASSERT_TRUE(source->Read(frame));
  const std::uint8_t* const data = frame.pixels.data;
  while (source->Read(frame)) EXPECT_EQ(frame.pixels.data, data);
  EXPECT_FALSE(source->Read(frame));
}

TEST(VideoSource, FileNamesMayBeAnything) {
  const TemporaryFolder folder;
  for (const char* name :
       {"a:b.avi", "-i.avi", "50%.avi", "%d.avi", "größe 图.avi", "7", "x.png?"}) {
    WriteNumbered(folder / "clip.avi", 3, {.overwrite = true});
    std::filesystem::rename(folder / "clip.avi", folder / name);
    EXPECT_EQ(ReadAllFrames(folder / name).contents, Range(0, 3)) << name;
  }
}

// The size is right, but half of it never came: a download that was broken off.
TEST(VideoSource, TellsWhereDecodingEnds) {
  const TemporaryFolder folder;
  WriteNumbered(folder / "clip.mkv", 100);
  Remux(folder / "clip.mkv", folder / "clip.mp4", {.format_options = "movflags=faststart"});
  std::string bytes = ReadBytes(folder / "clip.mp4");
  const std::size_t media = bytes.find("mdat") + 4;
  const std::size_t half = (bytes.size() - media) / 2;
  bytes.replace(media + half, std::string::npos, std::string(bytes.size() - media - half, '\0'));
  WriteBytes(folder / "clip.mp4", bytes);
  const ReadFrames frames = ReadAllFrames(folder / "clip.mp4");
  EXPECT_GT(frames.contents.size(), 20u);
  EXPECT_LT(frames.contents.size(), 80u);
  EXPECT_EQ(frames.error,
            StrCat((folder / "clip.mp4").string(), ": is damaged: nothing can be decoded after ",
                   frames.contents.size(), " of 100 frames"));
}

// A part in the middle was never written. What comes after it can be read.
TEST(VideoSource, TellsThatTheMiddleIsMissing) {
  const TemporaryFolder folder;
  for (const char* name : {"clip.mkv", "clip.avi", "clip.webm"}) {
    cv::RNG random(4);
    WriteFrames(folder / name, 150, [&](std::int64_t i) {
      cv::Mat noise(48, 64, CV_8UC3);
      random.fill(noise, cv::RNG::UNIFORM, 0, 10);
      return cv::Mat(NumberedPixels(i) + noise);
    });
    std::string bytes = ReadBytes(folder / name);
    bytes.replace(bytes.size() / 2, bytes.size() / 5, std::string(bytes.size() / 5, '\0'));
    WriteBytes(folder / name, bytes);
    const ReadFrames frames = ReadAllFrames(folder / name);
    EXPECT_LT(frames.contents.size(), 150u) << name;
    EXPECT_THAT(frames.error, StartsWith((folder / name).string() + ": is ")) << name;
  }
}

TEST(VideoSource, PassesOverWhatCannotBeDecoded) {
  const TemporaryFolder folder;
  // Frames that do not need each other.
  cv::VideoWriter writer((folder / "clip.avi").string(), cv::CAP_OPENCV_MJPEG,
                         cv::VideoWriter::fourcc('M', 'J', 'P', 'G'), 25, {64, 48});
  for (int i = 0; i < 50; ++i) writer.write(NumberedPixels(i));
  writer.release();
  Remux(folder / "clip.avi", folder / "damaged.mkv", {.blank = {0, 1, 10, 11, 12, 30}});
  const std::string error =
      (folder / "damaged.mkv").string() + ": is damaged: 4 of 48 frames cannot be decoded";
  const auto without = [](std::vector<std::int64_t> numbers, std::set<std::int64_t> lost) {
    std::erase_if(numbers, [&](std::int64_t number) { return lost.contains(number); });
    return numbers;
  };

  const ReadFrames frames = ReadAllFrames(folder / "damaged.mkv");
  EXPECT_EQ(frames.contents, without(Range(2, 50), {10, 11, 12, 30}));
  EXPECT_EQ(frames.numbers, without(Range(0, 48), {8, 9, 10, 28}));
  ExpectEvenTimes(frames, 25);
  EXPECT_EQ(frames.error, error);

  const ReadFrames third = ReadAllFrames(folder / "damaged.mkv", {.start = 3, .every = 3});
  EXPECT_EQ(third.numbers[2], 11);  // for 9
  EXPECT_EQ(third.numbers[3], 12);
  EXPECT_EQ(third.error, error);
  EXPECT_EQ(ReadAllFrames(folder / "damaged.mkv", {.end = 10}).numbers, Range(0, 8));
  EXPECT_EQ(ReadAllFrames(folder / "damaged.mkv", {.end = 10}).error, "");
}

TEST(VideoSource, MayBeAPipe) {
  const TemporaryFolder folder;
  WriteNumbered(folder / "clip.mkv", 30);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const std::string bytes = ReadBytes(folder / "clip.mkv");
  // What is missing at the end of a pipe cannot be found out.
  for (const std::size_t left_out : {0, 300}) {
    const std::jthread writer(
        [&] { WriteBytes(folder / "pipe", bytes.substr(0, bytes.size() - left_out)); });
    const ReadFrames frames = ReadAllFrames(folder / "pipe", {.start = 2});
    EXPECT_EQ(frames.error, "");
    ASSERT_FALSE(frames.contents.empty());
    EXPECT_EQ(frames.contents[0], 2);
  }
}

TEST(VideoSource, WhatIsNoVideoSaysWhy) {
  const TemporaryFolder folder;
  WriteBytes(folder / "empty.mp4", "");
  WriteBytes(folder / "text.mp4", "These are words, and no video at all.\n");
  WriteNumbered(folder / "whole.mp4", 20);
  const std::string whole = ReadBytes(folder / "whole.mp4");
  WriteBytes(folder / "cut.mp4", whole.substr(0, whole.find("moov") - 10));
  WriteBytes(folder / "cut-index.mp4", whole.substr(0, whole.find("moov") + 200));
  const auto error = [&](const char* name) {
    const std::string message = SourceError(folder / name);
    EXPECT_THAT(message, StartsWith((folder / name).string() + ": "));
    return message;
  };
  EXPECT_THAT(error("empty.mp4"), EndsWith(": the file is empty"));
  EXPECT_THAT(error("text.mp4"), HasSubstr("no video"));
  EXPECT_THAT(error("cut.mp4"), HasSubstr("its index is missing"));
  EXPECT_THAT(error("cut-index.mp4"), HasSubstr("its index is cut off"));
  EXPECT_THAT(error("none.mp4"), HasSubstr("there is no such file or folder"));
}

TEST(VideoSource, OptionsMakeSense) {
  const TemporaryFolder folder;
  WriteNumbered(folder / "clip.avi", 5);
  EXPECT_NE(SourceError(folder / "clip.avi", {.start = -1}), "");
  EXPECT_NE(SourceError(folder / "clip.avi", {.start = 2, .end = 2}), "");
  EXPECT_NE(SourceError(folder / "clip.avi", {.every = 0}), "");
  EXPECT_NE(SourceError(""), "");
}

// What OpenCV counts is more than there is; nothing is missing all the same.
TEST(VideoSource, VariableRateIsNoLoss) {
  const TemporaryFolder folder;
  WriteNumbered(folder / "even.mkv", 60);
  const auto new_time = [](double seconds) { return seconds < 1 ? seconds : 3 * seconds - 2; };
  for (const char* name : {"slower.mkv", "slower.mp4", "slower.mov", "slower.ts"}) {
    Remux(folder / "even.mkv", folder / name, {.new_time = new_time});
    const ReadFrames frames = ReadAllFrames(folder / name);
    EXPECT_EQ(frames.error, "") << name;
    EXPECT_EQ(frames.contents, Range(0, 60)) << name;
    // OpenCV knows no times of the last frames.
    for (std::size_t i = 0; i < 57; ++i)
      EXPECT_NEAR(frames.seconds[i], new_time(static_cast<double>(i) / 25), 2e-3) << name << i;
    EXPECT_TRUE(std::is_sorted(frames.seconds.begin(), frames.seconds.end())) << name;
  }
}

// The file holds frames that are decoded and not shown.
TEST(VideoSource, TrimmingWithoutEncodingIsNoLoss) {
  const TemporaryFolder folder;
  WriteNumbered(folder / "whole.mkv", 60);
  for (const char* name : {"trimmed.mp4", "trimmed.mov"}) {
    Remux(folder / "whole.mkv", folder / name,
          {.new_time = [](double seconds) { return seconds - 1; }});
    cv::VideoCapture capture((folder / name).string(), cv::CAP_FFMPEG);
    EXPECT_EQ(capture.get(cv::CAP_PROP_FRAME_COUNT), 60) << name;
    const ReadFrames frames = ReadAllFrames(folder / name);
    EXPECT_EQ(frames.error, "") << name;
    EXPECT_EQ(frames.contents, Range(25, 60)) << name;
    EXPECT_EQ(frames.numbers, Range(0, 35)) << name;
    ExpectEvenTimes(frames, 25);
  }
}

TEST(VideoSource, StreamsWithoutLengthEndWhereTheyEnd) {
  const TemporaryFolder folder;
  WriteNumbered(folder / "whole.mkv", 60);
  for (const char* name : {"stream.ts", "stream.h264", "stream.flv"}) {
    Remux(folder / "whole.mkv", folder / name, {.format_options = "flvflags=no_duration_filesize"});
    const ReadFrames frames = ReadAllFrames(folder / name);
    EXPECT_EQ(frames.error, "") << name;
    EXPECT_EQ(frames.contents, Range(0, 60)) << name;
    EXPECT_TRUE(std::is_sorted(frames.seconds.begin(), frames.seconds.end())) << name;
    EXPECT_GT(frames.seconds.back(), 1) << name;
  }
}

// As phones write it: the frames lie on their side.
TEST(VideoSource, IsTurnedAsItsMetadataSay) {
  const TemporaryFolder folder;
  const auto sink = OpenFrameSink(folder / "lying.mp4", {});
  cv::Mat pixels(48, 64, CV_8UC3, cv::Scalar(40, 40, 40));
  pixels(cv::Rect(0, 0, 16, 16)).setTo(cv::Scalar(220, 220, 220));  // upper left
  for (int i = 0; i < 5; ++i) sink->Write({.pixels = pixels, .name = {}});
  sink->Close();
  Remux(folder / "lying.mp4", folder / "upright.mp4", {.degrees = -90});
  const auto source = OpenFrameSource(folder / "upright.mp4", {});
  Frame frame;
  ASSERT_TRUE(source->Read(frame));
  ASSERT_EQ(frame.pixels.size(), cv::Size(48, 64));
  EXPECT_GT(frame.pixels.at<cv::Vec3b>(8, 40)[0], 180);  // upper right
  EXPECT_LT(frame.pixels.at<cv::Vec3b>(8, 8)[0], 80);
  EXPECT_LT(frame.pixels.at<cv::Vec3b>(56, 40)[0], 80);
}

TEST(VideoSource, AnimatedGifsAreVideos) {
  const TemporaryFolder folder;
  // An animation of two frames of one pixel: blue, then red.
  const std::string frame("\x21\xF9\x04\x00\x0A\x00\x00\x00\x2C\0\0\0\0\1\0\1\0\0\2", 19);
  const std::string gif = std::string("GIF89a\1\0\1\0\x80\0\0\0\0\xFF\xFF\0\0", 19) + frame +
                          std::string("\2\x44\1\0", 4) + frame + std::string("\2\x4C\1\0;", 5);
  WriteBytes(folder / "x.gif", gif);
  const auto source = OpenFrameSource(folder / "x.gif", {});
  Frame first, second, third;
  ASSERT_TRUE(source->Read(first));
  ASSERT_TRUE(source->Read(second));
  EXPECT_FALSE(source->Read(third));
  EXPECT_EQ(first.pixels.at<cv::Vec3b>(0, 0), cv::Vec3b(255, 0, 0));
  EXPECT_EQ(second.pixels.at<cv::Vec3b>(0, 0), cv::Vec3b(0, 0, 255));
}

TEST(VideoSource, WritesNothingToStderr) {
  const TemporaryFolder folder;
  WriteNumbered(folder / "clip.mkv", 50);
  WriteBytes(folder / "text.mp4", "words");
  const std::string bytes = ReadBytes(folder / "clip.mkv");
  WriteBytes(folder / "cut.mkv", bytes.substr(0, bytes.size() / 2));
  testing::internal::CaptureStderr();
  ReadAllFrames(folder / "cut.mkv");
  SourceError(folder / "text.mp4");
  SourceError("99");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace tessera
