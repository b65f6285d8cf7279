// PNG files of many kinds, made here by libpng, read and written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <optional>

#include "pipeline/image_reader.h"
#include "pipeline/image_writer.h"
#include "pipeline/png_strip.h"
#include "tests/pipeline/codec_test.h"

namespace tessera {
namespace {

using testing::HasSubstr;

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

using PngReading = CodecTest;
using PngWriting = CodecTest;

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

// Rows of more than a strip's bytes, of about half of them, and of few; noise and slopes, which
// take different filters.
TEST_F(PngWriting, StripsOfAPngJoin) {
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

TEST_F(PngWriting, SlopesMakeSmallPngs) {
  const Picture slope = NoisePicture({.width = 1000, .height = 1000});
  for (std::int64_t y = 0; y < 1000; ++y) {
    for (std::int64_t x = 0; x < 1000; ++x) {
      for (int c = 0; c < 3; ++c) SetSample(slope, x, y, c, static_cast<std::uint32_t>(x + 2 * y));
    }
  }
  WritePicture(folder_ / "a.png", ImageFormat::kPng, slope);
  EXPECT_LT(ReadBytes(folder_ / "a.png").size() * 100, slope.bytes());
}

}  // namespace
}  // namespace tessera
