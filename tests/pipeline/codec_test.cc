// Files of many kinds, made here through the codecs' own libraries, read and written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>
#include <unistd.h>
//
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>

#include "ops/error.h"
#include "pipeline/image_reader.h"
#include "pipeline/image_writer.h"
#include "pipeline/png_strip.h"
#include "tests/pipeline/test_pictures.h"

namespace tessera {
namespace {

using testing::HasSubstr;

// The message of the Error that f() throws, or "no error".
template <typename F>
std::string ErrorOf(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

struct PngSpec {
  int width, height, bit_depth, colour_type;
  bool interlaced = false;
  std::vector<png_color> palette = {};
  std::vector<png_byte> palette_alpha = {};
  std::optional<png_color_16> transparent = std::nullopt;
};

// Rows are packed as PNG has them: big-endian, narrow samples side by side.
void WritePng(const std::filesystem::path& path, const PngSpec& spec,
              std::vector<std::vector<png_byte>> rows) {
  FILE* file = std::fopen(path.c_str(), "wb");
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_init_io(png, file);
  png_set_IHDR(png, info, static_cast<png_uint_32>(spec.width),
               static_cast<png_uint_32>(spec.height), spec.bit_depth, spec.colour_type,
               spec.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!spec.palette.empty()) {
    png_set_PLTE(png, info, spec.palette.data(), static_cast<int>(spec.palette.size()));
  }
  if (!spec.palette_alpha.empty()) {
    png_set_tRNS(png, info, spec.palette_alpha.data(), static_cast<int>(spec.palette_alpha.size()),
                 nullptr);
  }
  if (spec.transparent) png_set_tRNS(png, info, nullptr, 0, &*spec.transparent);
  png_write_info(png, info);
  std::vector<png_bytep> pointers;
  for (auto& row : rows) pointers.push_back(row.data());
  png_write_image(png, pointers.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  std::fclose(file);
}

// The checksum of PNG chunks.
std::uint32_t Crc32(const std::string& bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
  }
  return ~crc;
}

class CodecTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
};

using PngReading = CodecTest;
using JpegReading = CodecTest;
using OtherReading = CodecTest;
using Writing = CodecTest;

TEST_F(PngReading, NarrowGreyIsWidened) {
  WritePng(folder_ / "a", {4, 1, 1, PNG_COLOR_TYPE_GRAY}, {{0b01010000}});
  WritePng(folder_ / "b", {4, 1, 2, PNG_COLOR_TYPE_GRAY}, {{0b00011011}});
  WritePng(folder_ / "c", {2, 1, 4, PNG_COLOR_TYPE_GRAY}, {{0x3F}});
  const Picture a = ReadPicture(folder_ / "a").picture;
  EXPECT_EQ(a.format(), (PictureFormat{4, 1, 1, 8}));
  EXPECT_EQ(Sample(a, 0, 0, 0), 0u);
  EXPECT_EQ(Sample(a, 1, 0, 0), 255u);
  const Picture b = ReadPicture(folder_ / "b").picture;
  EXPECT_EQ(Sample(b, 1, 0, 0), 85u);
  EXPECT_EQ(Sample(b, 2, 0, 0), 170u);
  const Picture c = ReadPicture(folder_ / "c").picture;
  EXPECT_EQ(Sample(c, 0, 0, 0), 51u);
  EXPECT_EQ(Sample(c, 1, 0, 0), 255u);
}

TEST_F(PngReading, SixteenBitsInEveryColourType) {
  const int types[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                       PNG_COLOR_TYPE_RGB_ALPHA};
  for (int channels = 1; channels <= 4; ++channels) {
    std::vector<png_byte> row;
    for (int i = 0; i < 2 * channels; ++i) {
      row.push_back(static_cast<png_byte>(0x10 + i));
      row.push_back(static_cast<png_byte>(0xA0 + i));
    }
    WritePng(folder_ / "p", {2, 1, 16, types[channels - 1]}, {row});
    const Picture p = ReadPicture(folder_ / "p").picture;
    ASSERT_EQ(p.format(), (PictureFormat{2, 1, channels, 16}));
    for (int i = 0; i < 2 * channels; ++i) {
      EXPECT_EQ(p.Row<std::uint16_t>(0)[i], (0x10 + i) * 256 + 0xA0 + i);
    }
  }
}

TEST_F(PngReading, PalettesAreLookedUp) {
  PngSpec spec{3, 1, 8, PNG_COLOR_TYPE_PALETTE};
  spec.palette = {{1, 2, 3}, {40, 50, 60}, {255, 0, 128}};
  WritePng(folder_ / "opaque", spec, {{2, 0, 1}});
  const Picture opaque = ReadPicture(folder_ / "opaque").picture;
  EXPECT_EQ(opaque.format(), (PictureFormat{3, 1, 3, 8}));
  EXPECT_EQ(Sample(opaque, 0, 0, 0), 255u);
  EXPECT_EQ(Sample(opaque, 2, 0, 2), 60u);

  spec.palette_alpha = {0, 77};  // the third is opaque
  WritePng(folder_ / "alpha", spec, {{2, 0, 1}});
  const Picture alpha = ReadPicture(folder_ / "alpha").picture;
  EXPECT_EQ(alpha.format(), (PictureFormat{3, 1, 4, 8}));
  EXPECT_EQ(Sample(alpha, 0, 0, 3), 255u);
  EXPECT_EQ(Sample(alpha, 1, 0, 3), 0u);
  EXPECT_EQ(Sample(alpha, 2, 0, 3), 77u);
  EXPECT_EQ(Sample(alpha, 2, 0, 1), 50u);
}

TEST_F(PngReading, TransparentColoursBecomeAlpha) {
  PngSpec grey{2, 1, 8, PNG_COLOR_TYPE_GRAY};
  grey.transparent = png_color_16{.index = 0, .red = 0, .green = 0, .blue = 0, .gray = 9};
  WritePng(folder_ / "grey", grey, {{9, 10}});
  const Picture g = ReadPicture(folder_ / "grey").picture;
  EXPECT_EQ(g.format(), (PictureFormat{2, 1, 2, 8}));
  EXPECT_EQ(Sample(g, 0, 0, 1), 0u);
  EXPECT_EQ(Sample(g, 1, 0, 1), 255u);
  PngSpec rgb{2, 1, 8, PNG_COLOR_TYPE_RGB};
  rgb.transparent = png_color_16{.index = 0, .red = 1, .green = 2, .blue = 3, .gray = 0};
  WritePng(folder_ / "rgb", rgb, {{1, 2, 3, 1, 2, 4}});
  const Picture c = ReadPicture(folder_ / "rgb").picture;
  EXPECT_EQ(c.format(), (PictureFormat{2, 1, 4, 8}));
  EXPECT_EQ(Sample(c, 0, 0, 3), 0u);
  EXPECT_EQ(Sample(c, 1, 0, 3), 255u);
}

TEST_F(PngReading, InterlacedIsTheSamePicture) {
  std::vector<std::vector<png_byte>> rows(13, std::vector<png_byte>(17 * 3));
  for (std::size_t y = 0; y < rows.size(); ++y) {
    for (std::size_t i = 0; i < rows[y].size(); ++i) {
      rows[y][i] = static_cast<png_byte>(y * 50 + i);
    }
  }
  PngSpec spec{17, 13, 8, PNG_COLOR_TYPE_RGB};
  WritePng(folder_ / "plain", spec, rows);
  spec.interlaced = true;
  WritePng(folder_ / "interlaced", spec, rows);
  const Picture plain = ReadPicture(folder_ / "plain").picture;
  EXPECT_TRUE(SamePixels(ReadPicture(folder_ / "interlaced").picture, plain));
  EXPECT_EQ(Sample(plain, 16, 12, 2), rows[12][50]);
}

// Every cut of a file is an error, in each of these formats, with one line that names the file.
TEST_F(CodecTest, TruncatedFilesAreErrors) {
  testing::internal::CaptureStderr();
  const Picture picture = NoisePicture({.width = 40, .height = 30});
  const struct {
    const char* name;
    ImageFormat format;
  } kinds[] = {{"a.png", ImageFormat::kPng},   {"a.jpg", ImageFormat::kJpeg},
               {"a.webp", ImageFormat::kWebp}, {"a.tif", ImageFormat::kTiff},
               {"a.bmp", ImageFormat::kBmp},   {"a.ppm", ImageFormat::kPnm}};
  for (const auto& kind : kinds) {
    WritePicture(folder_ / kind.name, kind.format, picture);
    const std::string bytes = ReadBytes(folder_ / kind.name);
    for (const double part : {0.0, 0.001, 0.005, 0.02, 0.3, 0.7, 0.95}) {
      const auto size = static_cast<std::size_t>(part * static_cast<double>(bytes.size()));
      WriteBytes(folder_ / "cut", bytes.substr(0, size));
      const std::string message = ErrorOf([&] { ReadPicture(folder_ / "cut"); });
      EXPECT_THAT(message, HasSubstr("/cut: ")) << kind.name << " cut to " << size << " bytes";
      EXPECT_EQ(message.find('\n'), std::string::npos);
    }
  }
  // The libraries themselves are silent.
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(PngReading, DamageIsAnError) {
  WritePicture(folder_ / "a.png", ImageFormat::kPng, NoisePicture({.width = 60, .height = 60}));
  std::string bytes = ReadBytes(folder_ / "a.png");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x55);
  WriteBytes(folder_ / "b.png", bytes);
  EXPECT_THAT(ErrorOf([&] { ReadPicture(folder_ / "b.png"); }), HasSubstr("b.png: "));
}

TEST_F(PngReading, AbsurdSizesAreRefusedAtOnce) {
  WritePng(folder_ / "a.png", {2, 2, 8, PNG_COLOR_TYPE_GRAY}, {{0, 0}, {0, 0}});
  std::string bytes = ReadBytes(folder_ / "a.png");
  // Width and height of the IHDR chunk, and its checksum.
  const std::array<unsigned char, 8> size{0, 0, 0xEA, 0x60, 0, 0, 0xEA, 0x60};  // 60000x60000
  std::copy(size.begin(), size.end(), bytes.begin() + 16);
  const std::uint32_t crc = Crc32(bytes.substr(12, 17));
  for (int i = 0; i < 4; ++i) {
    bytes[static_cast<std::size_t>(29 + i)] = static_cast<char>(crc >> (24 - 8 * i));
  }
  WriteBytes(folder_ / "b.png", bytes);
  EXPECT_THAT(ErrorOf([&] { ReadPicture(folder_ / "b.png"); }), HasSubstr("claims 60000x60000"));
}

TEST_F(OtherReading, AbsurdSizesAreErrors) {
  WriteBytes(folder_ / "a.ppm", "P6\n60000 60000\n255\nabc");
  EXPECT_NE(ErrorOf([&] { ReadPicture(folder_ / "a.ppm"); }), "no error");
}

TEST_F(CodecTest, ContentDecidesNotTheName) {
  const Picture picture = NoisePicture({.width = 20, .height = 10});
  WritePicture(folder_ / "a.png", ImageFormat::kPng, picture);
  for (const char* name : {"b.jpg", "c.txt", "d", "e.bmp"}) {
    std::filesystem::copy(folder_ / "a.png", folder_ / name);
    EXPECT_TRUE(SamePixels(ReadPicture(folder_ / name).picture, picture));
  }
}

TEST_F(CodecTest, WhatIsNoPictureIsSaidToBeNone) {
  WriteBytes(folder_ / "empty.png", "");
  EXPECT_THAT(ErrorOf([&] { ReadPicture(folder_ / "empty.png"); }), HasSubstr("empty"));
  WriteBytes(folder_ / "text.png", "This is no picture at all, though its name says it is.\n");
  EXPECT_THAT(ErrorOf([&] { ReadPicture(folder_ / "text.png"); }), HasSubstr("text.png: "));
  EXPECT_THAT(ErrorOf([&] { ReadPicture(folder_ / "missing.png"); }),
              HasSubstr("No such file or directory"));
  EXPECT_THAT(ErrorOf([&] { ReadPicture(folder_.path()); }), HasSubstr("Is a directory"));
  if (::geteuid() != 0) {
    WriteBytes(folder_ / "secret.png", "x");
    std::filesystem::permissions(folder_ / "secret.png", std::filesystem::perms::none);
    EXPECT_THAT(ErrorOf([&] { ReadPicture(folder_ / "secret.png"); }),
                HasSubstr("Permission denied"));
  }
}

struct JpegSpec {
  J_COLOR_SPACE in, file;
  bool adobe = false;
  bool progressive = false;
  int sampling = 1;
};

void WriteJpeg(const std::filesystem::path& path, const JpegSpec& spec, int width, int height,
               const std::vector<JSAMPLE>& pixel) {
  FILE* out = std::fopen(path.c_str(), "wb");
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  jpeg_stdio_dest(&jpeg, out);
  jpeg.image_width = static_cast<JDIMENSION>(width);
  jpeg.image_height = static_cast<JDIMENSION>(height);
  jpeg.input_components = static_cast<int>(pixel.size());
  jpeg.in_color_space = spec.in;
  jpeg_set_defaults(&jpeg);
  jpeg_set_colorspace(&jpeg, spec.file);
  jpeg_set_quality(&jpeg, 100, TRUE);
  jpeg.write_Adobe_marker = spec.adobe ? TRUE : FALSE;
  jpeg.comp_info[0].h_samp_factor = jpeg.comp_info[0].v_samp_factor = spec.sampling;
  if (spec.progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  std::vector<JSAMPLE> row;
  for (int x = 0; x < width; ++x) row.insert(row.end(), pixel.begin(), pixel.end());
  JSAMPROW rows[] = {row.data()};
  for (int y = 0; y < height; ++y) jpeg_write_scanlines(&jpeg, rows, 1);
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::fclose(out);
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

// One strip of one pixel. TIFF 6.0 calls alpha that colours are not multiplied by unassociated.
std::string TiffPixel(const std::string& pixel, int photometric, int extra_samples) {
  const auto number = [](std::size_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * i & 0xFF);
    return text;
  };
  const std::size_t bits_at = 8 + 2 + 11 * 12 + 4, pixel_at = bits_at + 8;
  const std::size_t bits = pixel.size() <= 2 ? 0x80008 : bits_at;
  std::string tiff = "II*" + std::string(1, '\0') + number(8, 4) + number(11, 2);
  const std::size_t entries[11][3] = {{256, 1, 1},
                                      {257, 1, 1},
                                      {258, pixel.size(), bits},
                                      {259, 1, 1},
                                      {262, 1, static_cast<std::size_t>(photometric)},
                                      {273, 1, pixel_at},
                                      {277, 1, pixel.size()},
                                      {278, 1, 1},
                                      {279, 1, pixel.size()},
                                      {284, 1, 1},
                                      {338, 1, static_cast<std::size_t>(extra_samples)}};
  for (const auto& [tag, count, value] : entries)
    tiff += number(tag, 2) + number(3, 2) + number(count, 4) + number(value, 4);
  return tiff + number(0, 4) + number(8, 2) + number(8, 2) + number(8, 2) + number(8, 2) + pixel;
}

TEST_F(OtherReading, TiffAlphaIsNotPremultiplied) {
  const struct {
    std::string stored;
    int extra_samples;
  } files[] = {{"\xC8\x64\x32\x80", 2}, {"\x64\x32\x19\x80", 1}};
  for (const auto& file : files) {
    WriteBytes(folder_ / "a", TiffPixel(file.stored, 2, file.extra_samples));
    const Picture p = ReadPicture(folder_ / "a").picture;
    ASSERT_EQ(p.format(), (PictureFormat{1, 1, 4, 8}));
    EXPECT_NEAR(Sample(p, 0, 0, 0), 200, 1);
    EXPECT_NEAR(Sample(p, 0, 0, 1), 100, 1);
    EXPECT_NEAR(Sample(p, 0, 0, 2), 50, 1);
    EXPECT_EQ(Sample(p, 0, 0, 3), 128u);
  }
  WriteBytes(folder_ / "a", TiffPixel("\x64\x80", 1, 2));
  EXPECT_EQ(ReadPicture(folder_ / "a").warnings.size(), 1u);
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

// What a format holds comes back as it was; the lossy ones come close.
TEST_F(Writing, EveryFormatRoundTrips) {
  const struct {
    const char* name;
    ImageFormat format;
  } kinds[] = {{"a.png", ImageFormat::kPng},   {"a.jpg", ImageFormat::kJpeg},
               {"a.webp", ImageFormat::kWebp}, {"a.tif", ImageFormat::kTiff},
               {"a.bmp", ImageFormat::kBmp},   {"a.pnm", ImageFormat::kPnm}};
  for (const auto& kind : kinds) {
    for (const int channels : {1, 2, 3, 4}) {
      for (const int bits : {8, 16}) {
        const PictureFormat wanted{
            .width = 37, .height = 21, .channels = channels, .bit_depth = bits};
        const PictureFormat held = HeldFormat(kind.format, wanted);
        const Picture picture = NoisePicture(held);
        WritePicture(folder_ / kind.name, kind.format, picture);
        const Picture back = ReadPicture(folder_ / kind.name).picture;
        ASSERT_EQ(back.format(), held) << kind.name;
        if (kind.format != ImageFormat::kJpeg) {
          // Lossless WebP may change colours that cannot be seen.
          for (std::int64_t y = 0; y < 21; ++y) {
            for (std::int64_t x = 0; x < 37; ++x) {
              const int last = held.channels - 1;
              ASSERT_EQ(Sample(back, x, y, last), Sample(picture, x, y, last));
              if (held.HasAlpha() && Sample(picture, x, y, last) == 0) continue;
              for (int c = 0; c < last; ++c) {
                ASSERT_EQ(Sample(back, x, y, c), Sample(picture, x, y, c)) << kind.name;
              }
            }
          }
        }
        if (held != wanted) {
          EXPECT_THAT(
              ErrorOf([&] { WritePicture(folder_ / "x", kind.format, NoisePicture(wanted)); }),
              HasSubstr("cannot hold"));
        }
      }
    }
  }
}

TEST_F(Writing, JpegKeepsColourAtFullResolutionAndHeedsQuality) {
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

TEST_F(Writing, SizesThatAFormatCannotHoldAreRefused) {
  const Picture wide = NoisePicture({.width = 16384, .height = 1});
  EXPECT_THAT(ErrorOf([&] { WritePicture(folder_ / "a.webp", ImageFormat::kWebp, wide); }),
              HasSubstr("16384x1"));
  EXPECT_EQ(folder_.NumFiles(), 0u);
}

// Rows of more than a strip's bytes, of about half of them, and of few; noise and slopes, which
// take different filters.
TEST_F(Writing, StripsOfAPngJoin) {
  for (const int channels : {1, 2, 3, 4}) {
    for (const int bits : {8, 16}) {
      for (const std::int64_t width : {300000, 150000 / channels, 257}) {
        PictureFormat format{.width = width, .height = 0, .channels = channels, .bit_depth = bits};
        const std::int64_t rows = PngStripRows(format);
        for (const std::int64_t height : {rows - 1, rows, rows + 1, 2 * rows + 1}) {
          if (height == 0 || width * height > 1000000) continue;
          format.height = height;
          const Picture picture = NoisePicture(format);
          for (std::int64_t y = 0; y < height / 2; ++y) {
            for (std::int64_t x = 0; x < width; ++x) {
              for (int c = 0; c < channels; ++c) {
                SetSample(picture, x, y, c, static_cast<std::uint32_t>(x / 4 + 3 * y + c));
              }
            }
          }
          SCOPED_TRACE(testing::Message() << width << "x" << height << ", " << channels
                                          << " channels of " << bits << " bits");
          WritePicture(folder_ / "a.png", ImageFormat::kPng, picture);
          const PictureFile read = ReadPicture(folder_ / "a.png");
          EXPECT_TRUE(SamePixels(read.picture, picture));
          EXPECT_THAT(read.warnings, testing::IsEmpty());
        }
      }
    }
  }
}

TEST_F(Writing, SlopesMakeSmallPngs) {
  const Picture slope = NoisePicture({.width = 1000, .height = 1000});
  for (std::int64_t y = 0; y < 1000; ++y) {
    for (std::int64_t x = 0; x < 1000; ++x) {
      for (int c = 0; c < 3; ++c) SetSample(slope, x, y, c, static_cast<std::uint32_t>(x + 2 * y));
    }
  }
  WritePicture(folder_ / "a.png", ImageFormat::kPng, slope);
  EXPECT_LT(ReadBytes(folder_ / "a.png").size() * 100, slope.bytes());
}

TEST_F(Writing, AFullDiskIsAnError) {
  FILE* full = std::fopen("/dev/full", "wb");
  if (full == nullptr) GTEST_SKIP() << "there is no /dev/full";
  for (const ImageFormat format : {ImageFormat::kPng, ImageFormat::kJpeg, ImageFormat::kTiff}) {
    const Picture picture = NoisePicture({.width = 300, .height = 300});
    EXPECT_NE(ErrorOf([&] {
                const auto writer = MakeImageWriter(format, picture.format(), {}, full);
                const std::int64_t rows = StripRows(format, picture.format());
                for (std::int64_t y = 0; y < 300; y += rows) {
                  const std::int64_t end = std::min<std::int64_t>(300, y + rows);
                  writer->WriteStrip(picture, y, end, writer->PackStrip(picture, y, end));
                }
                writer->Finish();
                Require(std::fflush(full) == 0, "full");
              }),
              "no error");
  }
  std::fclose(full);
}

}  // namespace
}  // namespace tessera
