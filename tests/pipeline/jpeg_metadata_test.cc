// Metadata in JPEG files, and on the way between JPEG and PNG.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/image_reader.h"
#include "pipeline/image_writer.h"
#include "tests/pipeline/jpeg_files.h"
#include "tests/pipeline/metadata_blocks.h"
#include "tests/pipeline/test_pictures.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int kApp1 = JPEG_APP0 + 1, kApp2 = JPEG_APP0 + 2;
const std::string kExifHead("Exif\0\0", 6);
const std::string kXmpHead("http://ns.adobe.com/xap/1.0/\0", 29);

struct Segment {
  int marker;
  std::string data;
};

class JpegMetadata : public testing::Test {
 protected:
  // By default without a density.
  void WriteJpeg(const std::vector<Segment>& segments,
                 const std::function<void(jpeg_compress_struct&)>& set_up = {}) {
    WriteJpegFile(folder_ / "a.jpg", picture_, JCS_RGB, set_up, [&](jpeg_compress_struct& jpeg) {
      for (const auto& [marker, data] : segments)
        jpeg_write_marker(&jpeg, marker, reinterpret_cast<const JOCTET*>(data.data()),
                          static_cast<unsigned>(data.size()));
    });
  }
  const Metadata& Read(const char* name = "a.jpg") {
    reader_ = OpenImage(folder_ / name);
    ReadAll(*reader_);
    return reader_->metadata();
  }
  const std::vector<std::string>& warnings() const { return reader_->warnings(); }

  TemporaryFolder folder_;
  Picture picture_ = NoisePicture({.width = 48, .height = 32});
  std::unique_ptr<ImageReader> reader_;
};

TEST_F(JpegMetadata, EverySegment) {
  const std::string icc = IccBlock("RGB ", std::string(200000, '\0'));
  std::vector<Segment> segments{{kApp1, kXmpHead + kXmpPacket},
                                {kApp1, kExifHead + ExifBlock({})},
                                {JPEG_COM, "caf\xC3\xA9"},
                                {JPEG_COM, std::string("caf\xE9\0", 5)},
                                {kApp1, "something else"}};
  // In parts, the last one first.
  for (int part = 4; part >= 1; --part) {
    segments.push_back({kApp2, std::string("ICC_PROFILE\0", 12) + static_cast<char>(part) + '\4' +
                                   icc.substr(static_cast<std::size_t>(part - 1) * 60000, 60000)});
  }
  WriteJpeg(segments);
  const Metadata& metadata = Read();
  EXPECT_THAT(warnings(), IsEmpty());
  EXPECT_EQ(metadata.xmp, kXmpPacket);
  EXPECT_EQ(metadata.exif, ExifBlock({}));
  EXPECT_EQ(metadata.icc, icc);
  EXPECT_EQ(metadata.density, std::nullopt);
  ASSERT_THAT(metadata.text, SizeIs(2));
  for (const Metadata::Text& text : metadata.text) {
    EXPECT_EQ(text.keyword, "Comment");
    EXPECT_EQ(text.value, "caf\xC3\xA9");
  }
}

TEST_F(JpegMetadata, Density) {
  const auto density = [&](int unit, int x, int y) {
    WriteJpeg({}, [&](jpeg_compress_struct& jpeg) {
      jpeg.density_unit = static_cast<UINT8>(unit);
      jpeg.X_density = static_cast<UINT16>(x);
      jpeg.Y_density = static_cast<UINT16>(y);
    });
    return Read().density.value_or(Metadata::Density{});
  };
  EXPECT_NEAR(density(1, 300, 254).x, 11811.02, 0.01);
  EXPECT_NEAR(density(1, 300, 254).y, 10000, 0.01);
  EXPECT_NEAR(density(2, 50, 60).y, 6000, 1e-9);
  EXPECT_EQ(density(0, 3, 4).x, 0) << "a ratio";
  EXPECT_EQ(density(1, 0, 4).x, 0);
}

TEST_F(JpegMetadata, DensityRoundTrips) {
  const struct {
    double written, read;
  } cases[] = {{11811, 300 / 0.0254},                // what PNG makes of 300 dpi
               {2835, 72 / 0.0254},   {5000, 5000},  // 50 a centimetre: 127 dpi
               {4700, 4700},                         // 47 a centimetre, 119.38 dpi
               {4711, 120 / 0.0254},                 // neither
               {1e9, 65535 / 0.0254}, {0.1, 1 / 0.0254}};
  for (const auto& c : cases) {
    WritePicture(folder_ / "a.jpg", ImageFormat::kJpeg, picture_,
                 {.metadata = {.density = Metadata::Density{.x = c.written, .y = c.written}}});
    ASSERT_TRUE(Read().density);
    EXPECT_NEAR(Read().density->x, c.read, 1e-6);
  }
}

TEST_F(JpegMetadata, RoundTrip) {
  Metadata metadata{.icc = IccBlock("RGB ", std::string(150000, '\0')),
                    .exif = ExifBlock({.orientation = 1}),
                    .xmp = kXmpPacket,
                    .text = {{.keyword = "Comment", .value = "one"},
                             {.keyword = "Title", .value = "lost"},
                             {.keyword = "Comment", .value = std::string(65533, 'x')}}};
  metadata.exif.resize(65533 - 6);
  metadata.xmp.resize(65533 - 29, ' ');
  WritePicture(folder_ / "a.jpg", ImageFormat::kJpeg, picture_, {.metadata = metadata});
  const Metadata& back = Read();
  EXPECT_THAT(warnings(), IsEmpty());
  EXPECT_EQ(back.icc, metadata.icc);
  EXPECT_EQ(back.exif, metadata.exif);
  EXPECT_EQ(back.xmp, metadata.xmp);
  ASSERT_THAT(back.text, SizeIs(2));
  EXPECT_EQ(back.text[0].value, "one");
  EXPECT_EQ(back.text[1].value, metadata.text[2].value);
}

TEST_F(JpegMetadata, WhatIsBrokenIsAWarning) {
  WriteJpeg({{kApp2, std::string("ICC_PROFILE\0\1\2", 14) + IccBlock("RGB ")}});
  EXPECT_TRUE(Read().icc.empty());
  EXPECT_THAT(warnings(), SizeIs(1));
  WriteJpeg({{kApp1, kExifHead}, {kApp1, kXmpHead}, {kApp1, "Exif"}, {JPEG_COM, ""}});
  EXPECT_TRUE(Read().exif.empty() && Read().xmp.empty());
  WriteJpeg({{kApp1, kXmpHead + kXmpPacket},
             {kApp1, std::string("http://ns.adobe.com/xmp/extension/\0", 35) + "more"}});
  EXPECT_EQ(Read().xmp, kXmpPacket);
  EXPECT_THAT(warnings(), ElementsAre(HasSubstr("extended XMP")));
}

TEST_F(JpegMetadata, TheProfileOfInkIsNotThatOfTheOutput) {
  const Picture ink = NoisePicture({.width = 20, .height = 20, .channels = 4});
  const std::string icc = IccBlock("CMYK");
  WriteJpegFile(folder_ / "a.jpg", ink, JCS_CMYK, {}, [&](jpeg_compress_struct& jpeg) {
    jpeg_write_icc_profile(&jpeg, reinterpret_cast<const JOCTET*>(icc.data()),
                           static_cast<unsigned>(icc.size()));
  });
  const Metadata metadata = Read();
  EXPECT_EQ(metadata.icc, icc);
  std::vector<std::string> notes;
  EXPECT_EQ(AdaptMetadata(metadata, reader_->format(), ImageFormat::kPng, notes).icc, "");
  EXPECT_THAT(notes, ElementsAre(HasSubstr("ICC profile is not for RGB")));
}

// A turned JPEG of a camera, doubled: what it says is true of each of the outputs.
TEST_F(JpegMetadata, FromOneFormatToTheOtherAndBack) {
  for (const bool big_endian : {false, true}) {
    WriteJpeg({{kApp1, kExifHead + ExifBlock({.big_endian = big_endian})},
               {kApp1, kXmpHead + kXmpPacket},
               {JPEG_COM, "a comment"},
               {kApp2, std::string("ICC_PROFILE\0\1\1", 14) + IccBlock("RGB ")}});
    const struct {
      const char *from, *to;
      ImageFormat format;
    } ways[] = {{"a.jpg", "b.jpg", ImageFormat::kJpeg},
                {"a.jpg", "c.png", ImageFormat::kPng},
                {"c.png", "d.jpg", ImageFormat::kJpeg},
                {"c.png", "e.png", ImageFormat::kPng}};
    for (const auto& way : ways) {
      SCOPED_TRACE(way.to);
      const Metadata read = Read(way.from);
      EXPECT_EQ(reader_->format().width, 32) << "turned once";
      PictureFormat doubled = reader_->format();
      doubled.width *= 2;
      doubled.height *= 2;
      std::vector<std::string> notes;
      const Metadata adapted = AdaptMetadata(read, doubled, way.format, notes);
      EXPECT_THAT(notes, IsEmpty());
      WritePicture(folder_ / "doubled", way.format, NoisePicture(doubled), {.metadata = adapted});
      const Metadata& result = Read("doubled");
      EXPECT_EQ(reader_->format().width, 64) << "not turned again";
      EXPECT_THAT(warnings(), IsEmpty());
      EXPECT_EQ(ValueOf(result.exif, kExifFirst, 274)->value, 1u);
      EXPECT_EQ(ValueOf(result.exif, kExifFirst, 256)->value, 64u);
      EXPECT_EQ(ValueOf(result.exif, kExifDetails, 40962)->value, 64u);
      EXPECT_EQ(ValueOf(result.exif, kExifDetails, 40963)->value, 96u);
      EXPECT_THAT(result.xmp, HasSubstr("tiff:Orientation=\"1\""));
      EXPECT_THAT(result.xmp, HasSubstr("<tiff:ImageLength>96<"));
      EXPECT_EQ(result.icc, IccBlock("RGB "));
      ASSERT_TRUE(result.density);
      EXPECT_NEAR(result.density->x, 300 / 0.0254, 0.1);
      ASSERT_THAT(result.text, SizeIs(1));
      EXPECT_EQ(result.text[0].value, "a comment");
      // For the ways that go on from here: of the undoubled picture.
      WritePicture(folder_ / way.to, way.format, NoisePicture({.width = 32, .height = 48}),
                   {.metadata = adapted});
    }
  }
}

}  // namespace
}  // namespace tessera
