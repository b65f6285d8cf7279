// JPEG files of many kinds, made here by libjpeg-turbo, read and written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "pipeline/image_reader.h"
#include "pipeline/image_writer.h"
#include "tests/pipeline/codec_test.h"
#include "tests/pipeline/jpeg_files.h"

namespace tessera {
namespace {

using JpegReading = CodecTest;
using JpegWriting = CodecTest;

struct JpegSpec {
  J_COLOR_SPACE in, file;
  bool adobe = false;
  bool progressive = false;
  int sampling = 1;
};

void WriteJpeg(const std::filesystem::path& path, const JpegSpec& spec, int width, int height,
               const std::vector<JSAMPLE>& pixel) {
  const Picture picture(
      {.width = width, .height = height, .channels = static_cast<int>(pixel.size())});
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      std::copy(pixel.begin(), pixel.end(),
                picture.Row<JSAMPLE>(y) + x * static_cast<std::int64_t>(pixel.size()));
  WriteJpegFile(path, picture, spec.in, [&](jpeg_compress_struct& jpeg) {
    jpeg_set_colorspace(&jpeg, spec.file);
    jpeg_set_quality(&jpeg, 100, TRUE);
    jpeg.write_Adobe_marker = spec.adobe ? TRUE : FALSE;
    jpeg.comp_info[0].h_samp_factor = jpeg.comp_info[0].v_samp_factor = spec.sampling;
    if (spec.progressive) jpeg_simple_progression(&jpeg);
  });
}

void ExpectColour(const Picture& picture, std::array<int, 3> rgb) {
  ASSERT_EQ(picture.format().channels, 3);
  for (std::int64_t y = 0; y < picture.height(); ++y) {
    for (std::int64_t x = 0; x < picture.width(); ++x) {
      for (int c = 0; c < 3; ++c) {
        ASSERT_NEAR(Sample(picture, x, y, c), rgb[static_cast<std::size_t>(c)], 2);
      }
    }
  }
}

TEST_F(JpegReading, InkBecomesColour) {
  // 20 % cyan, no magenta, all yellow, half black.
  const std::vector<JSAMPLE> ink{51, 0, 255, 128}, inverted{204, 255, 0, 127};
  const std::array<int, 3> rgb{102, 127, 0};
  WriteJpeg(folder_ / "cmyk", {JCS_CMYK, JCS_CMYK}, 20, 9, ink);
  ExpectColour(ReadPicture(folder_ / "cmyk").picture, rgb);
  WriteJpeg(folder_ / "adobe", {JCS_CMYK, JCS_CMYK, true}, 20, 9, inverted);
  ExpectColour(ReadPicture(folder_ / "adobe").picture, rgb);
  WriteJpeg(folder_ / "ycck", {JCS_CMYK, JCS_YCCK, true}, 20, 9, inverted);
  ExpectColour(ReadPicture(folder_ / "ycck").picture, rgb);
}

TEST_F(JpegReading, KindsOfJpeg) {
  for (const bool progressive : {false, true}) {
    for (const int sampling : {1, 2}) {
      WriteJpeg(folder_ / "a", {JCS_RGB, JCS_YCbCr, false, progressive, sampling}, 33, 21,
                {200, 30, 90});
      ExpectColour(ReadPicture(folder_ / "a").picture, {200, 30, 90});
    }
  }
  WriteJpeg(folder_ / "rgb", {JCS_RGB, JCS_RGB, true}, 33, 21, {200, 30, 90});
  ExpectColour(ReadPicture(folder_ / "rgb").picture, {200, 30, 90});
  WriteJpeg(folder_ / "grey", {JCS_GRAYSCALE, JCS_GRAYSCALE}, 33, 21, {66});
  const Picture grey = ReadPicture(folder_ / "grey").picture;
  EXPECT_EQ(grey.format(), (PictureFormat{33, 21, 1, 8}));
  EXPECT_NEAR(Sample(grey, 5, 5, 0), 66, 1);
}

TEST_F(JpegReading, GarbageBetweenMarkersIsAWarning) {
  WriteJpeg(folder_ / "a", {JCS_RGB, JCS_YCbCr}, 16, 16, {10, 20, 30});
  std::string bytes = ReadBytes(folder_ / "a");
  bytes.insert(20, "garbage");  // after the APP0 segment
  WriteBytes(folder_ / "b", bytes);
  const PictureFile file = ReadPicture(folder_ / "b");
  EXPECT_EQ(file.warnings.size(), 1u);
  ExpectColour(file.picture, {10, 20, 30});
}

// An EXIF block with nothing but an orientation, in either byte order.
std::string ExifBlock(char orientation, bool big_endian) {
  const std::string tiff =
      big_endian ? std::string("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0", 19) +
                       orientation + std::string(6, '\0')
                 : std::string("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 18) + orientation +
                       std::string(7, '\0');
  const std::string block = std::string("Exif\0\0", 6) + tiff;
  return std::string("\xFF\xE1\0", 3) + static_cast<char>(block.size() + 2) + block;
}

TEST_F(JpegReading, ExifOrientationTurnsThePicture) {
  Picture picture(PictureFormat{.width = 24, .height = 16, .channels = 1});
  for (std::int64_t y = 0; y < 16; ++y)
    for (std::int64_t x = 0; x < 24; ++x) SetSample(picture, x, y, 0, x < 8 && y < 8 ? 250 : 5);
  WritePicture(folder_ / "a.jpg", ImageFormat::kJpeg, picture);
  const std::string bytes = ReadBytes(folder_ / "a.jpg");
  // Where the bright corner is to be seen: right, bottom.
  const bool at[9][2] = {{},
                         {false, false},
                         {true, false},
                         {true, true},
                         {false, true},
                         {false, false},
                         {true, false},
                         {true, true},
                         {false, true}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    for (const bool big_endian : {false, true}) {
      WriteBytes(folder_ / "b.jpg", bytes.substr(0, 2) +
                                        ExifBlock(static_cast<char>(orientation), big_endian) +
                                        bytes.substr(2));
      const Picture shown = ReadPicture(folder_ / "b.jpg").picture;
      ASSERT_EQ(shown.width(), orientation < 5 ? 24 : 16);
      ASSERT_EQ(shown.height(), orientation < 5 ? 16 : 24);
      for (const bool right : {false, true}) {
        for (const bool bottom : {false, true}) {
          const bool bright = right == at[orientation][0] && bottom == at[orientation][1];
          EXPECT_EQ(Sample(shown, right ? shown.width() - 4 : 3, bottom ? shown.height() - 4 : 3,
                           0) > 128,
                    bright)
              << orientation;
        }
      }
    }
  }
  for (const char nonsense : {'\0', '\x09'}) {
    WriteBytes(folder_ / "b.jpg", bytes.substr(0, 2) + ExifBlock(nonsense, true) + bytes.substr(2));
    EXPECT_TRUE(
        SamePixels(ReadPicture(folder_ / "b.jpg").picture, ReadPicture(folder_ / "a.jpg").picture));
  }
}

TEST_F(JpegWriting, JpegKeepsColourAtFullResolutionAndHeedsQuality) {
  // One-pixel columns of two colours of equal luma: subsampled chroma would mix them.
  Picture picture(PictureFormat{.width = 32, .height = 16});
  for (std::int64_t y = 0; y < 16; ++y) {
    for (std::int64_t x = 0; x < 32; ++x) {
      const std::array<std::uint32_t, 3> rgb = x % 2 ? std::array<std::uint32_t, 3>{200, 60, 90}
                                                     : std::array<std::uint32_t, 3>{60, 130, 94};
      for (int c = 0; c < 3; ++c) SetSample(picture, x, y, c, rgb[static_cast<std::size_t>(c)]);
    }
  }
  WritePicture(folder_ / "a.jpg", ImageFormat::kJpeg, picture);
  const Picture back = ReadPicture(folder_ / "a.jpg").picture;
  EXPECT_GT(Sample(back, 9, 9, 0), Sample(back, 8, 9, 0) + 110);
  const Picture noise = NoisePicture({.width = 64, .height = 64});
  WritePicture(folder_ / "q30.jpg", ImageFormat::kJpeg, noise, {.quality = 30});
  WritePicture(folder_ / "q95.jpg", ImageFormat::kJpeg, noise, {.quality = 95});
  WritePicture(folder_ / "default.jpg", ImageFormat::kJpeg, noise);
  EXPECT_LT(2 * ReadBytes(folder_ / "q30.jpg").size(), ReadBytes(folder_ / "q95.jpg").size());
  EXPECT_EQ(ReadBytes(folder_ / "q95.jpg"), ReadBytes(folder_ / "default.jpg"));
  WritePicture(folder_ / "q30.webp", ImageFormat::kWebp, noise, {.quality = 30});
  WritePicture(folder_ / "default.webp", ImageFormat::kWebp, noise);
  EXPECT_LT(2 * ReadBytes(folder_ / "q30.webp").size(), ReadBytes(folder_ / "default.webp").size());
}

}  // namespace
}  // namespace tessera
