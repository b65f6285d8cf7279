// What TIFF files say beside their pixels, and how they are written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <tiffio.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/image_reader.h"
#include "pipeline/image_writer.h"
#include "pipeline/tiff_tags.h"
#include "tests/pipeline/codec_test.h"
#include "tests/pipeline/file_size_limit.h"

namespace tessera {
namespace {

using TiffMetadata = CodecTest;
using TiffWriting = CodecTest;

// An EXIF block: directories by the tag that leads to them (0: the first), each with its entries.
struct Block {
  bool big_endian = false;
  std::map<std::uint16_t, std::vector<TiffEntry>> directories = {};

  static TiffEntry Ascii(std::uint16_t tag, const std::string& text) {
    return {.tag = tag,
            .type = kTiffAscii,
            .count = static_cast<std::uint32_t>(text.size() + 1),
            .value = text + '\0'};
  }
  TiffEntry Numbers(std::uint16_t tag, std::uint16_t type, std::size_t size,
                    const std::vector<std::uint32_t>& numbers) const {
    const bool rational = type == kTiffRational || type == kTiffSignedRational;
    TiffEntry entry{.tag = tag,
                    .type = type,
                    .count = static_cast<std::uint32_t>(numbers.size() / (rational ? 2 : 1)),
                    .value = {}};
    for (const std::uint32_t number : numbers)
      AppendTiffNumber(entry.value, number, size, big_endian);
    return entry;
  }

  std::string Bytes() const {
    std::string bytes = big_endian ? std::string("MM\0*", 4) : std::string("II*\0", 4);
    AppendTiffNumber(bytes, 8, 4, big_endian);
    auto first = directories.at(0);
    std::size_t next = 8 + Size(first.size() + directories.size() - 1);
    std::vector<std::vector<TiffEntry>> all;
    for (const auto& [tag, entries] : directories) {
      if (tag == 0) continue;
      first.push_back(Numbers(tag, kTiffLong, 4, {static_cast<std::uint32_t>(next)}));
      next += Size(entries.size());
      all.push_back(entries);
    }
    all.insert(all.begin(), first);
    std::string values;
    for (const auto& entries : all) {
      AppendTiffNumber(bytes, entries.size(), 2, big_endian);
      for (const TiffEntry& entry : entries) {
        AppendTiffNumber(bytes, entry.tag, 2, big_endian);
        AppendTiffNumber(bytes, entry.type, 2, big_endian);
        AppendTiffNumber(bytes, entry.count, 4, big_endian);
        if (entry.value.size() <= 4) {
          bytes += entry.value + std::string(4 - entry.value.size(), '\0');
        } else {
          AppendTiffNumber(bytes, next + values.size(), 4, big_endian);
          values += entry.value;
        }
      }
      AppendTiffNumber(bytes, 0, 4, big_endian);
    }
    return bytes + values;
  }

 private:
  static std::size_t Size(std::size_t entries) { return 2 + 12 * entries + 4; }
};

// The entries of a block by directory and tag.
std::map<std::pair<int, int>, TiffEntry> Entries(const std::string& block) {
  std::map<std::pair<int, int>, TiffEntry> found;
  auto tiff = TiffDirectories::Open(TiffInMemory(std::as_bytes(std::span(block))));
  if (!tiff) return found;
  const auto all = [](std::uint16_t) { return true; };
  for (const TiffEntry& entry : tiff->ReadFirst(all)) {
    if (entry.tag != kTiffExifDirectory && entry.tag != kTiffGpsDirectory) {
      found[{0, entry.tag}] = entry;
      continue;
    }
    for (const TiffEntry& inner : tiff->Read(tiff->Integer(entry), all))
      found[{entry.tag, inner.tag}] = inner;
  }
  EXPECT_FALSE(tiff->damaged());
  return found;
}

Block SomeExif(bool big_endian) {
  Block block{.big_endian = big_endian};
  block.directories[0] = {Block::Ascii(271, "Maker"), Block::Ascii(306, "2026:01:02 03:04:05"),
                          Block::Ascii(33432, "(c)")};
  block.directories[kTiffExifDirectory] = {
      block.Numbers(33434, kTiffRational, 4, {1, 250}),  // ExposureTime
      block.Numbers(34855, kTiffShort, 2, {400}),        // PhotographicSensitivity
      {.tag = 36864, .type = kTiffUndefined, .count = 4, .value = "0232"},  // ExifVersion
      Block::Ascii(36867, "2025:12:31 23:59:59"),                           // DateTimeOriginal
      block.Numbers(37380, kTiffSignedRational, 4, {0xFFFFFFFE, 3}),  // ExposureBiasValue: -2/3
      block.Numbers(42034, kTiffRational, 4, {24, 1, 70, 1, 28, 10, 4, 1})};  // LensSpecification
  block.directories[kTiffGpsDirectory] = {
      Block::Ascii(1, "N"), block.Numbers(2, kTiffRational, 4, {52, 1, 31, 1, 12, 1})};
  return block;
}

// Writes a file without the checks around it; the notes of the writer.
std::vector<std::string> WrittenNotes(const std::filesystem::path& path, const Picture& picture,
                                      const WriteOptions& options) {
  FILE* out = std::fopen(path.c_str(), "wb");
  const auto writer = MakeImageWriter(ImageFormat::kTiff, picture.format(), options, out);
  writer->WriteStrip(picture, 0, picture.height(), {});
  writer->Finish();
  std::fclose(out);
  return writer->notes();
}

TEST_F(TiffMetadata, TravelsThroughAFile) {
  const Picture picture = NoisePicture({.width = 9, .height = 7});
  for (const bool big_endian : {false, true}) {
    WriteOptions options;
    options.metadata.icc = std::string("an ICC\0profile", 14);
    options.metadata.xmp = "<x:xmpmeta/>";
    options.metadata.density = Metadata::Density{.x = 11811, .y = 5906};
    options.metadata.exif = SomeExif(big_endian).Bytes();
    WritePicture(folder_ / "a.tif", ImageFormat::kTiff, picture, options);

    const auto reader = OpenImage(folder_ / "a.tif");
    EXPECT_THAT(reader->warnings(), testing::IsEmpty());
    EXPECT_EQ(reader->metadata().icc, options.metadata.icc);
    EXPECT_EQ(reader->metadata().xmp, options.metadata.xmp);
    ASSERT_TRUE(reader->metadata().density.has_value());
    EXPECT_NEAR(reader->metadata().density->x, 11811, 0.1);
    EXPECT_NEAR(reader->metadata().density->y, 5906, 0.1);
    EXPECT_TRUE(SamePixels(ReadAll(*reader), picture));

    const auto before = Entries(options.metadata.exif), after = Entries(reader->metadata().exif);
    EXPECT_EQ(before.size(), 11u);
    for (const auto& [place, entry] : before) {
      ASSERT_TRUE(after.contains(place)) << place.first << " " << place.second;
      const TiffEntry& read = after.at(place);
      EXPECT_EQ(read.type, entry.type) << place.second;
      EXPECT_EQ(read.count, entry.count) << place.second;
      if (entry.type == kTiffAscii || entry.type == kTiffUndefined) {
        EXPECT_EQ(read.value, entry.value);
      }
    }
    auto tiff =
        TiffDirectories::Open(TiffInMemory(std::as_bytes(std::span(reader->metadata().exif))));
    const auto rational = [&](int tag, std::size_t i) {
      const TiffEntry& entry = after.at({tag < 100 ? kTiffGpsDirectory : kTiffExifDirectory, tag});
      return static_cast<double>(static_cast<std::int32_t>(tiff->Integer(entry, 2 * i))) /
             static_cast<double>(tiff->Integer(entry, 2 * i + 1));
    };
    EXPECT_NEAR(rational(33434, 0), 0.004, 1e-9);
    EXPECT_NEAR(rational(37380, 0), -2.0 / 3, 1e-6);
    EXPECT_NEAR(rational(42034, 2), 2.8, 1e-6);
    EXPECT_NEAR(rational(2, 1), 31, 1e-6);
    EXPECT_EQ(tiff->Integer(after.at({kTiffExifDirectory, 34855})), 400u);
  }
}

// A block that is damaged is left out as far as it cannot be understood; the file is complete.
TEST_F(TiffMetadata, DamagedBlocksDoNoHarm) {
  const Picture picture = NoisePicture({.width = 3, .height = 2});
  const std::string block = SomeExif(false).Bytes();
  WriteOptions options;
  for (std::size_t at = 0; at < block.size(); ++at) {
    for (const int value : {0, 0xFF}) {
      options.metadata.exif = block;
      options.metadata.exif[at] = static_cast<char>(value);
      WrittenNotes(folder_ / "a.tif", picture, options);
      ASSERT_TRUE(SamePixels(ReadPicture(folder_ / "a.tif").picture, picture))
          << "byte " << at << " is " << value;
    }
  }
  // Directories that contain each other.
  Block loop;
  loop.directories[0] = {loop.Numbers(kTiffExifDirectory, kTiffLong, 4, {8})};
  options.metadata.exif = loop.Bytes();
  WritePicture(folder_ / "a.tif", ImageFormat::kTiff, picture, options);
  EXPECT_TRUE(SamePixels(ReadPicture(folder_ / "a.tif").picture, picture));
}

// What libtiff would write another number for is left out, which a note tells; the rest is there.
TEST_F(TiffMetadata, ValuesThatDoNotFitAreLeftOut) {
  const Picture picture = NoisePicture({.width = 3, .height = 2});
  const Block numbers;
  const std::uint32_t negative = 0xFFFFFFFF;
  const struct {
    std::uint16_t directory;
    TiffEntry entry;
    bool fits;
  } cases[] = {
      {kTiffExifDirectory, numbers.Numbers(34855, kTiffLong, 4, {100000}), false},
      {kTiffExifDirectory, numbers.Numbers(34855, kTiffLong, 4, {65535}), true},
      {kTiffExifDirectory, numbers.Numbers(33434, kTiffSignedRational, 4, {negative, 2}), false},
      {kTiffExifDirectory, numbers.Numbers(33434, kTiffSignedRational, 4, {1, 2}), true},
      {kTiffExifDirectory, numbers.Numbers(33434, kTiffRational, 4, {negative, 1}), false},
      {kTiffExifDirectory, numbers.Numbers(33434, kTiffRational, 4, {4000000000, 1}), true},
      {kTiffExifDirectory, numbers.Numbers(33434, kTiffRational, 4, {1, 0}), false},
      {kTiffExifDirectory, numbers.Numbers(33434, kTiffRational, 4, {1, negative}), false},
      {kTiffExifDirectory, numbers.Numbers(33434, kTiffRational, 4, {0, 1}), true},
      {kTiffExifDirectory, numbers.Numbers(37380, kTiffRational, 4, {3000000000, 1}), false},
      {kTiffExifDirectory, numbers.Numbers(37380, kTiffSignedRational, 4, {negative, 3}), true},
      {kTiffGpsDirectory, numbers.Numbers(2, kTiffSignedRational, 4, {negative, 1, 2, 1, 3, 1}),
       false},
      {kTiffGpsDirectory, numbers.Numbers(5, kTiffShort, 2, {256}), false}};
  for (const auto& c : cases) {
    Block block;
    block.directories[0] = {Block::Ascii(271, "Maker")};
    block.directories[kTiffExifDirectory] = {
        {.tag = 36864, .type = kTiffUndefined, .count = 4, .value = "0232"}};
    block.directories[c.directory].push_back(c.entry);
    WriteOptions options;
    options.metadata.exif = block.Bytes();
    const auto notes = WrittenNotes(folder_ / "a.tif", picture, options);
    if (c.fits) {
      EXPECT_THAT(notes, testing::IsEmpty());
    } else {
      EXPECT_THAT(notes, testing::ElementsAre(testing::HasSubstr("parts of the EXIF")));
    }
    const auto found = Entries(OpenImage(folder_ / "a.tif")->metadata().exif);
    EXPECT_EQ(found.contains({c.directory, c.entry.tag}), c.fits) << c.entry.tag;
    EXPECT_TRUE(found.contains({0, 271}));
    EXPECT_TRUE(found.contains({kTiffExifDirectory, 36864}));
  }
}

TEST_F(TiffMetadata, DensitiesThatDoNotFitAreLeftOut) {
  const Picture picture = NoisePicture({.width = 3, .height = 2});
  for (const double density : {4294967295 / 0.0254, 1e-9, 4000000000 / 0.0254}) {
    WriteOptions options;
    options.metadata.density = Metadata::Density{.x = 11811, .y = density};
    const auto notes = WrittenNotes(folder_ / "a.tif", picture, options);
    const bool fits = density == 4000000000 / 0.0254;
    EXPECT_EQ(notes.empty(), fits);
    EXPECT_EQ(OpenImage(folder_ / "a.tif")->metadata().density.has_value(), fits);
  }
}

TEST_F(TiffMetadata, HostileOffsetsInAFileAreAWarning) {
  WriteOptions options;
  options.metadata.exif = SomeExif(false).Bytes();
  const Picture picture = NoisePicture({.width = 3, .height = 2});
  WritePicture(folder_ / "a.tif", ImageFormat::kTiff, picture, options);
  std::string bytes = ReadBytes(folder_ / "a.tif");
  const std::string pointer{'\x69', '\x87'};  // 34665
  const std::size_t at = bytes.find(pointer);
  ASSERT_NE(at, std::string::npos);
  for (const char offset : {'\xFF', '\x7F'}) {
    for (std::size_t i = 8; i < 12; ++i) bytes[at + i] = offset;
    WriteBytes(folder_ / "b.tif", bytes);
    const PictureFile read = ReadPicture(folder_ / "b.tif");
    EXPECT_TRUE(SamePixels(read.picture, picture));
    EXPECT_THAT(read.warnings, testing::Contains(testing::HasSubstr("EXIF")));
  }
}

TEST_F(TiffMetadata, DensityOfEachUnit) {
  WriteOptions options;
  options.metadata.density = Metadata::Density{.x = 100, .y = 200};
  WritePicture(folder_ / "a.tif", ImageFormat::kTiff, NoisePicture({.width = 3, .height = 2}),
               options);
  const struct {
    int unit;
    double pixels_per_metre;
  } units[] = {{RESUNIT_INCH, 10 / 0.0254}, {RESUNIT_CENTIMETER, 1000}, {RESUNIT_NONE, 0}};
  for (const auto& unit : units) {
    TIFF* tiff = TIFFOpen((folder_ / "a.tif").c_str(), "r+");
    TIFFSetField(tiff, TIFFTAG_RESOLUTIONUNIT, unit.unit);
    TIFFSetField(tiff, TIFFTAG_XRESOLUTION, 10.0);
    TIFFRewriteDirectory(tiff);
    TIFFClose(tiff);
    const auto reader = OpenImage(folder_ / "a.tif");
    EXPECT_NEAR(reader->metadata().density.value_or(Metadata::Density{}).x, unit.pixels_per_metre,
                0.01);
  }
}

TEST_F(TiffWriting, AnotherLibraryFindsWhatWasMeant) {
  WriteOptions options;
  options.metadata.density = Metadata::Density{.x = 11811.02, .y = 11811.02};
  const Picture picture = NoisePicture({.width = 5, .height = 300, .channels = 2, .bit_depth = 16});
  WritePicture(folder_ / "a.tif", ImageFormat::kTiff, picture, options);
  TIFF* tiff = TIFFOpen((folder_ / "a.tif").c_str(), "r");
  ASSERT_NE(tiff, nullptr);
  const auto value = [&](std::uint32_t tag) {
    std::uint16_t found = 0;
    TIFFGetField(tiff, tag, &found);
    return found;
  };
  EXPECT_EQ(value(TIFFTAG_SAMPLESPERPIXEL), 2);
  EXPECT_EQ(value(TIFFTAG_BITSPERSAMPLE), 16);
  EXPECT_EQ(value(TIFFTAG_PHOTOMETRIC), PHOTOMETRIC_MINISBLACK);
  EXPECT_EQ(value(TIFFTAG_ORIENTATION), ORIENTATION_TOPLEFT);
  EXPECT_EQ(value(TIFFTAG_RESOLUTIONUNIT), RESUNIT_INCH);
  float dpi = 0;
  TIFFGetField(tiff, TIFFTAG_XRESOLUTION, &dpi);
  EXPECT_NEAR(dpi, 300, 0.001);
  std::uint16_t count = 0, *extra = nullptr;
  TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &count, &extra);
  ASSERT_EQ(count, 1);
  EXPECT_EQ(extra[0], EXTRASAMPLE_UNASSALPHA);
  std::vector<std::uint16_t> row(10);
  for (std::uint32_t y = 0; y < 300; ++y) TIFFReadScanline(tiff, row.data(), y, 0);
  EXPECT_EQ(row[9], Sample(picture, 4, 299, 1));
  EXPECT_NE(TIFFLastDirectory(tiff), 0);
  TIFFClose(tiff);
}

TEST_F(TiffWriting, SlopesAreCompressed) {
  const Picture slope = NoisePicture({.width = 500, .height = 500, .bit_depth = 16});
  for (std::int64_t y = 0; y < 500; ++y)
    for (std::int64_t x = 0; x < 500; ++x)
      for (int c = 0; c < 3; ++c) SetSample(slope, x, y, c, static_cast<std::uint32_t>(x + 2 * y));
  WritePicture(folder_ / "a.tif", ImageFormat::kTiff, slope);
  EXPECT_LT(ReadBytes(folder_ / "a.tif").size() * 50, slope.bytes());
}

TEST_F(TiffWriting, NothingIsHeldOfFilesThatAreDone) {
  const Picture picture = NoisePicture({.width = 3, .height = 2});
  WriteOptions options;
  Block block = SomeExif(false);
  block.directories[kTiffExifDirectory].push_back({.tag = 37500,  // MakerNote
                                                   .type = kTiffUndefined,
                                                   .count = 60'000,
                                                   .value = std::string(60'000, 'x')});
  options.metadata.exif = block.Bytes();
  const auto write = [&] { WritePicture(folder_ / "a.tif", ImageFormat::kTiff, picture, options); };
  write();
  const std::size_t before = ::mallinfo2().uordblks + ::mallinfo2().hblkhd;
  for (int i = 0; i < 300; ++i) write();
  EXPECT_LT(::mallinfo2().uordblks + ::mallinfo2().hblkhd, before + 2'000'000);
}

// A pipe cannot seek: it gets the same bytes at the end.
// Whether it is libtiff's call that fails or the one that flushes the stream's buffer.
TEST_F(TiffWriting, AFullDiskIsTheReason) {
  for (const std::int64_t height : {3, 100, 2000}) {
    const Picture picture = NoisePicture({.width = 200, .height = height});
    WritePicture(folder_ / "whole.tif", ImageFormat::kTiff, picture);
    const auto size = std::filesystem::file_size(folder_ / "whole.tif");
    for (const std::uintmax_t limit :
         {std::uintmax_t{0}, std::uintmax_t{8}, size / 3, size - 500, size - 1}) {
      std::string error;
      {
        const FileSizeLimit full(limit);
        error = ErrorOf([&] { WritePicture(folder_ / "a.tif", ImageFormat::kTiff, picture); });
      }
      EXPECT_THAT(error, testing::HasSubstr("File too large")) << limit << " of " << size;
      EXPECT_FALSE(std::filesystem::exists(folder_ / "a.tif"));
    }
  }
}

TEST_F(TiffWriting, PipesGetTheSameFile) {
  const Picture picture = NoisePicture({.width = 90, .height = 400, .channels = 4});
  WriteOptions options;
  options.metadata.exif = SomeExif(true).Bytes();
  WritePicture(folder_ / "a.tif", ImageFormat::kTiff, picture, options);
  std::array<int, 2> ends;
  ASSERT_EQ(::pipe(ends.data()), 0);
  std::string received;
  std::thread reader([&] {
    std::array<char, 4096> part;
    for (ssize_t n; (n = ::read(ends[0], part.data(), part.size())) > 0;)
      received.append(part.data(), static_cast<std::size_t>(n));
  });
  FILE* out = ::fdopen(ends[1], "wb");
  const auto writer = MakeImageWriter(ImageFormat::kTiff, picture.format(), options, out);
  const std::int64_t rows = StripRows(ImageFormat::kTiff, picture.format());
  for (std::int64_t y = 0; y < 400; y += rows)
    writer->WriteStrip(picture, y, std::min<std::int64_t>(400, y + rows), {});
  writer->Finish();
  std::fclose(out);
  reader.join();
  ::close(ends[0]);
  EXPECT_TRUE(received == ReadBytes(folder_ / "a.tif"));
}

}  // namespace
}  // namespace tessera
