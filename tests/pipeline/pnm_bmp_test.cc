// PNM and BMP files, and what else OpenCV reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>

#include "pipeline/image_reader.h"
#include "pipeline/image_writer.h"
#include "tests/pipeline/codec_test.h"

namespace tessera {
namespace {

using testing::HasSubstr;

using OtherReading = CodecTest;
using OtherWriting = CodecTest;

TEST_F(OtherReading, ClaimedSizesAreCheckedAgainstTheFile) {
  for (const char kind : {'1', '2', '3', '4', '5', '6'}) {
    const std::string magic = std::string("P") + kind;
    const std::string max = kind == '1' || kind == '4' ? "\n" : "\n255\n";
    const auto error = [&](const std::string& size) {
      WriteBytes(folder_ / "a.ppm", magic + "\n" + size + max + "1 1 1");
      return ErrorOf([&] { OpenImage(folder_ / "a.ppm"); });
    };
    EXPECT_THAT(error("60000 60000"), HasSubstr("claims 60000x60000")) << magic;
    EXPECT_THAT(error("30000 30000"), HasSubstr("ends too soon")) << magic;
    EXPECT_THAT(error("99999999999999999999 1"), HasSubstr("damaged")) << magic;
    EXPECT_THAT(error("-1 1"), HasSubstr("claims -1x1")) << magic;
  }
  for (const int channels : {1, 3}) {
    WritePicture(folder_ / "a.bmp", ImageFormat::kBmp,
                 NoisePicture({.width = 3, .height = 2, .channels = channels}));
    const std::string bytes = ReadBytes(folder_ / "a.bmp");
    const auto error = [&](std::int32_t width, std::int32_t height) {
      std::string damaged = bytes;
      std::memcpy(damaged.data() + 18, &width, 4);
      std::memcpy(damaged.data() + 22, &height, 4);
      WriteBytes(folder_ / "b.bmp", damaged);
      return ErrorOf([&] { OpenImage(folder_ / "b.bmp"); });
    };
    EXPECT_EQ(error(3, -2), "no error");
    EXPECT_THAT(error(60000, 60000), HasSubstr("claims 60000x60000"));
    EXPECT_THAT(error(30000, -30000), HasSubstr("ends too soon"));
    EXPECT_THAT(error(0, 5), HasSubstr("claims 0x5"));
  }
}

TEST_F(OtherReading, KindsOfBmpThatAreNotSupported) {
  WritePicture(folder_ / "a.bmp", ImageFormat::kBmp, NoisePicture({.width = 3, .height = 2}));
  const std::string bytes = ReadBytes(folder_ / "a.bmp");
  const auto error = [&](std::size_t at, char value) {
    std::string changed = bytes;
    changed[at] = value;
    WriteBytes(folder_ / "b.bmp", changed);
    return ErrorOf([&] { OpenImage(folder_ / "b.bmp"); });
  };
  EXPECT_THAT(error(14, 12), HasSubstr("OS/2"));
  EXPECT_THAT(error(30, 1), HasSubstr("compressed"));
  EXPECT_THAT(error(28, 64), HasSubstr("64 bits"));
}

TEST_F(OtherReading, PnmOfAnyMaximum) {
  const struct {
    std::string bytes;
    int bits;
    std::vector<std::uint32_t> samples;
  } files[] = {{std::string("P5\n# 9 9 9\n3 1\n15\n\0\x07\x0F", 22), 8, {0, 119, 255}},
               {std::string("P5 3 1 1023\n\0\0\1\xFF\3\xFF", 18), 16, {0, 32735, 65535}},
               {"P2\n3 1\n15\n0 7 15", 8, {0, 119, 255}},
               {"P2\n3 1\n1023\n0 511 1023", 16, {0, 32735, 65535}},
               {"P2\n3 1 255 1 2 3", 8, {1, 2, 3}},
               {"P1\n3 1\n0 1 0", 8, {255, 0, 255}}};
  for (const auto& file : files) {
    WriteBytes(folder_ / "a", file.bytes);
    const Picture p = ReadPicture(folder_ / "a").picture;
    ASSERT_EQ(p.format(), (PictureFormat{3, 1, 1, file.bits})) << file.bytes;
    for (std::size_t x = 0; x < 3; ++x)
      EXPECT_EQ(Sample(p, static_cast<std::int64_t>(x), 0, 0), file.samples[x]) << file.bytes;
  }
  WriteBytes(folder_ / "a",
             "P7\nWIDTH 1\nHEIGHT 1\nDEPTH 3\nMAXVAL 255\nTUPLTYPE RGB\nENDHDR\nabc");
  EXPECT_THAT(ErrorOf([&] { ReadPicture(folder_ / "a"); }), HasSubstr("PAM"));
}

TEST_F(OtherReading, FormatsOfOpenCv) {
  cv::Mat bgr(7, 9, CV_8UC3), grey16(7, 9, CV_16UC1), bgra16(7, 9, CV_16UC4);
  cv::randu(bgr, 0, 256);
  cv::randu(grey16, 0, 65536);
  cv::randu(bgra16, 0, 65536);
  for (const char* name : {"a.bmp", "a.tiff", "a.ppm"}) {
    cv::imwrite((folder_ / name).string(), bgr);
    const Picture p = ReadPicture(folder_ / name).picture;
    ASSERT_EQ(p.format(), (PictureFormat{9, 7, 3, 8})) << name;
    for (int c = 0; c < 3; ++c) EXPECT_EQ(Sample(p, 4, 5, c), bgr.at<cv::Vec3b>(5, 4)[2 - c]);
  }
  for (const char* name : {"b.tiff", "b.pgm"}) {
    cv::imwrite((folder_ / name).string(), grey16);
    const Picture p = ReadPicture(folder_ / name).picture;
    ASSERT_EQ(p.format(), (PictureFormat{9, 7, 1, 16})) << name;
    EXPECT_EQ(Sample(p, 8, 6, 0), grey16.at<std::uint16_t>(6, 8));
  }
  cv::imwrite((folder_ / "c.tiff").string(), bgra16);
  const Picture p = ReadPicture(folder_ / "c.tiff").picture;
  ASSERT_EQ(p.format(), (PictureFormat{9, 7, 4, 16}));
  for (int c = 0; c < 4; ++c) {
    EXPECT_EQ(Sample(p, 1, 2, c), bgra16.at<cv::Vec4w>(2, 1)[c < 3 ? 2 - c : 3]);
  }
  cv::Mat floats(7, 9, CV_32FC3, cv::Scalar(0.5, 0.5, 0.5));
  cv::imwrite((folder_ / "d.tiff").string(), floats);
  EXPECT_THAT(ErrorOf([&] { ReadPicture(folder_ / "d.tiff"); }), HasSubstr("floating-point"));
}

// What others make of what is written.
TEST_F(OtherWriting, OpenCvReadsTheSame) {
  for (const int channels : {1, 3}) {
    for (const int bits : {8, 16}) {
      // Rows of every length modulo 4.
      for (const std::int64_t width : {1, 2, 3, 4, 37}) {
        const PictureFormat format{
            .width = width, .height = 5, .channels = channels, .bit_depth = bits};
        const Picture picture = NoisePicture(format);
        for (const ImageFormat kind : {ImageFormat::kBmp, ImageFormat::kPnm}) {
          if (HeldFormat(kind, format) != format) continue;
          WritePicture(folder_ / "a", kind, picture);
          const cv::Mat read = cv::imread((folder_ / "a").string(), cv::IMREAD_UNCHANGED);
          ASSERT_EQ(read.cols, width);
          ASSERT_EQ(read.rows, 5);
          ASSERT_EQ(read.channels(), channels);
          for (int y = 0; y < 5; ++y) {
            for (int x = 0; x < width; ++x) {
              for (int c = 0; c < channels; ++c) {
                const int i = x * channels + (channels == 3 ? 2 - c : 0);
                const int value =
                    bits == 8 ? read.ptr<std::uint8_t>(y)[i] : read.ptr<std::uint16_t>(y)[i];
                ASSERT_EQ(static_cast<int>(Sample(picture, x, y, c)), value) << Name(kind);
              }
            }
          }
        }
      }
    }
  }
}

TEST_F(OtherWriting, BmpKeepsTheDensity) {
  WriteOptions options;
  options.metadata.density = Metadata::Density{.x = 11811, .y = 5906};
  WritePicture(folder_ / "a.bmp", ImageFormat::kBmp, NoisePicture({.width = 3, .height = 2}),
               options);
  const auto reader = OpenImage(folder_ / "a.bmp");
  ASSERT_TRUE(reader->metadata().density.has_value());
  EXPECT_EQ(reader->metadata().density->x, 11811);
  EXPECT_EQ(reader->metadata().density->y, 5906);
  WritePicture(folder_ / "b.bmp", ImageFormat::kBmp, NoisePicture({.width = 3, .height = 2}));
  EXPECT_FALSE(OpenImage(folder_ / "b.bmp")->metadata().density.has_value());
}

}  // namespace
}  // namespace tessera
