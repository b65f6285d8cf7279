// How hard a PNG is packed, and what one that claims too much comes to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "pipeline/image_reader.h"
#include "pipeline/image_writer.h"
#include "pipeline/png_strip.h"
#include "tests/pipeline/codec_test.h"
#include "tests/pipeline/metadata_blocks.h"
#include "tests/pipeline/test_pictures.h"

namespace tessera {
namespace {

using testing::HasSubstr;

class PngLevel : public testing::Test {
 protected:
  std::size_t SizeAt(const Picture& picture, std::optional<int> level) {
    WritePicture(folder_ / "a.png", ImageFormat::kPng, picture, {.png_level = level});
    const PictureFile read = ReadPicture(folder_ / "a.png");
    EXPECT_TRUE(SamePixels(read.picture, picture));
    EXPECT_TRUE(read.warnings.empty());
    return ReadBytes(folder_ / "a.png").size();
  }
  TemporaryFolder folder_;
};

TEST_F(PngLevel, MoreEffortMakesSmallerFiles) {
  const Picture photo =
      ReadPicture(std::filesystem::path(TESSERA_SOURCE_DIR) / "samples/mountain.png").picture;
  const std::size_t by_default = SizeAt(photo, std::nullopt), level9 = SizeAt(photo, 9);
  EXPECT_LT(level9, by_default);
  EXPECT_LE(level9, SizeAt(photo, 6));
  EXPECT_LT(SizeAt(photo, 1), SizeAt(photo, 0));
  EXPECT_GT(SizeAt(photo, 0), photo.bytes());
}

TEST_F(PngLevel, EveryLevelJoinsItsStrips) {
  const PictureFormat format{.width = 5000, .height = 60, .channels = 4, .bit_depth = 16};
  ASSERT_GT(format.height, 2 * PngStripRows(format));
  const Picture picture = NoisePicture(format);
  for (std::int64_t x = 0; x < 3000; ++x) {
    for (std::int64_t y = 0; y < 60; ++y) SetSample(picture, x, y, 0, 7);
  }
  for (int level = 0; level <= 9; ++level) EXPECT_GT(SizeAt(picture, level), 0u);
}

TEST_F(PngLevel, SizesThatTheDataCannotHoldAreRefusedAtOnce) {
  Picture picture(PictureFormat{.width = 3, .height = 2});
  WritePicture(folder_ / "a.png", ImageFormat::kPng, picture);
  const std::string plain = ReadBytes(folder_ / "a.png");
  for (const char interlaced : {'\0', '\1'}) {
    std::string head = "IHDR" + NumberBytes(30000, 4, true) + NumberBytes(30000, 4, true) +
                       std::string("\x08\x02\0\0", 4) + interlaced;
    const uLong crc =
        crc32(0, reinterpret_cast<const Bytef*>(head.data()), static_cast<uInt>(head.size()));
    head += NumberBytes(crc, 4, true);
    // With an IDAT chunk that claims to be large, too.
    std::string bytes = plain;
    bytes.replace(12, head.size(), head);
    WriteBytes(folder_ / "b.png", bytes);
    EXPECT_THAT(ErrorOf([&] { OpenImage(folder_ / "b.png"); }), HasSubstr("claims 30000x30000"));
    bytes.replace(33, 4, "\x7F\xFF\xFF\xFF");
    WriteBytes(folder_ / "b.png", bytes);
    EXPECT_THAT(ErrorOf([&] { OpenImage(folder_ / "b.png"); }), HasSubstr("claims 30000x30000"));
  }
}

TEST_F(PngLevel, FlatPicturesAreNotTakenForAbsurd) {
  for (const int channels : {1, 4}) {
    Picture flat({.width = 4000, .height = 3000, .channels = channels});
    std::memset(flat.Row(0), 0, flat.bytes());
    SizeAt(flat, 9);
  }
}

}  // namespace
}  // namespace tessera
