// What holds for pictures of every format.
#include "tests/pipeline/codec_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "pipeline/image_reader.h"
#include "pipeline/image_writer.h"

namespace tessera {
namespace {

using testing::HasSubstr;

// Every cut of a file is an error, in each of these formats, with one line that names the file.
TEST_F(CodecTest, TruncatedFilesAreErrors) {
  testing::internal::CaptureStderr();
  const Picture picture = NoisePicture({.width = 40, .height = 30});
  const struct {
    const char* name;
    ImageFormat format;
  } kinds[] = {{"a.png", ImageFormat::kPng},   {"a.jpg", ImageFormat::kJpeg},
               {"a.webp", ImageFormat::kWebp}, {"a.tif", ImageFormat::kTiff},
               {"a.bmp", ImageFormat::kBmp},   {"a.ppm", ImageFormat::kPnm}};
  for (const auto& kind : kinds) {
    WritePicture(folder_ / kind.name, kind.format, picture);
    const std::string bytes = ReadBytes(folder_ / kind.name);
    for (const double part : {0.0, 0.001, 0.005, 0.02, 0.3, 0.7, 0.95}) {
      const auto size = static_cast<std::size_t>(part * static_cast<double>(bytes.size()));
      WriteBytes(folder_ / "cut", bytes.substr(0, size));
      const std::string message = ErrorOf([&] { ReadPicture(folder_ / "cut"); });
      EXPECT_THAT(message, HasSubstr("/cut: ")) << kind.name << " cut to " << size << " bytes";
      EXPECT_EQ(message.find('\n'), std::string::npos);
    }
  }
  // The libraries themselves are silent.
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(CodecTest, ContentDecidesNotTheName) {
  const Picture picture = NoisePicture({.width = 20, .height = 10});
  WritePicture(folder_ / "a.png", ImageFormat::kPng, picture);
  for (const char* name : {"b.jpg", "c.txt", "d", "e.bmp"}) {
    std::filesystem::copy(folder_ / "a.png", folder_ / name);
    EXPECT_TRUE(SamePixels(ReadPicture(folder_ / name).picture, picture));
  }
}

TEST_F(CodecTest, WhatIsNoPictureIsSaidToBeNone) {
  WriteBytes(folder_ / "empty.png", "");
  EXPECT_THAT(ErrorOf([&] { ReadPicture(folder_ / "empty.png"); }), HasSubstr("empty"));
  WriteBytes(folder_ / "text.png", "This is no picture at all, though its name says it is.\n");
  EXPECT_THAT(ErrorOf([&] { ReadPicture(folder_ / "text.png"); }), HasSubstr("text.png: "));
  EXPECT_THAT(ErrorOf([&] { ReadPicture(folder_ / "missing.png"); }),
              HasSubstr("No such file or directory"));
  EXPECT_THAT(ErrorOf([&] { ReadPicture(folder_.path()); }), HasSubstr("Is a directory"));
  if (::geteuid() != 0) {
    WriteBytes(folder_ / "secret.png", "x");
    std::filesystem::permissions(folder_ / "secret.png", std::filesystem::perms::none);
    EXPECT_THAT(ErrorOf([&] { ReadPicture(folder_ / "secret.png"); }),
                HasSubstr("Permission denied"));
  }
}

// What a format holds comes back as it was; the lossy ones come close.
TEST_F(CodecTest, EveryFormatRoundTrips) {
  const struct {
    const char* name;
    ImageFormat format;
  } kinds[] = {{"a.png", ImageFormat::kPng},   {"a.jpg", ImageFormat::kJpeg},
               {"a.webp", ImageFormat::kWebp}, {"a.tif", ImageFormat::kTiff},
               {"a.bmp", ImageFormat::kBmp},   {"a.pnm", ImageFormat::kPnm}};
  for (const auto& kind : kinds) {
    for (const int channels : {1, 2, 3, 4}) {
      for (const int bits : {8, 16}) {
        const PictureFormat wanted{
            .width = 37, .height = 21, .channels = channels, .bit_depth = bits};
        const PictureFormat held = HeldFormat(kind.format, wanted);
        const Picture picture = NoisePicture(held);
        WritePicture(folder_ / kind.name, kind.format, picture);
        const Picture back = ReadPicture(folder_ / kind.name).picture;
        ASSERT_EQ(back.format(), held) << kind.name;
        if (kind.format != ImageFormat::kJpeg) {
          ASSERT_TRUE(SamePixels(back, picture)) << kind.name;
        }
        if (held != wanted) {
          EXPECT_THAT(
              ErrorOf([&] { WritePicture(folder_ / "x", kind.format, NoisePicture(wanted)); }),
              HasSubstr("cannot hold"));
        }
      }
    }
  }
}

TEST_F(CodecTest, SizesThatAFormatCannotHoldAreRefused) {
  const Picture wide = NoisePicture({.width = 16384, .height = 1});
  EXPECT_THAT(ErrorOf([&] { WritePicture(folder_ / "a.webp", ImageFormat::kWebp, wide); }),
              HasSubstr("16384x1"));
  EXPECT_EQ(folder_.NumFiles(), 0u);
}

TEST_F(CodecTest, AFullDiskIsAnError) {
  FILE* full = std::fopen("/dev/full", "wb");
  if (full == nullptr) GTEST_SKIP() << "there is no /dev/full";
  for (const ImageFormat format : {ImageFormat::kPng, ImageFormat::kJpeg, ImageFormat::kWebp,
                                   ImageFormat::kTiff, ImageFormat::kBmp, ImageFormat::kPnm}) {
    const Picture picture = NoisePicture({.width = 300, .height = 300});
    EXPECT_NE(ErrorOf([&] {
                const auto writer = MakeImageWriter(format, picture.format(), {}, full);
                const std::int64_t rows = StripRows(format, picture.format());
                for (std::int64_t y = 0; y < 300; y += rows) {
                  const std::int64_t end = std::min<std::int64_t>(300, y + rows);
                  writer->WriteStrip(picture, y, end, writer->PackStrip(picture, y, end));
                }
                writer->Finish();
                Require(std::fflush(full) == 0, "full");
              }),
              "no error");
  }
  std::fclose(full);
}

}  // namespace
}  // namespace tessera
