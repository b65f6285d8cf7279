// What of the metadata goes into which output.
#include "pipeline/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/utf8.h"
#include "pipeline/xmp.h"
#include "tests/pipeline/metadata_blocks.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr PictureFormat kRgb{.width = 6000, .height = 4000}, kGrey{6000, 4000, 1, 8},
    kGreyAlpha{6000, 4000, 2, 8}, kRgba{6000, 4000, 4, 16};

struct Adapted {
  Metadata metadata;
  std::vector<std::string> notes;
};
Adapted Adapt(const Metadata& metadata, const PictureFormat& output = kRgb,
              ImageFormat format = ImageFormat::kPng) {
  Adapted adapted;
  adapted.metadata = AdaptMetadata(metadata, output, format, adapted.notes);
  return adapted;
}

Metadata Everything() {
  return {.icc = IccBlock("RGB "),
          .exif = ExifBlock({}),
          .xmp = kXmpPacket,
          .density = Metadata::Density{.x = 5000, .y = 6000},
          .gamma = 0.5,
          .srgb_intent = 1,
          .chromaticity = std::array<double, 8>{0.3, 0.3, 0.6, 0.3, 0.2, 0.7, 0.1, 0.1},
          .text = {{.keyword = "Title", .value = "A"}, {.keyword = "Comment", .value = "B"}}};
}

TEST(Xmp, AttributesAndElementsArePatched) {
  std::string xmp = kXmpPacket;
  PatchXmp(xmp, 12000, 8000);
  EXPECT_THAT(xmp, HasSubstr(" tiff:Orientation=\"1\""));
  EXPECT_THAT(xmp, HasSubstr(" exif:PixelXDimension = '12000'>"));
  EXPECT_THAT(xmp, HasSubstr("<tiff:ImageWidth>12000</tiff:ImageWidth>"));
  EXPECT_THAT(xmp, HasSubstr("<tiff:ImageLength>8000</tiff:ImageLength>"));
  EXPECT_THAT(xmp, HasSubstr("<exif:PixelYDimension>8000</exif:PixelYDimension>"));
  // Back again: nothing else has changed.
  PatchXmp(xmp, 3000, 2000);
  xmp.replace(xmp.find("Orientation=\"1"), 14, "Orientation=\"6");
  EXPECT_EQ(xmp, kXmpPacket);
}

TEST(Xmp, TheNameSpaceCountsNotThePrefix) {
  std::string xmp =
      "<d xmlns:tiff='http://other' tiff:Orientation='6' xmlns:t = 'http://ns.adobe.com/tiff/1.0/' "
      "t:Orientation='6' xt:Orientation='6' t:OrientationX='6'/><t:Orientation >8</t:Orientation>"
      "<t:Orientation/><t:ImageWidth></t:ImageWidth>";
  PatchXmp(xmp, 5, 6);
  EXPECT_EQ(
      xmp,
      "<d xmlns:tiff='http://other' tiff:Orientation='6' xmlns:t = 'http://ns.adobe.com/tiff/1.0/' "
      "t:Orientation='1' xt:Orientation='6' t:OrientationX='6'/><t:Orientation >1</t:Orientation>"
      "<t:Orientation/><t:ImageWidth>5</t:ImageWidth>");
}

TEST(Xmp, WhatBreaksOffIsKept) {
  const std::string space = "<d xmlns:t='http://ns.adobe.com/tiff/1.0/' ";
  for (const char* end : {"t:Orientation", "t:Orientation=", "t:Orientation='", "t:Orientation='6",
                          "><t:Orientation", "><t:Orientation>", "><t:Orientation>6"}) {
    std::string xmp = space + end;
    PatchXmp(xmp, 5, 6);
    EXPECT_EQ(xmp, space + end);
  }
}

TEST(Xmp, LargePacketsTakeNoTime) {
  std::string xmp = "<d xmlns:t='http://ns.adobe.com/tiff/1.0/' ";
  for (int i = 0; i < 300000; ++i) xmp += i % 2 ? "<t:Orientation " : " t:ImageWidth='1' ";
  PatchXmp(xmp, 5, 6);
  EXPECT_THAT(xmp.substr(0, 100), HasSubstr("t:ImageWidth='5'"));
}

TEST(Utf8, ToAndFromLatin1) {
  std::string latin1;
  for (int c = 1; c < 256; ++c) latin1 += static_cast<char>(c);
  const std::string text = Latin1ToUtf8(latin1);
  EXPECT_TRUE(IsUtf8(text));
  EXPECT_THAT(text, HasSubstr("z{|}~\x7F\xC2\x80"));
  EXPECT_EQ(Utf8ToLatin1(text), latin1);
  EXPECT_EQ(Utf8ToLatin1("\xC4\x80"), std::nullopt);      // U+0100
  EXPECT_EQ(Utf8ToLatin1("\xE2\x82\xAC"), std::nullopt);  // the euro
  EXPECT_FALSE(IsUtf8("a\xFF"));
}

TEST(AdaptMetadata, PngTakesEverything) {
  const Adapted adapted = Adapt(Everything(), kRgba);
  EXPECT_THAT(adapted.notes, IsEmpty());
  const Metadata& metadata = adapted.metadata;
  EXPECT_EQ(metadata.icc, IccBlock("RGB "));
  EXPECT_EQ(ValueOf(metadata.exif, kExifFirst, 274)->value, 1u);
  EXPECT_EQ(ValueOf(metadata.exif, kExifDetails, 40962)->value, 6000u);
  EXPECT_EQ(ValueOf(metadata.exif, kExifDetails, 40963)->value, 4000u);
  EXPECT_THAT(metadata.xmp, HasSubstr("<tiff:ImageLength>4000<"));
  EXPECT_EQ(metadata.density->x, 5000);
  EXPECT_EQ(metadata.density->y, 6000);
  EXPECT_EQ(metadata.gamma, 0.5);
  EXPECT_EQ(metadata.srgb_intent, 1);
  EXPECT_EQ(metadata.chromaticity, Everything().chromaticity);
  EXPECT_EQ(metadata.text.size(), 2u);
}

TEST(AdaptMetadata, WhatAFormatHasNoPlaceForIsTold) {
  Metadata metadata = Everything();
  metadata.srgb_intent.reset();
  const Adapted jpeg = Adapt(metadata, kRgb, ImageFormat::kJpeg);
  EXPECT_THAT(jpeg.notes, ElementsAre("JPEG has no place for: text; left out"));
  EXPECT_EQ(jpeg.metadata.icc, metadata.icc);
  EXPECT_FALSE(jpeg.metadata.gamma || jpeg.metadata.chromaticity);
  ASSERT_EQ(jpeg.metadata.text.size(), 1u);
  EXPECT_EQ(jpeg.metadata.text[0].value, "B");

  metadata.icc.clear();
  EXPECT_THAT(Adapt(metadata, kRgb, ImageFormat::kJpeg).notes,
              ElementsAre("JPEG has no place for: gamma and chromaticities, text; left out"));
  // That is what it is taken for anyway.
  metadata.gamma = 0.45455;
  metadata.chromaticity = {0.3127, 0.329, 0.64, 0.33, 0.3, 0.6, 0.15, 0.06};
  metadata.text.clear();
  EXPECT_THAT(Adapt(metadata, kRgb, ImageFormat::kJpeg).notes, IsEmpty());
  metadata.cicp = {1, 13, 0, 1};
  EXPECT_THAT(Adapt(metadata, kRgb, ImageFormat::kJpeg).notes, IsEmpty());
  // Whatever else is said, it is Display P3.
  metadata.cicp = {12, 13, 0, 1};
  metadata.srgb_intent = 0;
  EXPECT_THAT(Adapt(metadata, kRgb, ImageFormat::kJpeg).notes,
              ElementsAre("JPEG has no place for: gamma and chromaticities; left out"));
  EXPECT_FALSE(Adapt(metadata, kRgb, ImageFormat::kJpeg).metadata.cicp);
  EXPECT_EQ(Adapt(metadata).metadata.cicp, metadata.cicp);

  const Adapted webp = Adapt(Everything(), kRgb, ImageFormat::kWebp);
  EXPECT_THAT(webp.notes, ElementsAre("WebP has no place for: text; left out"));
  EXPECT_FALSE(webp.metadata.exif.empty() || webp.metadata.icc.empty());

  const Adapted pnm = Adapt(Everything(), kRgb, ImageFormat::kPnm);
  EXPECT_THAT(pnm.notes,
              ElementsAre("PNM has no place for: ICC profile, EXIF, XMP, resolution, text; "
                          "left out"));
  EXPECT_TRUE(pnm.metadata.icc.empty() && pnm.metadata.exif.empty() && pnm.metadata.xmp.empty());
  EXPECT_TRUE(!pnm.metadata.density && pnm.metadata.text.empty());
  EXPECT_THAT(Adapt({}, kRgb, ImageFormat::kPnm).notes, IsEmpty());
}

TEST(AdaptMetadata, DensityOfExifCounts) {
  const Metadata exif_only{.exif = ExifBlock({.dots_per_inch = 254})};
  for (const ImageFormat format : {ImageFormat::kPng, ImageFormat::kJpeg, ImageFormat::kTiff}) {
    ASSERT_TRUE(Adapt(exif_only, kRgb, format).metadata.density);
    EXPECT_NEAR(Adapt(exif_only, kRgb, format).metadata.density->x, 10000, 1e-6);
  }
  EXPECT_EQ(Adapt(Everything()).metadata.density->x, 5000);
}

TEST(AdaptMetadata, ProfilesHaveToFitTheChannels) {
  const struct {
    const char* colours;
    PictureFormat output;
    bool fits;
  } cases[] = {{"RGB ", kRgb, true},        {"RGB ", kRgba, true}, {"RGB ", kGrey, false},
               {"GRAY", kGrey, true},       {"GRAY", kRgb, false}, {"GRAY", kGreyAlpha, true},
               {"RGB ", kGreyAlpha, false}, {"CMYK", kRgb, false}, {"CMYK", kGrey, false},
               {"Lab ", kRgb, false}};
  for (const auto& c : cases) {
    const Adapted adapted = Adapt({.icc = IccBlock(c.colours)}, c.output);
    EXPECT_EQ(adapted.metadata.icc, c.fits ? IccBlock(c.colours) : "") << c.colours;
    if (c.fits) {
      EXPECT_THAT(adapted.notes, IsEmpty());
    } else {
      EXPECT_THAT(adapted.notes, ElementsAre(HasSubstr("ICC profile is not for")));
    }
  }
}

TEST(AdaptMetadata, DamagedProfilesAreLeftOut) {
  const std::string good = IccBlock("RGB ");
  const auto with_tag = [](std::uint32_t tags, std::uint32_t offset, std::uint32_t size) {
    return IccBlock("RGB ", NumberBytes(tags, 4, true) + "cprt" + NumberBytes(offset, 4, true) +
                                NumberBytes(size, 4, true) + "some");
  };
  EXPECT_EQ(Adapt({.icc = with_tag(1, 144, 4)}).metadata.icc, with_tag(1, 144, 4));
  // What follows the profile is none of it.
  EXPECT_EQ(Adapt({.icc = good + "padding"}).metadata.icc, good);
  std::string no_signature = good, too_short_size = good;
  no_signature[36] = 'x';
  too_short_size[3] = 64;
  const std::string damaged[] = {"x",
                                 good.substr(0, 127),
                                 good.substr(0, 131),
                                 no_signature,
                                 too_short_size,
                                 with_tag(2, 144, 4),
                                 with_tag(0xFFFFFFFF, 144, 4),
                                 with_tag(1, 145, 4),
                                 with_tag(1, 0xFFFFFFFF, 0xFFFFFFFF)};
  for (const std::string& icc : damaged) {
    const Adapted adapted = Adapt({.icc = icc});
    EXPECT_EQ(adapted.metadata.icc, "");
    EXPECT_THAT(adapted.notes, ElementsAre("the ICC profile is damaged: left out"));
  }
}

TEST(AdaptMetadata, DamagedExifAndXmpAreLeftOut) {
  const Adapted adapted =
      Adapt({.exif = ExifBlock({}).substr(0, 50), .xmp = kXmpPacket + "\xFF\xFE"});
  EXPECT_THAT(adapted.notes, ElementsAre("the EXIF data are damaged: left out",
                                         "the XMP data are not UTF-8: left out"));
  EXPECT_TRUE(adapted.metadata.exif.empty() && adapted.metadata.xmp.empty());
}

TEST(AdaptMetadata, WhatIsNoXmpIsLeftOut) {
  for (const std::string xmp :
       {"garbage", " ", "<", "garbage <x:xmpmeta/>", "<html>RDF</html>", "<?xml version='1.0'?>"}) {
    const Adapted adapted = Adapt({.xmp = xmp});
    EXPECT_EQ(adapted.metadata.xmp, "") << xmp;
    EXPECT_THAT(adapted.notes, ElementsAre("the XMP data are damaged: left out"));
  }
  for (const std::string xmp : {"<x:xmpmeta/>", "\xEF\xBB\xBF\r\n\t <rdf:RDF/>",
                                "<?xpacket begin=''?><x:xmpmeta></x:xmpmeta>\n  "}) {
    const Adapted adapted = Adapt({.xmp = xmp});
    EXPECT_EQ(adapted.metadata.xmp, xmp);
    EXPECT_THAT(adapted.notes, IsEmpty());
  }
}

TEST(AdaptMetadata, WhatAJpegSegmentDoesNotHold) {
  // 65533 bytes, less what stands in front (Exif 2.32, XMP specification).
  Metadata metadata{.exif = ExifBlock({}), .xmp = kXmpPacket};
  metadata.exif.resize(65533 - 6);
  metadata.xmp.resize(65533 - 29, ' ');
  metadata.text = {{.keyword = "Comment", .value = std::string(65533, 'x')}};
  EXPECT_THAT(Adapt(metadata, kRgb, ImageFormat::kJpeg).notes, IsEmpty());
  metadata.exif += '\0';
  metadata.xmp += ' ';
  metadata.text[0].value += 'x';
  const Adapted adapted = Adapt(metadata, kRgb, ImageFormat::kJpeg);
  EXPECT_THAT(adapted.notes, ElementsAre(HasSubstr("EXIF, XMP, comment; left out")));
  EXPECT_TRUE(adapted.metadata.exif.empty() && adapted.metadata.xmp.empty() &&
              adapted.metadata.text.empty());
  EXPECT_TRUE(adapted.metadata.density) << "the resolution of the EXIF block";
  EXPECT_THAT(Adapt(metadata).notes, IsEmpty());
  EXPECT_THAT(Adapt(metadata).metadata.exif, Not(IsEmpty()));
}

}  // namespace
}  // namespace tessera
