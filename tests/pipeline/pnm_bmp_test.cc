// PNM and BMP files, and what else OpenCV reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>

#include "pipeline/image_reader.h"
#include "pipeline/image_writer.h"
#include "tests/pipeline/codec_test.h"

namespace tessera {
namespace {

using testing::HasSubstr;

using OtherReading = CodecTest;

TEST_F(OtherReading, AbsurdSizesAreErrors) {
  WriteBytes(folder_ / "a.ppm", "P6\n60000 60000\n255\nabc");
  EXPECT_NE(ErrorOf([&] { ReadPicture(folder_ / "a.ppm"); }), "no error");
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
  EXPECT_THAT(ErrorOf([&] { ReadPicture(folder_ / "d.tiff"); }), HasSubstr("not supported"));
}

}  // namespace
}  // namespace tessera
