// EXIF blocks, whole and damaged.
#include "pipeline/exif.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <span>

#include "pipeline/tiff_tags.h"
#include "tests/pipeline/metadata_blocks.h"

namespace tessera {
namespace {

using testing::Optional;

int Orientation(const std::string& block) {
  return TiffOrientation(std::as_bytes(std::span(block)));
}

TEST(Exif, OrientationInBothByteOrders) {
  for (const bool big_endian : {false, true}) {
    for (std::uint32_t orientation = 1; orientation <= 8; ++orientation) {
      const ExifSpec spec{.big_endian = big_endian, .orientation = orientation};
      EXPECT_EQ(Orientation(ExifBlock(spec)), static_cast<int>(orientation));
    }
    EXPECT_EQ(Orientation(ExifBlock({.big_endian = big_endian, .orientation = 0})), 1);
    EXPECT_EQ(Orientation(ExifBlock({.big_endian = big_endian, .orientation = 9})), 1);
  }
  EXPECT_EQ(Orientation(""), 1);
  EXPECT_EQ(Orientation("II*"), 1);
}

// Which is not what the standard says, but what some cameras write.
TEST(Exif, OrientationMayBeALong) {
  for (const bool big_endian : {false, true}) {
    const auto with_long = [&](std::uint32_t orientation) {
      const auto number = [&](std::uint64_t value, std::size_t size) {
        return NumberBytes(value, size, big_endian);
      };
      std::string block = ExifBlock({.big_endian = big_endian});
      return block.replace(
          kExifFirst + 2 + 2 * 12, 12,
          number(274, 2) + number(kExifLong, 2) + number(1, 4) + number(orientation, 4));
    };
    for (std::uint32_t orientation = 1; orientation <= 8; ++orientation) {
      std::string block = with_long(orientation);
      EXPECT_EQ(Orientation(block), static_cast<int>(orientation));
      ASSERT_TRUE(PatchExif(block, 10, 20));
      EXPECT_EQ(Orientation(block), 1);
      EXPECT_THAT(ValueOf(block, kExifFirst, 274), Optional(ExifValue{kExifLong, 1}));
    }
    for (const std::uint32_t nonsense : {0u, 9u, 0x10006u, 0xFFFFFFFFu})
      EXPECT_EQ(Orientation(with_long(nonsense)), 1);
  }
}

TEST(Exif, Density) {
  for (const bool big_endian : {false, true}) {
    std::string block = ExifBlock({.big_endian = big_endian, .dots_per_inch = 254});
    const auto density = ExifDensity(block);
    ASSERT_TRUE(density.has_value());
    EXPECT_NEAR(density->x, 10000, 1e-6);
    EXPECT_NEAR(density->y, 10000, 1e-6);
    // ResolutionUnit: centimetres, then none.
    const std::size_t unit = kExifFirst + 2 + 5 * 12 + 8 + (big_endian ? 1 : 0);
    block[unit] = 3;
    ASSERT_TRUE(ExifDensity(block).has_value());
    EXPECT_NEAR(ExifDensity(block)->x, 25400, 1e-6);
    block[unit] = 1;
    EXPECT_EQ(ExifDensity(block), std::nullopt);
    EXPECT_EQ(ExifDensity(ExifBlock({.big_endian = big_endian, .dots_per_inch = 0})), std::nullopt);
    std::string no_denominator = ExifBlock({.big_endian = big_endian});
    std::fill_n(no_denominator.begin() + 98 + 4, 4, '\0');
    EXPECT_EQ(ExifDensity(no_denominator), std::nullopt);
  }
}

TEST(Exif, PatchingMakesItTrueOfTheNewPicture) {
  for (const bool big_endian : {false, true}) {
    const std::string block = ExifBlock({.big_endian = big_endian});
    std::string patched = block;
    ASSERT_TRUE(PatchExif(patched, 40000, 60000));
    EXPECT_EQ(patched.size(), block.size());
    EXPECT_THAT(ValueOf(patched, kExifFirst, 274), Optional(ExifValue{kExifShort, 1}));
    EXPECT_THAT(ValueOf(patched, kExifFirst, 256), Optional(ExifValue{kExifShort, 40000}));
    EXPECT_THAT(ValueOf(patched, kExifFirst, 257), Optional(ExifValue{kExifShort, 60000}));
    EXPECT_THAT(ValueOf(patched, kExifDetails, 40962), Optional(ExifValue{kExifShort, 40000}));
    EXPECT_THAT(ValueOf(patched, kExifDetails, 40963), Optional(ExifValue{kExifLong, 60000}));
    // Nothing else: resolution, the maker's note and where it is.
    EXPECT_EQ(patched.substr(160), block.substr(160));
    EXPECT_THAT(ValueOf(patched, kExifDetails, 37500), Optional(ExifValue{7, 160}));
    EXPECT_EQ(ExifDensity(patched)->x, ExifDensity(block)->x);
    // The first directory is the last one of the list: no thumbnail.
    EXPECT_EQ(patched.substr(kExifFirst + 2 + 7 * 12, 4), std::string(4, '\0'));
    EXPECT_NE(block.substr(kExifFirst + 2 + 7 * 12, 4), std::string(4, '\0'));
  }
}

TEST(Exif, SizesThatAShortDoesNotHoldBecomeLongs) {
  for (const bool big_endian : {false, true}) {
    std::string block = ExifBlock({.big_endian = big_endian});
    ASSERT_TRUE(PatchExif(block, 65536, 2147483647));
    EXPECT_THAT(ValueOf(block, kExifFirst, 256), Optional(ExifValue{kExifLong, 65536}));
    EXPECT_THAT(ValueOf(block, kExifFirst, 257), Optional(ExifValue{kExifLong, 2147483647}));
    EXPECT_THAT(ValueOf(block, kExifDetails, 40962), Optional(ExifValue{kExifLong, 65536}));
    ASSERT_TRUE(PatchExif(block, 7, 65535));
    EXPECT_THAT(ValueOf(block, kExifFirst, 256), Optional(ExifValue{kExifLong, 7}));
  }
}

TEST(Exif, WhatIsNotThereIsNotAdded) {
  const std::string empty = std::string("MM\0*\0\0\0\x08", 8) + std::string("\0\0\0\0\0\0", 6);
  std::string block = empty;
  ASSERT_TRUE(PatchExif(block, 10, 20));
  EXPECT_EQ(block, empty);
  // Without the field of the next directory, at the end of the block.
  block.resize(10);
  EXPECT_TRUE(PatchExif(block, 10, 20));
}

// Where the field of the next directory is left out, a value or a directory may be in its place.
TEST(Exif, WhatIsInPlaceOfTheNextDirectoryStays) {
  const auto entry = [](std::uint64_t tag, std::uint64_t type, std::uint64_t count,
                        std::uint64_t value) {
    return NumberBytes(tag, 2, false) + NumberBytes(type, 2, false) + NumberBytes(count, 4, false) +
           NumberBytes(value, 4, false);
  };
  const std::string head =
      "II*" + std::string(1, '\0') + NumberBytes(8, 4, false) + NumberBytes(2, 2, false);
  const std::size_t end = head.size() + 24;
  const std::string orientation = entry(274, kExifShort, 1, 6), upright = entry(274, 3, 1, 1);
  const std::string directory = NumberBytes(1, 2, false) + entry(1, 2, 2, 'N');
  const struct {
    std::string entry, behind;
  } blocks[] = {{entry(270, 2, 12, end), std::string("HELLOWORLD!", 12)},
                // A number that would be a directory's offset.
                {entry(282, 5, 1, end), NumberBytes(8, 4, false) + NumberBytes(1, 4, false)},
                {entry(34853, kExifLong, 1, end), directory},
                // No directory is there.
                {entry(271, 2, 2, 0x41), "what is this"}};
  for (const auto& block : blocks) {
    std::string exif = head + block.entry + orientation + block.behind;
    EXPECT_TRUE(PatchExif(exif, 9, 7));
    EXPECT_EQ(exif.substr(end - 12, 12), upright);
    EXPECT_EQ(exif.substr(end), block.behind);
  }
}

TEST(Exif, DamageIsFoundAndNothingDone) {
  const std::string good = ExifBlock({});
  const auto with = [&](std::size_t at, std::uint32_t value) {
    std::string block = good;
    return block.replace(at, 4, NumberBytes(value, 4, false));
  };
  const std::size_t pointer = kExifFirst + 2 + 6 * 12 + 8;
  const std::string blocks[] = {
      "",
      "II",
      "nothing of the kind",
      good.substr(0, 60),   // within the first directory
      good.substr(0, 140),  // within that of the details
      with(4, 0),           // the first directory in the header
      with(4, 0xFFFFFFFF),
      with(4, 236),  // past the end, nearly
      with(pointer, 0xFFFFFFF0),
      with(pointer, 4),
      with(pointer, kExifFirst),      // a loop
      with(pointer, kExifFirst + 12)  // one in the other
  };
  for (const std::string& block : blocks) {
    std::string patched = block;
    EXPECT_FALSE(PatchExif(patched, 10, 20)) << testing::PrintToString(block);
    EXPECT_EQ(patched, block);
    Orientation(block);
    ExifDensity(block);
  }
}

// To be run with sanitizers, too: whatever is in the block, it is left in its bounds.
TEST(Exif, RandomDamageDoesNoHarm) {
  std::mt19937 random(5);
  int patched = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string block = ExifBlock({.big_endian = round % 2 == 0});
    const std::size_t changes = 1 + random() % 12;
    for (std::size_t i = 0; i < changes; ++i) {
      // Values that are near what the format takes for offsets and counts as well as any.
      const char value = static_cast<char>(random() % 3 == 0 ? random() % 16 : random());
      block[random() % block.size()] = value;
    }
    if (random() % 4 == 0) block.resize(random() % block.size());
    block.shrink_to_fit();
    const std::size_t size = block.size();
    if (PatchExif(block, 100000, 3)) {
      ++patched;
      EXPECT_EQ(Orientation(block), 1);
    }
    EXPECT_EQ(block.size(), size);
    ExifDensity(block);
  }
  // Most of it is in the values, and survives.
  EXPECT_GT(patched, 4000);
}

}  // namespace
}  // namespace tessera
