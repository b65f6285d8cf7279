// WebP files, made here by libwebp, read and written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <webp/decode.h>
#include <webp/encode.h>
#include <webp/mux.h>

#include <string>
#include <vector>

#include "pipeline/image_reader.h"
#include "pipeline/image_writer.h"
#include "pipeline/tiff_tags.h"
#include "tests/pipeline/codec_test.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using WebpReading = CodecTest;
using WebpWriting = CodecTest;

WebPData DataOf(const std::string& bytes) {
  return {.bytes = reinterpret_cast<const std::uint8_t*>(bytes.data()), .size = bytes.size()};
}

std::string Encoded(const Picture& picture) {
  std::uint8_t* bytes = nullptr;
  const int width = static_cast<int>(picture.width()), height = static_cast<int>(picture.height());
  const int stride = static_cast<int>(picture.format().RowBytes());
  const auto* pixels = picture.Row<std::uint8_t>(0);
  const std::size_t size = picture.format().channels == 4
                               ? WebPEncodeLosslessRGBA(pixels, width, height, stride, &bytes)
                               : WebPEncodeLosslessRGB(pixels, width, height, stride, &bytes);
  std::string encoded(reinterpret_cast<const char*>(bytes), size);
  WebPFree(bytes);
  return encoded;
}

struct Frame {
  std::string encoded;
  int x = 0, y = 0;
};

std::string Animation(int width, int height, const std::vector<Frame>& frames) {
  WebPMux* mux = WebPMuxNew();
  for (const Frame& frame : frames) {
    WebPMuxFrameInfo info = {};
    info.bitstream = DataOf(frame.encoded);
    info.x_offset = frame.x;
    info.y_offset = frame.y;
    info.duration = 100;
    info.id = WEBP_CHUNK_ANMF;
    EXPECT_EQ(WebPMuxPushFrame(mux, &info, 1), WEBP_MUX_OK);
  }
  const WebPMuxAnimParams parameters{.bgcolor = 0xFFFFFFFF, .loop_count = 0};
  EXPECT_EQ(WebPMuxSetAnimationParams(mux, &parameters), WEBP_MUX_OK);
  EXPECT_EQ(WebPMuxSetCanvasSize(mux, width, height), WEBP_MUX_OK);
  WebPData file = {};
  EXPECT_EQ(WebPMuxAssemble(mux, &file), WEBP_MUX_OK);
  std::string bytes(reinterpret_cast<const char*>(file.bytes), file.size);
  WebPDataClear(&file);
  WebPMuxDelete(mux);
  return bytes;
}

TEST_F(WebpReading, OfAnAnimationTheFirstFrameOnItsCanvas) {
  const Picture first = NoisePicture({.width = 6, .height = 4}),
                second = NoisePicture({.width = 20, .height = 10}, 2);
  WriteBytes(folder_ / "a", Animation(20, 10,
                                      {{.encoded = Encoded(first), .x = 8, .y = 2},
                                       {.encoded = Encoded(second)}}));
  const PictureFile part = ReadPicture(folder_ / "a");
  EXPECT_THAT(part.warnings, ElementsAre(HasSubstr("animated")));
  ASSERT_EQ(part.picture.format(), (PictureFormat{20, 10, 4, 8}));
  for (std::int64_t y = 0; y < 10; ++y) {
    for (std::int64_t x = 0; x < 20; ++x) {
      const bool inside = x >= 8 && x < 14 && y >= 2 && y < 6;
      ASSERT_EQ(Sample(part.picture, x, y, 3), inside ? 255u : 0u);
      for (int c = 0; inside && c < 3; ++c)
        ASSERT_EQ(Sample(part.picture, x, y, c), Sample(first, x - 8, y - 2, c));
    }
  }
  // A frame that covers its canvas needs no alpha.
  WriteBytes(folder_ / "b", Animation(20, 10,
                                      {{.encoded = Encoded(second)},
                                       {.encoded = Encoded(first), .x = 2, .y = 2}}));
  EXPECT_TRUE(SamePixels(ReadPicture(folder_ / "b").picture, second));
}

// An EXIF block with nothing but an orientation.
std::string ExifBlock(char orientation) {
  return std::string("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", 18) + orientation +
         std::string(7, '\0');
}

TEST_F(WebpReading, OrientationIsApplied) {
  const Picture stored = NoisePicture({.width = 7, .height = 4});
  for (const char orientation : {'\1', '\2', '\3', '\4', '\5', '\6', '\7', '\x08'}) {
    // As the container's specification has it, and as some programs write it.
    for (const std::string& prefix : {std::string(), std::string("Exif\0\0", 6)}) {
      WriteOptions options;
      options.metadata.exif = prefix + ExifBlock(orientation);
      WritePicture(folder_ / "a", ImageFormat::kWebp, stored, options);
      const auto reader = OpenImage(folder_ / "a");
      EXPECT_EQ(reader->metadata().exif, ExifBlock(orientation));
      EXPECT_TRUE(SamePixels(ReadAll(*reader), Oriented(stored, orientation)));
    }
  }
}

TEST_F(WebpReading, SizesBeyondTheLimitAreRefusedBeforeDecoding) {
  WriteBytes(folder_ / "a",
             Animation(10000, 10000, {{Encoded(NoisePicture({.width = 2, .height = 2}))}}));
  EXPECT_THAT(ErrorOf([&] { OpenImage(folder_ / "a", {.max_pixels = 1000}); }),
              HasSubstr("claims 10000x10000"));
  // The frame is what is held, whatever its canvas is.
  EXPECT_LT(OpenImage(folder_ / "a")->HeldBytes(), 1000u);
}

TEST_F(WebpReading, DamageIsHarmless) {
  WriteOptions options;
  options.metadata.exif = ExifBlock('\6');
  WritePicture(folder_ / "a", ImageFormat::kWebp,
               NoisePicture({.width = 8, .height = 5, .channels = 4}), options);
  const std::string bytes = ReadBytes(folder_ / "a");
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const int value : {0, 0x7F, 0xFF}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(value);
      WriteBytes(folder_ / "b", damaged);
      const std::string error = ErrorOf([&] { ReadPicture(folder_ / "b"); });
      EXPECT_TRUE(error == "no error" || error.find("/b: ") != std::string::npos) << error;
    }
  }
}

TEST_F(WebpWriting, LosslessKeepsTheColourOfTransparentPixels) {
  const Picture picture = NoisePicture({.width = 31, .height = 17, .channels = 4});
  for (std::int64_t y = 0; y < 17; ++y)
    for (std::int64_t x = 0; x < 20; ++x) SetSample(picture, x, y, 3, 0);
  WritePicture(folder_ / "a.webp", ImageFormat::kWebp, picture);
  EXPECT_TRUE(SamePixels(ReadPicture(folder_ / "a.webp").picture, picture));
}

TEST_F(WebpWriting, QualityMakesItLossy) {
  const Picture picture = NoisePicture({.width = 64, .height = 64, .channels = 4});
  for (std::int64_t y = 0; y < 64; ++y)
    for (std::int64_t x = 0; x < 64; ++x)
      for (int c = 0; c < 3; ++c)
        SetSample(picture, x, y, c, static_cast<std::uint32_t>(2 * x + y + 20 * c));
  std::size_t last_size = 0;
  for (const int quality : {5, 50, 100}) {
    WritePicture(folder_ / "a.webp", ImageFormat::kWebp, picture, {.quality = quality});
    const std::string bytes = ReadBytes(folder_ / "a.webp");
    EXPECT_GT(bytes.size(), last_size);
    last_size = bytes.size();
    WebPBitstreamFeatures features;
    ASSERT_EQ(WebPGetFeatures(DataOf(bytes).bytes, bytes.size(), &features), VP8_STATUS_OK);
    EXPECT_EQ(features.format, 1) << "lossy";
    const Picture back = ReadPicture(folder_ / "a.webp").picture;
    for (std::int64_t x = 0; x < 64; ++x) {
      EXPECT_EQ(Sample(back, x, 30, 3), Sample(picture, x, 30, 3));
      if (quality == 100) {
        EXPECT_NEAR(Sample(back, x, 30, 1), Sample(picture, x, 30, 1), 8);
      }
    }
  }
}

TEST_F(WebpWriting, MetadataTravel) {
  const Picture picture = NoisePicture({.width = 9, .height = 7});
  for (const bool lossy : {false, true}) {
    WriteOptions options;
    if (lossy) options.quality = 90;
    options.metadata.icc = std::string("an ICC\0profile of odd length", 27);
    options.metadata.xmp = "<x:xmpmeta/>";
    options.metadata.exif = ExifBlock('\1');
    WritePicture(folder_ / "a.webp", ImageFormat::kWebp, picture, options);
    const auto reader = OpenImage(folder_ / "a.webp");
    EXPECT_EQ(reader->metadata().icc, options.metadata.icc);
    EXPECT_EQ(reader->metadata().xmp, options.metadata.xmp);
    EXPECT_EQ(reader->metadata().exif, options.metadata.exif);
    if (!lossy) {
      EXPECT_TRUE(SamePixels(ReadAll(*reader), picture));
    }
  }
  // Without any, the file is the plain kind.
  WritePicture(folder_ / "b.webp", ImageFormat::kWebp, picture);
  EXPECT_EQ(ReadBytes(folder_ / "b.webp").substr(12, 4), "VP8L");
}

}  // namespace
}  // namespace tessera
