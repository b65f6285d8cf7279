// Folders, patterns and single pictures as sources.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <opencv2/imgcodecs.hpp>

#include "pipeline/image_writer.h"
#include "tests/pipeline/test_pictures.h"
#include "tests/pipeline/video/test_frames.h"
#include "tests/shared_files.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

void WriteNumberedPicture(const std::filesystem::path& path, int number, cv::Size size = {16, 12}) {
  ASSERT_TRUE(cv::imwrite(path.string(), NumberedPixels(number, size)));
}

TEST(PictureFolder, IsInTheOrderOfNumbers) {
  const TemporaryFolder folder;
  const std::vector<std::string> names = {"a2x10.png", "img1.png",  "img01b.png",
                                          "img2.png",  "img10.png", "img010b.png"};
  for (std::size_t i = 0; i < names.size(); ++i)
    WriteNumberedPicture(folder / names[i], static_cast<int>(i));
  const ReadFrames frames = ReadAllFrames(folder.path());
  EXPECT_EQ(frames.names, names);
  EXPECT_EQ(frames.contents, Range(0, 6));
  EXPECT_EQ(frames.numbers, Range(0, 6));
  EXPECT_THAT(frames.seconds, Each(0));
  EXPECT_TRUE(frames.info.pictures);
  EXPECT_FALSE(frames.info.live);
  EXPECT_EQ(frames.info.frames, 6);
  EXPECT_EQ(frames.info.frames_per_second, 0);
}

TEST(PictureFolder, HoldsOtherThingsToo) {
  const TemporaryFolder folder;
  WriteNumberedPicture(folder / "1.png", 0);
  WriteNumberedPicture(folder / "2.bmp", 1);
  WriteNumberedPicture(folder / ".3.png", 2);
  WriteBytes(folder / "boxes.csv", "1,2,3,4\n");
  WriteBytes(folder / "Thumbs.db", "x");
  std::filesystem::create_directory(folder / "0.png");
  EXPECT_THAT(ReadAllFrames(folder.path()).names, ElementsAre("1.png", "2.bmp"));
}

TEST(PictureFolder, WithoutPicturesIsAnError) {
  const TemporaryFolder folder;
  WriteBytes(folder / "boxes.csv", "1,2,3,4\n");
  EXPECT_THAT(SourceError(folder.path()),
              AllOf(StartsWith(folder.path().string()), HasSubstr("holds no pictures")));
}

TEST(PictureFolder, GivesThePartThatIsAskedFor) {
  const TemporaryFolder folder;
  for (int i = 0; i < 10; ++i) WriteNumberedPicture(folder / (std::to_string(i) + ".png"), i);
  for (std::int64_t start = 0; start < 10; ++start) {
    for (const std::int64_t end : {start + 1, start + 2, start + 5, start + 20}) {
      for (const std::int64_t every : {1, 2, 3, 100}) {
        const ReadFrames frames =
            ReadAllFrames(folder.path(), {.start = start, .end = end, .every = every});
        EXPECT_EQ(frames.numbers, Range(start, std::min<std::int64_t>(end, 10), every));
        EXPECT_EQ(frames.contents, frames.numbers);
        EXPECT_EQ(frames.info.frames, frames.numbers.size());
      }
    }
  }
  EXPECT_THAT(SourceError(folder.path(), {.start = 10}), HasSubstr("has 10 frames"));
}

TEST(PictureFolder, SizesMayChange) {
  const TemporaryFolder folder;
  const std::vector<cv::Size> sizes = {{16, 12}, {16, 12}, {7, 30}, {1, 1}, {16, 12}};
  for (std::size_t i = 0; i < sizes.size(); ++i)
    WriteNumberedPicture(folder / (std::to_string(i) + ".png"), static_cast<int>(i), sizes[i]);
  const ReadFrames frames = ReadAllFrames(folder.path());
  EXPECT_EQ(frames.sizes, sizes);
  EXPECT_EQ(frames.contents, Range(0, 5));
}

TEST(PictureFolder, UsesMemoryAgain) {
  const TemporaryFolder folder;
  for (int i = 0; i < 3; ++i) WriteNumberedPicture(folder / (std::to_string(i) + ".png"), i);
  const auto source = OpenFrameSource(folder.path(), {});
  Frame frame;
  ASSERT_TRUE(source->Read(frame));
  const std::uint8_t* const data = frame.pixels.data;
  while (source->Read(frame)) EXPECT_EQ(frame.pixels.data, data);
}

TEST(PictureFolder, EndsWithAnErrorAtADamagedPicture) {
  const TemporaryFolder folder;
  for (int i = 0; i < 5; ++i)
    WriteNumberedPicture(folder / (std::to_string(i) + ".png"), i, {64, 48});
  const std::string whole = ReadBytes(folder / "3.png");
  WriteBytes(folder / "3.png", whole.substr(0, whole.size() / 2));
  const ReadFrames frames = ReadAllFrames(folder.path());
  EXPECT_EQ(frames.contents, Range(0, 3));
  EXPECT_THAT(frames.error, StartsWith((folder / "3.png").string() + ": "));
}

TEST(PicturePattern, StartsAtTheLowestNumberAndEndsAtAGap) {
  const TemporaryFolder folder;
  for (const int i : {7, 8, 9, 10, 11, 13}) {
    char name[30];
    std::snprintf(name, sizeof name, "f%03d.png", i);
    WriteNumberedPicture(folder / name, i);
    std::snprintf(name, sizeof name, "%d.png", i);
    WriteNumberedPicture(folder / name, i);
    std::snprintf(name, sizeof name, "50%%-%4d.png", i);
    WriteNumberedPicture(folder / name, i);
  }
  WriteNumberedPicture(folder / "f6.png", 6);  // not as %03d writes it
  WriteNumberedPicture(folder / "f0006.png", 6);
  WriteNumberedPicture(folder / "06.png", 6);  // not as %d
  WriteNumberedPicture(folder / "-1.png", 6);
  for (const char* pattern : {"f%03d.png", "%d.png", "%i.png", "%u.png", "50%%-%4d.png"}) {
    const ReadFrames frames = ReadAllFrames(folder / pattern);
    EXPECT_EQ(frames.contents, Range(7, 12)) << pattern;
    EXPECT_EQ(frames.numbers, Range(0, 5)) << pattern;
    EXPECT_EQ(frames.names.front().back(), 'g');
    const auto source = OpenFrameSource(folder / pattern, {});
    EXPECT_THAT(source->TakeNotes(), ElementsAre(HasSubstr("after 5 pictures; 1 more")));
  }
  EXPECT_EQ(ReadAllFrames(folder / "%d.png", {.start = 1, .every = 2}).contents,
            (std::vector<std::int64_t>{8, 10}));
}

TEST(PicturePattern, MayHaveZerosOnly) {
  const TemporaryFolder folder;
  WriteNumberedPicture(folder / "000.png", 0);
  WriteNumberedPicture(folder / "001.png", 1);
  EXPECT_EQ(ReadAllFrames(folder / "%03d.png").contents, Range(0, 2));
}

TEST(PicturePattern, HasOneNumber) {
  const TemporaryFolder folder;
  for (const char* pattern :
       {"%s.png", "%d%d.png", "%04d-%04d.png", "%.3d.png", "%ld.png", "%-4d.png", "%+d.png",
        "%99d.png", "%19d.png", "%", "a%.png", "%4", "%1$d.png", "%n%d.png", "%d/a.png", "%%.png"})
    EXPECT_THAT(SourceError(folder / pattern), HasSubstr("number")) << pattern;
  EXPECT_THAT(SourceError(folder / "%d.png"), HasSubstr("no pictures"));
  EXPECT_THAT(SourceError(folder / "no" / "%d.png"), HasSubstr("cannot read the folder"));
}

TEST(PicturePattern, AFileOfThatNameIsTheFile) {
  const TemporaryFolder folder;
  WriteNumberedPicture(folder / "%d.png", 5);
  WriteNumberedPicture(folder / "1.png", 1);
  const ReadFrames frames = ReadAllFrames(folder / "%d.png");
  EXPECT_EQ(frames.contents, (std::vector<std::int64_t>{5}));
  EXPECT_THAT(frames.names, ElementsAre("%d.png"));
}

TEST(PictureSource, EndsWhenItIsStopped) {
  const TemporaryFolder folder;
  for (const char* name : {"0.png", "1.png"}) WriteNumberedPicture(folder / name, 0);
  std::atomic<bool> stop = false;
  const auto source = OpenFrameSource(folder.path(), {.stop = &stop});
  Frame frame;
  EXPECT_TRUE(source->Read(frame));
  stop = true;
  EXPECT_FALSE(source->Read(frame));
}

TEST(SinglePicture, IsASequenceOfOne) {
  const TemporaryFolder folder;
  WriteNumberedPicture(folder / "x.png", 5);
  const ReadFrames frames = ReadAllFrames(folder / "x.png");
  EXPECT_EQ(frames.contents, (std::vector<std::int64_t>{5}));
  EXPECT_THAT(frames.names, ElementsAre("x.png"));
  EXPECT_TRUE(frames.info.pictures);
  EXPECT_EQ(frames.info.frames, 1);
}

// The pixels of a file's only frame.
cv::Mat PixelsOf(const std::filesystem::path& path) {
  const auto source = OpenFrameSource(path, {});
  Frame frame;
  EXPECT_TRUE(source->Read(frame));
  return frame.pixels;
}

TEST(PicturePixels, AreBytesInTheOrderBgr) {
  const TemporaryFolder folder;
  for (const int bit_depth : {8, 16}) {
    for (const int channels : {1, 2, 3, 4}) {
      const Picture picture =
          NoisePicture({.width = 37, .height = 11, .channels = channels, .bit_depth = bit_depth});
      // The ends of the range, and both sides of where 16 bits are rounded up.
      const std::uint32_t corners[] = {0, 127, 128, 129, 254, 255, 0xFF7F, 0xFF80, 0xFFFF};
      for (int i = 0; i < 9; ++i)
        SetSample(picture, i, 0, 0, bit_depth == 8 ? corners[i] & 0xFF : corners[i]);
      WritePicture(folder / "x.png", ImageFormat::kPng, picture);
      const cv::Mat pixels = PixelsOf(folder / "x.png");
      ASSERT_EQ(pixels.size(), cv::Size(37, 11));
      for (int y = 0; y < 11; ++y) {
        for (int x = 0; x < 37; ++x) {
          for (int c = 0; c < 3; ++c) {
            const double sample = Sample(picture, x, y, channels >= 3 ? 2 - c : 0);
            const double want = bit_depth == 8 ? sample : std::round(sample / 257);
            ASSERT_EQ(pixels.at<cv::Vec3b>(y, x)[c], want)
                << bit_depth << " " << channels << " at " << x << " " << y;
          }
        }
      }
    }
  }
}

TEST(PicturePixels, OfPalettesAreLookedUp) {
  const TemporaryFolder folder;
  // A BMP with a palette of 2 colours and 4 bits a pixel: 2 x 1 pixels, the second colour first.
  std::string bmp = "BM";
  const auto put = [&](std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bmp += static_cast<char>(value >> 8 * i & 0xFF);
  };
  for (const std::uint32_t value : {66u, 0u, 62u, 40u, 2u, 1u}) put(value, 4);
  put(1, 2);
  put(4, 2);
  for (const std::uint32_t value : {0u, 4u, 0u, 0u, 2u, 2u, 0x102030u, 0xA0B0C0u, 0x10u})
    put(value, 4);
  WriteBytes(folder / "x.bmp", bmp);
  const cv::Mat pixels = PixelsOf(folder / "x.bmp");
  ASSERT_EQ(pixels.size(), cv::Size(2, 1));
  EXPECT_EQ(pixels.at<cv::Vec3b>(0, 0), cv::Vec3b(0xC0, 0xB0, 0xA0));
  EXPECT_EQ(pixels.at<cv::Vec3b>(0, 1), cv::Vec3b(0x30, 0x20, 0x10));
}

// The reference boxes of the trackers were made from such pixels.
TEST(PicturePixels, OfJpegAreThoseOfOpenCv) {
  const TemporaryFolder folder;
  cv::RNG random(7);
  for (const int type : {CV_8UC1, CV_8UC3}) {
    for (const cv::Size size : {cv::Size(64, 48), cv::Size(61, 43), cv::Size(1, 1)}) {
      for (const int quality : {40, 95}) {
        cv::Mat noise(size, type);
        random.fill(noise, cv::RNG::UNIFORM, 0, 256);
        const std::string file = folder / "x.jpg";
        ASSERT_TRUE(cv::imwrite(file, noise, {cv::IMWRITE_JPEG_QUALITY, quality}));
        const cv::Mat want = cv::imread(file, cv::IMREAD_COLOR);
        EXPECT_EQ(cv::norm(PixelsOf(file), want, cv::NORM_INF), 0) << size << " " << quality;
      }
    }
  }
}

TEST(PicturePixels, OfPublishedSequencesAreThoseOfOpenCv) {
  const auto shared = SharedFolder();
  if (!shared) GTEST_SKIP() << "the shared folder is not there";
  for (const char* sequence : {"car4", "crossing", "dog1"}) {
    const std::filesystem::path folder = *shared / "tracking" / "sequences" / sequence / "frames";
    const auto source = OpenFrameSource(folder, {.every = 50});
    int frames = 0;
    for (Frame frame; source->Read(frame); ++frames) {
      const cv::Mat want = cv::imread((folder / frame.name).string(), cv::IMREAD_COLOR);
      EXPECT_EQ(cv::norm(frame.pixels, want, cv::NORM_INF), 0) << frame.name;
    }
    EXPECT_GT(frames, 1);
  }
}

}  // namespace
}  // namespace tessera
