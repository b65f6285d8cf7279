// Metadata in PNG files.
#include "pipeline/png_metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include <thread>

#include "ops/error.h"
#include "pipeline/codecs.h"
#include "pipeline/image_reader.h"
#include "pipeline/image_writer.h"
#include "tests/pipeline/metadata_blocks.h"
#include "tests/pipeline/test_pictures.h"

namespace tessera {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string Chunk(const std::string& name, const std::string& data) {
  const std::string body = name + data;
  const auto crc =
      crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return NumberBytes(data.size(), 4, true) + body + NumberBytes(crc, 4, true);
}

std::string Zlib(const std::string& data) {
  uLongf size = compressBound(data.size());
  std::string packed(size, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(data.data()), data.size());
  packed.resize(size);
  return packed;
}

std::string Zeros(std::size_t count) { return std::string(count, '\0'); }

class PngMetadata : public testing::Test {
 protected:
  // A picture with chunks before and behind its pixels.
  void WritePng(const std::string& before, const std::string& behind = "") {
    WritePicture(folder_ / "a.png", ImageFormat::kPng, picture_);
    const std::string plain = ReadBytes(folder_ / "a.png");
    const std::size_t head = 8 + 12 + 13, tail = plain.size() - 12;
    WriteBytes(folder_ / "a.png", plain.substr(0, head) + before + plain.substr(head, tail - head) +
                                      behind + plain.substr(tail));
  }
  // Reads all of it; the pixels are as they were.
  const Metadata& Read() {
    reader_ = OpenImage(folder_ / "a.png");
    EXPECT_TRUE(SamePixels(ReadAll(*reader_), picture_));
    return reader_->metadata();
  }
  const std::vector<std::string>& warnings() const { return reader_->warnings(); }

  TemporaryFolder folder_;
  Picture picture_ = NoisePicture({.width = 30, .height = 20});
  std::unique_ptr<ImageReader> reader_;
};

// The chunks of a file in their order.
std::vector<std::string> ChunkNames(const std::string& png) {
  std::vector<std::string> names;
  for (std::size_t at = 8; at + 12 <= png.size();) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i)
      length = length << 8 | static_cast<unsigned char>(png[at + i]);
    names.push_back(png.substr(at + 4, 4));
    at += 12 + length;
  }
  return names;
}

TEST_F(PngMetadata, EveryChunk) {
  std::string chromaticities;
  for (const std::uint64_t value : {31270, 32900, 64000, 33000, 21000, 71000, 15000, 6000})
    chromaticities += NumberBytes(value, 4, true);
  const std::string chunks[] = {
      Chunk("gAMA", NumberBytes(55555, 4, true)),
      Chunk("cHRM", chromaticities),
      Chunk("sRGB", "\x03"),
      Chunk("cICP", std::string("\x09\x10\0\x01", 4)),
      Chunk("iCCP", "a name" + Zeros(2) + Zlib(IccBlock("RGB "))),
      Chunk("pHYs", NumberBytes(3780, 4, true) + NumberBytes(5000, 4, true) + "\x01"),
      Chunk("eXIf", ExifBlock({.orientation = 1})),
      Chunk("iTXt", "XML:com.adobe.xmp" + Zeros(5) + kXmpPacket),
      Chunk("tEXt", "Title" + Zeros(1) + "A caf\xE9"),
      Chunk("zTXt", "Comment" + Zeros(2) + Zlib("packed \xE9")),
      Chunk("iTXt",
            "Author" + Zeros(1) + Zeros(2) + "de" + Zeros(1) + "Autor" + Zeros(1) + "\xE2\x82\xAC"),
      Chunk("iTXt", "Source" + Zeros(1) + "\x01" + Zeros(3) + Zlib("a source"))};
  std::string all;
  for (const std::string& chunk : chunks) all += chunk;
  for (const bool behind : {false, true}) {
    WritePng(behind ? "" : all, behind ? all : "");
    const Metadata& metadata = Read();
    EXPECT_THAT(warnings(), IsEmpty());
    EXPECT_EQ(metadata.gamma, 0.55555);
    EXPECT_THAT(*metadata.chromaticity,
                ElementsAre(0.3127, 0.329, 0.64, 0.33, 0.21, 0.71, 0.15, 0.06));
    EXPECT_EQ(metadata.srgb_intent, 3);
    EXPECT_EQ(metadata.cicp, (std::array<std::uint8_t, 4>{9, 16, 0, 1}));
    EXPECT_EQ(metadata.icc, IccBlock("RGB "));
    EXPECT_EQ(metadata.density->x, 3780);
    EXPECT_EQ(metadata.density->y, 5000);
    EXPECT_EQ(metadata.exif, ExifBlock({.orientation = 1}));
    EXPECT_EQ(metadata.xmp, kXmpPacket);
    ASSERT_THAT(metadata.text, SizeIs(4));
    EXPECT_EQ(metadata.text[0].keyword, "Title");
    EXPECT_EQ(metadata.text[0].value, "A caf\xC3\xA9");
    EXPECT_EQ(metadata.text[1].value, "packed \xC3\xA9");
    EXPECT_EQ(metadata.text[2].value, "\xE2\x82\xAC");
    EXPECT_EQ(metadata.text[3].value, "a source");
  }
}

TEST_F(PngMetadata, RoundTrip) {
  const Metadata metadata{
      .icc = IccBlock("RGB "),
      .exif = ExifBlock({.big_endian = true, .orientation = 1}),
      .xmp = kXmpPacket,
      .density = Metadata::Density{.x = 11811, .y = 5906},
      .gamma = 0.7,
      .chromaticity = std::array<double, 8>{0.3127, 0.329, 0.64, 0.33, 0.21, 0.71, 0.15, 0.06},
      .cicp = std::array<std::uint8_t, 4>{12, 255, 0, 1},
      .text = {{.keyword = "Title", .value = "A caf\xC3\xA9"},
               {.keyword = "Empty", .value = ""},
               {.keyword = "Long", .value = std::string(5000, 'l')},
               {.keyword = "Wide", .value = "\xE2\x82\xAC"},
               {.keyword = "Long and wide", .value = "\xE2\x82\xAC" + std::string(5000, 'w')}}};
  WritePicture(folder_ / "a.png", ImageFormat::kPng, picture_, {.metadata = metadata});
  const Metadata& back = Read();
  EXPECT_THAT(warnings(), IsEmpty());
  EXPECT_EQ(back.icc, metadata.icc);
  EXPECT_EQ(back.exif, metadata.exif);
  EXPECT_EQ(back.xmp, metadata.xmp);
  EXPECT_EQ(back.density->x, 11811);
  EXPECT_EQ(back.density->y, 5906);
  EXPECT_EQ(back.gamma, metadata.gamma);
  EXPECT_EQ(back.srgb_intent, std::nullopt);
  EXPECT_EQ(back.chromaticity, metadata.chromaticity);
  EXPECT_EQ(back.cicp, metadata.cicp);
  ASSERT_EQ(back.text.size(), metadata.text.size());
  for (std::size_t i = 0; i < back.text.size(); ++i) {
    EXPECT_EQ(back.text[i].keyword, metadata.text[i].keyword);
    EXPECT_EQ(back.text[i].value, metadata.text[i].value);
  }
  EXPECT_THAT(ChunkNames(ReadBytes(folder_ / "a.png")),
              ElementsAre("IHDR", "gAMA", "cHRM", "cICP", "iCCP", "pHYs", "eXIf", "iTXt", "tEXt",
                          "tEXt", "zTXt", "iTXt", "iTXt", "IDAT", "IEND"));
  EXPECT_LT(ReadBytes(folder_ / "a.png").size(), 6000u);
}

TEST_F(PngMetadata, SrgbUnlessThereIsAProfile) {
  WritePicture(folder_ / "a.png", ImageFormat::kPng, picture_, {.metadata = {.srgb_intent = 2}});
  EXPECT_EQ(Read().srgb_intent, 2);
  // Nothing is made up from it.
  EXPECT_EQ(Read().gamma, std::nullopt);
  EXPECT_EQ(Read().chromaticity, std::nullopt);
  WritePicture(folder_ / "a.png", ImageFormat::kPng, picture_,
               {.metadata = {.icc = IccBlock("RGB "), .srgb_intent = 2}});
  EXPECT_THAT(ChunkNames(ReadBytes(folder_ / "a.png")),
              ElementsAre("IHDR", "iCCP", "IDAT", "IEND"));
}

TEST_F(PngMetadata, DamagedChunksAreWarningsOnly) {
  std::string bad_sum = Chunk("tEXt", "Title" + Zeros(1) + "x");
  bad_sum.back() = static_cast<char>(bad_sum.back() ^ 1);
  const struct {
    std::string chunk, warning;
  } cases[] = {
      {bad_sum, "tEXt: CRC error"},
      {Chunk("gAMA", "abc"), "gAMA chunk is damaged"},
      {Chunk("gAMA", Zeros(4)), "gAMA chunk is damaged"},
      {Chunk("cHRM", Zeros(31)), "cHRM chunk is damaged"},
      {Chunk("sRGB", "\x04"), "sRGB chunk is damaged"},
      {Chunk("sRGB", "\xFF"), "sRGB chunk is damaged"},
      {Chunk("cICP", Zeros(3)), "cICP chunk is damaged"},
      {Chunk("cICP", "\x01\x0D\x01\x01"), "cICP chunk is damaged"},
      {Chunk("pHYs", Zeros(8)), "pHYs chunk is damaged"},
      {Chunk("pHYs", Zeros(8) + "\x01"), "pHYs chunk is damaged"},
      {Chunk("iCCP", "name"), "iCCP chunk is damaged"},
      {Chunk("iCCP", "name" + Zeros(1)), "iCCP chunk is damaged"},
      {Chunk("iCCP", "name" + Zeros(1) + "\x07" + Zlib("x")), "packed in an unknown way"},
      {Chunk("iCCP", "name" + Zeros(2) + "no zlib"), "iCCP chunk is damaged"},
      {Chunk("zTXt", "name" + Zeros(2) + Zlib("abcdefgh").substr(0, 9)), "zTXt chunk is damaged"},
      {Chunk("tEXt", "no zero"), "tEXt chunk is damaged"},
      {Chunk("tEXt", Zeros(1) + "no keyword"), "tEXt chunk is damaged"},
      {Chunk("tEXt", std::string(80, 'k') + Zeros(1)), "tEXt chunk is damaged"},
      {Chunk("iTXt", "key" + Zeros(3) + "no zeros"), "iTXt chunk is damaged"},
      {Chunk("iTXt", "key" + Zeros(5) + "\xFF"), "iTXt chunk is not UTF-8"},
      {Chunk("iTXt", "key" + Zeros(1) + "\x01\x01" + Zeros(2) + Zlib("x")), "unknown way"},
      {Chunk("zTXt", "Raw profile type exif" + Zeros(2) + Zlib("\nexif\n 2\nxy")),
       "zTXt chunk is damaged"}};
  const std::string good = Chunk("tEXt", "Good" + Zeros(1) + "one");
  for (const auto& c : cases) {
    for (const bool behind : {false, true}) {
      WritePng(behind ? good : c.chunk + c.chunk + good, behind ? c.chunk : "");
      const Metadata& metadata = Read();
      ASSERT_THAT(metadata.text, SizeIs(1)) << c.warning;
      EXPECT_EQ(metadata.text[0].value, "one");
      EXPECT_TRUE(metadata.icc.empty() && !metadata.gamma && !metadata.density &&
                  !metadata.srgb_intent && !metadata.chromaticity && !metadata.cicp);
      ASSERT_FALSE(warnings().empty());
      EXPECT_THAT(warnings()[0], HasSubstr(c.warning));
    }
  }
  WritePng(Chunk("pHYs", NumberBytes(1, 4, true) + NumberBytes(2, 4, true) + Zeros(1)));
  EXPECT_EQ(Read().density, std::nullopt) << "a ratio, no density";
  EXPECT_THAT(warnings(), IsEmpty());
}

TEST_F(PngMetadata, TextsOfAbsurdSizeAreLeftOut) {
  // Each unpacks to 40 MB; the two are more than the limit.
  const std::string large = Zlib(std::string(40 << 20, 'x'));
  WritePng(Chunk("zTXt", "A" + Zeros(2) + large) + Chunk("zTXt", "B" + Zeros(2) + large) +
           Chunk("iCCP", "C" + Zeros(2) + large) + Chunk("tEXt", "D" + Zeros(1) + "small"));
  const Metadata& metadata = Read();
  ASSERT_THAT(metadata.text, SizeIs(2));
  EXPECT_EQ(metadata.text[0].value.size(), std::size_t{40} << 20);
  EXPECT_EQ(metadata.text[1].value, "small");
  EXPECT_TRUE(metadata.icc.empty());
  EXPECT_THAT(warnings(), ElementsAre(HasSubstr("zTXt chunk is too large"),
                                      HasSubstr("iCCP chunk is too large")));
  WritePng(Chunk("tEXt", "A" + Zeros(1) + std::string(65 << 20, 'x')));
  EXPECT_THAT(Read().text, IsEmpty());
  EXPECT_THAT(warnings(), Contains(HasSubstr("too large: left out in part")));
}

TEST_F(PngMetadata, BlocksInHexadecimal) {
  const auto profile = [](const std::string& kind, const std::string& data) {
    std::string text = "\n" + kind + "\n    " + std::to_string(data.size()) + "\n";
    for (std::size_t i = 0; i < data.size(); ++i) {
      constexpr char kHex[] = "0123456789abcdef";
      text += {kHex[static_cast<unsigned char>(data[i]) >> 4], kHex[data[i] & 15]};
      if (i % 36 == 35) text += '\n';
    }
    return Chunk("zTXt", "Raw profile type " + kind + Zeros(2) + Zlib(text + "\n"));
  };
  const std::string exif = ExifBlock({.orientation = 1});
  WritePng(profile("exif", "Exif" + Zeros(2) + exif) + profile("xmp", kXmpPacket) +
           profile("iptc", "kept"));
  const Metadata& metadata = Read();
  EXPECT_THAT(warnings(), IsEmpty());
  EXPECT_EQ(metadata.exif, exif);
  EXPECT_EQ(metadata.xmp, kXmpPacket);
  ASSERT_THAT(metadata.text, SizeIs(1));
  EXPECT_EQ(metadata.text[0].keyword, "Raw profile type iptc");
}

TEST_F(PngMetadata, OrientationTurnsThePictureOnce) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const ExifSpec spec{.big_endian = true, .orientation = static_cast<std::uint32_t>(orientation)};
    WritePng("", Chunk("eXIf", ExifBlock(spec)));
    const auto reader = OpenImage(folder_ / "a.png");
    const Picture shown = Oriented(picture_, orientation);
    EXPECT_EQ(reader->format(), shown.format());
    EXPECT_GE(reader->HeldBytes(), orientation == 1 ? 0 : picture_.bytes());
    EXPECT_TRUE(SamePixels(ReadAll(*reader), shown));

    std::vector<std::string> notes;
    WritePicture(
        folder_ / "b.png", ImageFormat::kPng, shown,
        {.metadata = AdaptMetadata(reader->metadata(), shown.format(), ImageFormat::kPng, notes)});
    const auto again = OpenImage(folder_ / "b.png");
    EXPECT_TRUE(SamePixels(ReadAll(*again), shown));
    EXPECT_EQ(ValueOf(again->metadata().exif, kExifFirst, 274)->value, 1u);
  }
}

// From a pipe, what follows the pixels comes too late.
TEST_F(PngMetadata, WithoutSeeking) {
  const std::string title = Chunk("tEXt", "Title" + Zeros(1) + "x");
  const auto read_from_pipe = [&] {
    // Who still reads the pipe would be the one for whom the writer writes, and the next reader
    // would wait forever.
    reader_.reset();
    const std::filesystem::path pipe = folder_ / "pipe";
    ::mkfifo(pipe.c_str(), 0600);
    const std::jthread writer([&] { WriteBytes(pipe, ReadBytes(folder_ / "a.png")); });
    reader_ = OpenPng(FilePtr(std::fopen(pipe.c_str(), "rb")), {});
    EXPECT_TRUE(SamePixels(ReadAll(*reader_), picture_));
  };
  WritePng(title + Chunk("gAMA", "abc"));
  read_from_pipe();
  EXPECT_THAT(reader_->metadata().text, SizeIs(1));
  EXPECT_THAT(warnings(), ElementsAre(HasSubstr("gAMA chunk is damaged")));
  WritePng("", title);
  read_from_pipe();
  EXPECT_THAT(reader_->metadata().text, IsEmpty());
  EXPECT_THAT(warnings(), ElementsAre(HasSubstr("pipe")));
  WritePng(Chunk("tEXt", "A" + Zeros(1) + std::string(40 << 20, 'x')) +
           Chunk("tEXt", "B" + Zeros(1) + std::string(40 << 20, 'x')));
  read_from_pipe();
  EXPECT_THAT(reader_->metadata().text, SizeIs(1));
  EXPECT_THAT(warnings(), ElementsAre(HasSubstr("too large")));
}

TEST_F(PngMetadata, AnimationsAreNoted) {
  WritePng(Chunk("acTL", NumberBytes(3, 4, true) + NumberBytes(0, 4, true)));
  Read();
  EXPECT_THAT(warnings(), ElementsAre(HasSubstr("animated")));
}

}  // namespace
}  // namespace tessera
