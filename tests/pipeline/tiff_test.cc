// TIFF files of many kinds, made here by libtiff, read and written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tiffio.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "pipeline/image_reader.h"
#include "tests/pipeline/codec_test.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using TiffReading = CodecTest;

struct TiffSpec {
  std::uint32_t width, height;
  int bits, samples, photometric;
  int planar = PLANARCONFIG_CONTIG, compression = COMPRESSION_NONE;
  std::uint32_t rows_per_strip = 5, tile = 0;  // tile > 0: of that size
  std::vector<std::uint16_t> extra_samples = {};
  std::function<void(TIFF*)> more_tags = [](TIFF*) {};
  const char* mode = "w";
};

// Samples side by side from the highest bit on; 16-bit ones in the machine's byte order.
std::vector<std::uint8_t> Packed(const std::vector<std::uint32_t>& samples, int bits) {
  std::vector<std::uint8_t> bytes;
  if (bits == 16) {
    for (const std::uint32_t sample : samples) {
      const auto value = static_cast<std::uint16_t>(sample);
      const auto* from = reinterpret_cast<const std::uint8_t*>(&value);
      bytes.insert(bytes.end(), from, from + 2);
    }
    return bytes;
  }
  std::uint32_t held = 0;
  int held_bits = 0;
  for (const std::uint32_t sample : samples) {
    held = held << bits | sample;
    for (held_bits += bits; held_bits >= 8; held_bits -= 8)
      bytes.push_back(static_cast<std::uint8_t>(held >> (held_bits - 8)));
  }
  if (held_bits > 0) bytes.push_back(static_cast<std::uint8_t>(held << (8 - held_bits)));
  return bytes;
}

// `samples` are interleaved, row by row, however the file has them.
void WriteTiff(const std::filesystem::path& path, const TiffSpec& spec,
               const std::vector<std::uint32_t>& samples) {
  TIFF* tiff = TIFFOpen(path.c_str(), spec.mode);
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, spec.width);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, spec.height);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, spec.bits);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, spec.samples);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, spec.photometric);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, spec.planar);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, spec.compression);
  if (!spec.extra_samples.empty()) {
    TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, static_cast<int>(spec.extra_samples.size()),
                 spec.extra_samples.data());
  }
  if (spec.tile > 0) {
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, spec.tile);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, spec.tile);
  } else {
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, spec.rows_per_strip);
  }
  spec.more_tags(tiff);

  const bool separate = spec.planar == PLANARCONFIG_SEPARATE;
  const auto all = static_cast<std::uint32_t>(spec.samples);
  for (std::uint32_t plane = 0; plane < (separate ? all : 1); ++plane) {
    // One block of a strip or tile; beyond the picture: zero.
    const auto block = [&](std::uint32_t x0, std::uint32_t y0, std::uint32_t w, std::uint32_t h) {
      std::vector<std::uint8_t> bytes;
      for (std::uint32_t y = y0; y < y0 + h; ++y) {
        std::vector<std::uint32_t> row;
        for (std::uint32_t x = x0; x < x0 + w; ++x) {
          for (std::uint32_t s = 0; s < all; ++s) {
            if (separate && s != plane) continue;
            const bool inside = x < spec.width && y < spec.height;
            row.push_back(inside ? samples.at((y * spec.width + x) * all + s) : 0);
          }
        }
        const std::vector<std::uint8_t> packed = Packed(row, spec.bits);
        bytes.insert(bytes.end(), packed.begin(), packed.end());
      }
      return bytes;
    };
    const std::uint32_t step_y = spec.tile > 0 ? spec.tile : spec.rows_per_strip;
    const std::uint32_t step_x = spec.tile > 0 ? spec.tile : spec.width;
    for (std::uint32_t y = 0; y < spec.height; y += step_y) {
      for (std::uint32_t x = 0; x < spec.width; x += step_x) {
        const auto p = static_cast<std::uint16_t>(plane);
        if (spec.tile > 0) {
          auto bytes = block(x, y, step_x, step_y);
          TIFFWriteEncodedTile(tiff, TIFFComputeTile(tiff, x, y, 0, p), bytes.data(),
                               static_cast<tmsize_t>(bytes.size()));
        } else {
          auto bytes = block(x, y, step_x, std::min(step_y, spec.height - y));
          TIFFWriteEncodedStrip(tiff, TIFFComputeStrip(tiff, y, p), bytes.data(),
                                static_cast<tmsize_t>(bytes.size()));
        }
      }
    }
  }
  TIFFClose(tiff);
}

std::vector<std::uint32_t> SamplesOf(const Picture& picture) {
  std::vector<std::uint32_t> samples;
  for (std::int64_t y = 0; y < picture.height(); ++y)
    for (std::int64_t x = 0; x < picture.width(); ++x)
      for (int c = 0; c < picture.format().channels; ++c)
        samples.push_back(Sample(picture, x, y, c));
  return samples;
}

TEST_F(TiffReading, EveryLayoutIsTheSamePicture) {
  for (const int channels : {1, 2, 3, 4}) {
    for (const int bits : {8, 16}) {
      const Picture picture =
          NoisePicture({.width = 37, .height = 21, .channels = channels, .bit_depth = bits});
      const bool alpha = picture.format().HasAlpha();
      for (const int planar : {PLANARCONFIG_CONTIG, PLANARCONFIG_SEPARATE}) {
        for (const int compression :
             {COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE, COMPRESSION_PACKBITS}) {
          for (const std::uint32_t tile : {0u, 16u}) {
            // Little-endian, big-endian, BigTIFF.
            for (const char* mode : {"wl", "wb", "w8"}) {
              TiffSpec spec{.width = 37,
                            .height = 21,
                            .bits = bits,
                            .samples = channels,
                            .photometric = channels < 3 ? PHOTOMETRIC_MINISBLACK : PHOTOMETRIC_RGB,
                            .planar = planar,
                            .compression = compression,
                            .tile = tile,
                            .mode = mode};
              if (alpha) spec.extra_samples = {EXTRASAMPLE_UNASSALPHA};
              WriteTiff(folder_ / "a", spec, SamplesOf(picture));
              const PictureFile read = ReadPicture(folder_ / "a");
              ASSERT_TRUE(SamePixels(read.picture, picture))
                  << channels << " channels, " << bits << " bits, planar " << planar
                  << ", compression " << compression << ", tile " << tile << ", " << mode;
              ASSERT_THAT(read.warnings, testing::IsEmpty());
            }
          }
        }
      }
    }
  }
}

TEST_F(TiffReading, NarrowAndOddDepthsAreWidened) {
  for (const int bits : {1, 2, 4, 6, 12}) {
    const std::uint32_t max = (1u << bits) - 1;
    for (const bool white_is_zero : {false, true}) {
      WriteTiff(folder_ / "a",
                {.width = 5,
                 .height = 2,
                 .bits = bits,
                 .samples = 1,
                 .photometric = white_is_zero ? PHOTOMETRIC_MINISWHITE : PHOTOMETRIC_MINISBLACK},
                {0, max, 0, max / 2, max, max, 0, 0, 1, 0});
      const Picture p = ReadPicture(folder_ / "a").picture;
      ASSERT_EQ(p.format(), (PictureFormat{5, 2, 1, bits <= 8 ? 8 : 16}));
      const auto full = static_cast<std::uint32_t>(p.format().MaxValue());
      const auto level = [&](std::uint32_t stored) {
        const auto value =
            static_cast<std::uint32_t>(std::lround(static_cast<double>(stored) * full / max));
        return white_is_zero ? full - value : value;
      };
      EXPECT_EQ(Sample(p, 0, 0, 0), level(0));
      EXPECT_EQ(Sample(p, 1, 0, 0), level(max));
      EXPECT_EQ(Sample(p, 3, 0, 0), level(max / 2));
      EXPECT_EQ(Sample(p, 0, 1, 0), level(max));
      EXPECT_EQ(Sample(p, 3, 1, 0), level(1));
    }
  }
}

TEST_F(TiffReading, PalettesAreLookedUp) {
  for (const int bits : {1, 4, 8}) {
    for (const int unit : {1, 257}) {  // 8-bit entries, as some write them, or 16-bit ones
      std::vector<std::uint16_t> red(1u << bits), green(1u << bits), blue(1u << bits);
      red[1] = static_cast<std::uint16_t>(200 * unit);
      green[1] = static_cast<std::uint16_t>(100 * unit);
      blue[0] = static_cast<std::uint16_t>(50 * unit);
      WriteTiff(folder_ / "a",
                {.width = 3,
                 .height = 1,
                 .bits = bits,
                 .samples = 1,
                 .photometric = PHOTOMETRIC_PALETTE,
                 .more_tags =
                     [&](TIFF* tiff) {
                       TIFFSetField(tiff, TIFFTAG_COLORMAP, red.data(), green.data(), blue.data());
                     }},
                {0, 1, 0});
      const Picture p = ReadPicture(folder_ / "a").picture;
      ASSERT_EQ(p.format(), (PictureFormat{3, 1, 3, 8}));
      EXPECT_THAT(SamplesOf(p), ElementsAre(0, 0, 50, 200, 100, 0, 0, 0, 50));
    }
  }
}

TEST_F(TiffReading, AlphaIsNotPremultiplied) {
  for (const int bits : {8, 16}) {
    const std::uint32_t unit = bits == 8 ? 1 : 257;
    const TiffSpec rgba{.width = 2,
                        .height = 1,
                        .bits = bits,
                        .samples = 4,
                        .photometric = PHOTOMETRIC_RGB,
                        .extra_samples = {EXTRASAMPLE_ASSOCALPHA}};
    // The second pixel is brighter than its alpha allows.
    WriteTiff(folder_ / "a", rgba,
              {100 * unit, 50 * unit, 25 * unit, 128 * unit, 9 * unit, 0, 5 * unit, 6 * unit});
    const Picture p = ReadPicture(folder_ / "a").picture;
    ASSERT_EQ(p.format(), (PictureFormat{2, 1, 4, bits}));
    EXPECT_NEAR(Sample(p, 0, 0, 0), 199.2 * unit, 0.6 * unit);
    EXPECT_NEAR(Sample(p, 0, 0, 2), 49.8 * unit, 0.6 * unit);
    EXPECT_EQ(Sample(p, 0, 0, 3), 128u * unit);
    EXPECT_EQ(Sample(p, 1, 0, 0), 255u * unit);

    const TiffSpec grey{.width = 1,
                        .height = 1,
                        .bits = bits,
                        .samples = 2,
                        .photometric = PHOTOMETRIC_MINISBLACK,
                        .extra_samples = {EXTRASAMPLE_ASSOCALPHA}};
    WriteTiff(folder_ / "g", grey, {60 * unit, 120 * unit});
    const Picture g = ReadPicture(folder_ / "g").picture;
    ASSERT_EQ(g.format(), (PictureFormat{1, 1, 2, bits}));
    EXPECT_NEAR(Sample(g, 0, 0, 0), 127.5 * unit, 0.6 * unit);
  }
}

TEST_F(TiffReading, ExtraSamplesThatAreNoAlphaAreLeftOut) {
  WriteTiff(
      folder_ / "a",
      {.width = 1,
       .height = 1,
       .bits = 8,
       .samples = 6,
       .photometric = PHOTOMETRIC_RGB,
       .extra_samples = {EXTRASAMPLE_UNSPECIFIED, EXTRASAMPLE_UNASSALPHA, EXTRASAMPLE_UNSPECIFIED}},
      {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(SamplesOf(ReadPicture(folder_ / "a").picture), ElementsAre(1, 2, 3, 5));
  WriteTiff(folder_ / "b",
            {.width = 1,
             .height = 1,
             .bits = 8,
             .samples = 5,
             .photometric = PHOTOMETRIC_RGB,
             .extra_samples = {EXTRASAMPLE_UNSPECIFIED, EXTRASAMPLE_UNSPECIFIED}},
            {1, 2, 3, 4, 5});
  EXPECT_THAT(SamplesOf(ReadPicture(folder_ / "b").picture), ElementsAre(1, 2, 3));
}

TEST_F(TiffReading, InkBecomesColour) {
  // 20 % cyan, no magenta, all yellow, half black.
  for (const int planar : {PLANARCONFIG_CONTIG, PLANARCONFIG_SEPARATE}) {
    for (const int bits : {8, 16}) {
      const std::uint32_t unit = bits == 8 ? 1 : 257;
      WriteTiff(
          folder_ / "a",
          {.width = 1,
           .height = 1,
           .bits = bits,
           .samples = 4,
           .photometric = PHOTOMETRIC_SEPARATED,
           .planar = planar,
           .more_tags = [](TIFF* tiff) { TIFFSetField(tiff, TIFFTAG_ICCPROFILE, 4, "cmyk"); }},
          {51 * unit, 0, 255 * unit, 128 * unit});
      const auto reader = OpenImage(folder_ / "a");
      // It is no profile of what comes out.
      EXPECT_EQ(reader->metadata().icc, "");
      EXPECT_EQ(reader->warnings().size(), 1u);
      const Picture p = ReadAll(*reader);
      ASSERT_EQ(p.format(), (PictureFormat{1, 1, 3, bits}));
      EXPECT_NEAR(Sample(p, 0, 0, 0), 102 * unit, unit);
      EXPECT_NEAR(Sample(p, 0, 0, 1), 127 * unit, unit);
      EXPECT_EQ(Sample(p, 0, 0, 2), 0u);
    }
  }
}

TEST_F(TiffReading, YCbCrBecomesRgb) {
  std::vector<std::uint32_t> flat;
  for (int i = 0; i < 32 * 16; ++i) flat.insert(flat.end(), {200, 30, 90});
  const TiffSpec jpeg{.width = 32,
                      .height = 16,
                      .bits = 8,
                      .samples = 3,
                      .photometric = PHOTOMETRIC_YCBCR,
                      .compression = COMPRESSION_JPEG,
                      .rows_per_strip = 16,
                      .more_tags = [](TIFF* tiff) {
                        TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
                        TIFFSetField(tiff, TIFFTAG_JPEGQUALITY, 100);
                      }};
  TiffSpec tiled = jpeg;
  tiled.tile = 16;
  for (const TiffSpec& spec : {jpeg, tiled}) {
    WriteTiff(folder_ / "a", spec, flat);
    const Picture p = ReadPicture(folder_ / "a").picture;
    ASSERT_EQ(p.format(), (PictureFormat{32, 16, 3, 8}));
    EXPECT_NEAR(Sample(p, 31, 15, 0), 200, 2);
    EXPECT_NEAR(Sample(p, 31, 15, 1), 30, 2);
    EXPECT_NEAR(Sample(p, 31, 15, 2), 90, 2);
  }
  // Not as JPEG: Y, Cb, Cr of the same colour.
  WriteTiff(folder_ / "b",
            {.width = 2,
             .height = 1,
             .bits = 8,
             .samples = 3,
             .photometric = PHOTOMETRIC_YCBCR,
             .more_tags = [](TIFF* tiff) { TIFFSetField(tiff, TIFFTAG_YCBCRSUBSAMPLING, 1, 1); }},
            {88, 129, 208, 255, 128, 128});
  const Picture p = ReadPicture(folder_ / "b").picture;
  ASSERT_EQ(p.format(), (PictureFormat{2, 1, 3, 8}));
  EXPECT_NEAR(Sample(p, 0, 0, 0), 200, 2);
  EXPECT_NEAR(Sample(p, 0, 0, 1), 30, 2);
  EXPECT_NEAR(Sample(p, 0, 0, 2), 90, 2);
  EXPECT_EQ(Sample(p, 1, 0, 0), 255u);
}

TEST_F(TiffReading, OrientationIsApplied) {
  const Picture stored = NoisePicture({.width = 7, .height = 4, .channels = 1});
  for (int orientation = 1; orientation <= 8; ++orientation) {
    WriteTiff(
        folder_ / "a",
        {.width = 7,
         .height = 4,
         .bits = 8,
         .samples = 1,
         .photometric = PHOTOMETRIC_MINISBLACK,
         .more_tags = [&](TIFF* tiff) { TIFFSetField(tiff, TIFFTAG_ORIENTATION, orientation); }},
        SamplesOf(stored));
    EXPECT_TRUE(SamePixels(ReadPicture(folder_ / "a").picture, Oriented(stored, orientation)));
  }
}

TEST_F(TiffReading, OfSeveralPagesTheFirstIsUsed) {
  TiffSpec page{
      .width = 2, .height = 1, .bits = 8, .samples = 1, .photometric = PHOTOMETRIC_MINISBLACK};
  WriteTiff(folder_ / "a", page, {10, 20});
  EXPECT_THAT(ReadPicture(folder_ / "a").warnings, testing::IsEmpty());
  page.mode = "a";
  WriteTiff(folder_ / "a", page, {30, 40});
  const PictureFile file = ReadPicture(folder_ / "a");
  EXPECT_THAT(SamplesOf(file.picture), ElementsAre(10, 20));
  EXPECT_THAT(file.warnings, ElementsAre(HasSubstr("first")));
}

TEST_F(TiffReading, WhatIsNotSupportedIsSaid) {
  const auto error = [&](const TiffSpec& spec) {
    WriteTiff(folder_ / "a", spec, std::vector<std::uint32_t>(64));
    return ErrorOf([&] { ReadPicture(folder_ / "a"); });
  };
  const TiffSpec grey16{
      .width = 2, .height = 1, .bits = 16, .samples = 1, .photometric = PHOTOMETRIC_MINISBLACK};
  TiffSpec spec = grey16;
  spec.more_tags = [](TIFF* tiff) {
    TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_IEEEFP);
  };
  EXPECT_THAT(error(spec), HasSubstr("floating-point"));
  spec.more_tags = [](TIFF* tiff) { TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_INT); };
  EXPECT_THAT(error(spec), HasSubstr("unsigned"));
  spec = grey16;
  spec.photometric = PHOTOMETRIC_SEPARATED;
  EXPECT_THAT(error(spec), HasSubstr("its colours take 4"));
  spec = grey16;
  spec.photometric = PHOTOMETRIC_CFA;
  EXPECT_THAT(error(spec), HasSubstr("PhotometricInterpretation"));
  spec = grey16;
  spec.samples = 3;
  spec.photometric = PHOTOMETRIC_CIELAB;
  EXPECT_THAT(error(spec), HasSubstr("CIELAB"));
}

TEST_F(TiffReading, ClaimedSizesAreCheckedAgainstTheFile) {
  const TiffSpec spec{
      .width = 2, .height = 1, .bits = 8, .samples = 1, .photometric = PHOTOMETRIC_MINISBLACK};
  WriteTiff(folder_ / "a", spec, {1, 2});
  const std::string bytes = ReadBytes(folder_ / "a");
  // ImageWidth and ImageLength, in the first two entries of the directory.
  const auto with_size = [&](std::uint32_t size) {
    std::string damaged = bytes;
    std::uint32_t directory = 0;
    std::memcpy(&directory, bytes.data() + 4, 4);
    for (const std::uint32_t entry : {directory + 2, directory + 14}) {
      const std::uint16_t type = TIFF_LONG;
      std::memcpy(damaged.data() + entry + 2, &type, 2);
      std::memcpy(damaged.data() + entry + 8, &size, 4);
    }
    WriteBytes(folder_ / "b", damaged);
    return ErrorOf([&] { OpenImage(folder_ / "b"); });
  };
  EXPECT_THAT(with_size(60000), HasSubstr("claims 60000x60000"));
  EXPECT_THAT(with_size(30000), HasSubstr("ends too soon"));
  // A tile as large as memory, of a small picture.
  TiffSpec tiled = spec;
  tiled.tile = 16;
  tiled.compression = COMPRESSION_LZW;
  WriteTiff(folder_ / "a", tiled, {1, 2});
  std::string damaged = ReadBytes(folder_ / "a");
  for (std::size_t at = 0; at + 12 <= damaged.size(); ++at) {
    std::uint16_t tag = 0, type = 0;
    std::memcpy(&tag, damaged.data() + at, 2);
    std::memcpy(&type, damaged.data() + at + 2, 2);
    const std::uint16_t huge = 0xFFF0;
    if ((tag == TIFFTAG_TILEWIDTH || tag == TIFFTAG_TILELENGTH) && type == TIFF_SHORT)
      std::memcpy(damaged.data() + at + 8, &huge, 2);
  }
  WriteBytes(folder_ / "b", damaged);
  EXPECT_THAT(ErrorOf([&] { OpenImage(folder_ / "b"); }), HasSubstr("ends too soon"));
}

// Whatever a byte of the file is changed to: a picture or an error.
TEST_F(TiffReading, DamageIsHarmless) {
  for (const std::uint32_t tile : {0u, 16u}) {
    WriteTiff(folder_ / "a",
              {.width = 20,
               .height = 5,
               .bits = 8,
               .samples = 3,
               .photometric = PHOTOMETRIC_RGB,
               .compression = COMPRESSION_LZW,
               .tile = tile},
              std::vector<std::uint32_t>(300, 77));
    const std::string bytes = ReadBytes(folder_ / "a");
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      for (const int value : {0, 0xFF}) {
        std::string damaged = bytes;
        damaged[at] = static_cast<char>(value);
        WriteBytes(folder_ / "b", damaged);
        const std::string error = ErrorOf([&] { ReadPicture(folder_ / "b"); });
        EXPECT_TRUE(error == "no error" || error.find("/b: ") != std::string::npos) << error;
      }
    }
  }
}

}  // namespace
}  // namespace tessera
