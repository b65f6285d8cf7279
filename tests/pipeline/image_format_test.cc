#include "pipeline/image_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "pipeline/image_writer.h"
#include "tests/pipeline/codec_test.h"

namespace tessera {
namespace {

using testing::HasSubstr;

TEST(ImageFormats, AreKnownByNameInAnyCase) {
  EXPECT_EQ(ParseFormat("png"), ImageFormat::kPng);
  EXPECT_EQ(ParseFormat("JPG"), ImageFormat::kJpeg);
  EXPECT_EQ(ParseFormat("jpeg"), ImageFormat::kJpeg);
  EXPECT_EQ(ParseFormat("WebP"), ImageFormat::kWebp);
  EXPECT_EQ(ParseFormat("tiff"), ImageFormat::kTiff);
  EXPECT_EQ(FormatOfExtension("a.b/c.TIF"), ImageFormat::kTiff);
  EXPECT_EQ(FormatOfExtension("png"), std::nullopt);
  for (const char* unknown : {"", ".png", "gif", "png "}) {
    const std::string error = ErrorOf([&] { ParseFormat(unknown); });
    EXPECT_THAT(error, HasSubstr(std::string("'") + unknown + "'"));
    EXPECT_THAT(error, HasSubstr("png, jpg"));
  }
}

TEST(ImageFormats, HoldWhatTheyHold) {
  const PictureFormat grey_alpha16{.width = 5, .height = 4, .channels = 2, .bit_depth = 16};
  const struct {
    ImageFormat format;
    int channels, bit_depth;
  } kinds[] = {{ImageFormat::kPng, 2, 16}, {ImageFormat::kTiff, 2, 16}, {ImageFormat::kJpeg, 1, 8},
               {ImageFormat::kWebp, 4, 8}, {ImageFormat::kBmp, 1, 8},   {ImageFormat::kPnm, 1, 16}};
  for (const auto& kind : kinds)
    EXPECT_EQ(HeldFormat(kind.format, grey_alpha16),
              (PictureFormat{5, 4, kind.channels, kind.bit_depth}))
        << Name(kind.format);
}

TEST(ImageFormats, RefuseSizesWithTheNumbers) {
  const auto error = [](ImageFormat format, std::int64_t width, std::int64_t height) {
    return ErrorOf([&] { RequireHeldSize(format, {.width = width, .height = height}); });
  };
  EXPECT_EQ(error(ImageFormat::kWebp, 16383, 16383), "no error");
  EXPECT_THAT(error(ImageFormat::kWebp, 1, 16384), HasSubstr("1x16384"));
  EXPECT_THAT(error(ImageFormat::kWebp, 1, 16384), HasSubstr("at most 16383"));
  EXPECT_EQ(error(ImageFormat::kJpeg, 65500, 1), "no error");
  EXPECT_THAT(error(ImageFormat::kJpeg, 65501, 1), HasSubstr("at most 65500"));
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  for (const ImageFormat format : {ImageFormat::kPng, ImageFormat::kTiff, ImageFormat::kPnm}) {
    EXPECT_EQ(error(format, kMax, 1), "no error");
    EXPECT_NE(error(format, kMax + 1, 1), "no error");
  }
  // Its header counts bytes in 32 bits.
  EXPECT_EQ(error(ImageFormat::kBmp, 37800, 37800), "no error");
  EXPECT_THAT(error(ImageFormat::kBmp, 37840, 37840), HasSubstr("37840x37840"));
}

TEST(ImageFormats, MemoryOfTheirWriters) {
  const PictureFormat picture{.width = 1000, .height = 500};
  for (const ImageFormat format :
       {ImageFormat::kPng, ImageFormat::kJpeg, ImageFormat::kBmp, ImageFormat::kPnm}) {
    EXPECT_EQ(WriterBytes(format, picture, true), 0u);
    EXPECT_EQ(WriterBytes(format, picture, false), 0u);
  }
  EXPECT_EQ(WriterBytes(ImageFormat::kTiff, picture, true), 0u);
  EXPECT_GE(WriterBytes(ImageFormat::kTiff, picture, false), 1500000u);
  EXPECT_GE(WriterBytes(ImageFormat::kWebp, picture), 4 * 1000 * 500u);
}

}  // namespace
}  // namespace tessera
