// GIF files, made here by giflib.
#include <gif_lib.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "pipeline/image_reader.h"
#include "tests/pipeline/codec_test.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using GifReading = CodecTest;

struct Frame {
  int x = 0, y = 0, width = 0, height = 0;
  std::vector<GifPixelType> indices = {};  // row by row
  int transparent = NO_TRANSPARENT_COLOR;
  bool interlaced = false;
  std::vector<GifColorType> own_palette = {};
};

const std::vector<GifColorType> kPalette{{10, 20, 30}, {200, 0, 0}, {0, 200, 0}, {7, 7, 7}};

void WriteGif(const std::filesystem::path& path, int width, int height,
              const std::vector<Frame>& frames, bool with_palette = true) {
  GifFileType* gif = EGifOpenFileName(path.c_str(), false, nullptr);
  EGifSetGifVersion(gif, true);
  ColorMapObject* map = GifMakeMapObject(static_cast<int>(kPalette.size()), kPalette.data());
  EGifPutScreenDesc(gif, width, height, 8, 0, with_palette ? map : nullptr);
  GifFreeMapObject(map);
  for (const Frame& frame : frames) {
    GraphicsControlBlock control{.DisposalMode = DISPOSAL_UNSPECIFIED,
                                 .UserInputFlag = false,
                                 .DelayTime = 10,
                                 .TransparentColor = frame.transparent};
    GifByteType extension[4];
    const std::size_t size = EGifGCBToExtension(&control, extension);
    EGifPutExtension(gif, GRAPHICS_EXT_FUNC_CODE, static_cast<int>(size), extension);
    ColorMapObject* own = frame.own_palette.empty()
                              ? nullptr
                              : GifMakeMapObject(static_cast<int>(frame.own_palette.size()),
                                                 frame.own_palette.data());
    EGifPutImageDesc(gif, frame.x, frame.y, frame.width, frame.height, frame.interlaced, own);
    if (own != nullptr) GifFreeMapObject(own);
    std::vector<int> rows;
    if (frame.interlaced) {
      const int first[] = {0, 4, 2, 1}, step[] = {8, 8, 4, 2};
      for (int pass = 0; pass < 4; ++pass)
        for (int y = first[pass]; y < frame.height; y += step[pass]) rows.push_back(y);
    } else {
      for (int y = 0; y < frame.height; ++y) rows.push_back(y);
    }
    for (const int y : rows) {
      std::vector<GifPixelType> line(frame.indices.begin() + y * frame.width,
                                     frame.indices.begin() + (y + 1) * frame.width);
      EGifPutLine(gif, line.data(), frame.width);
    }
  }
  EGifCloseFile(gif, nullptr);
}

std::vector<std::uint32_t> Pixel(const Picture& picture, std::int64_t x, std::int64_t y) {
  std::vector<std::uint32_t> samples;
  for (int c = 0; c < picture.format().channels; ++c) samples.push_back(Sample(picture, x, y, c));
  return samples;
}

TEST_F(GifReading, PaletteAndTransparency) {
  Frame frame{.width = 3, .height = 1, .indices = {2, 0, 1}};
  WriteGif(folder_ / "a", 3, 1, {frame});
  const PictureFile plain = ReadPicture(folder_ / "a");
  EXPECT_THAT(plain.warnings, testing::IsEmpty());
  ASSERT_EQ(plain.picture.format(), (PictureFormat{3, 1, 3, 8}));
  EXPECT_THAT(Pixel(plain.picture, 0, 0), ElementsAre(0, 200, 0));
  EXPECT_THAT(Pixel(plain.picture, 1, 0), ElementsAre(10, 20, 30));

  frame.transparent = 0;
  frame.own_palette = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {0, 0, 0}};
  WriteGif(folder_ / "b", 3, 1, {frame}, false);
  const Picture own = ReadPicture(folder_ / "b").picture;
  ASSERT_EQ(own.format(), (PictureFormat{3, 1, 4, 8}));
  EXPECT_THAT(Pixel(own, 0, 0), ElementsAre(7, 8, 9, 255));
  EXPECT_THAT(Pixel(own, 1, 0), ElementsAre(1, 2, 3, 0));
}

TEST_F(GifReading, OfAnAnimationTheFirstFrameOnItsCanvas) {
  WriteGif(folder_ / "a", 5, 4,
           {{.x = 1, .y = 2, .width = 2, .height = 1, .indices = {1, 2}},
            {.width = 5, .height = 4, .indices = std::vector<GifPixelType>(20, 3)}});
  const PictureFile read = ReadPicture(folder_ / "a");
  EXPECT_THAT(read.warnings, ElementsAre(HasSubstr("animated")));
  ASSERT_EQ(read.picture.format(), (PictureFormat{5, 4, 4, 8}));
  for (std::int64_t y = 0; y < 4; ++y)
    for (std::int64_t x = 0; x < 5; ++x)
      EXPECT_EQ(Sample(read.picture, x, y, 3), y == 2 && (x == 1 || x == 2) ? 255u : 0u);
  EXPECT_THAT(Pixel(read.picture, 1, 2), ElementsAre(200, 0, 0, 255));
  EXPECT_THAT(Pixel(read.picture, 2, 2), ElementsAre(0, 200, 0, 255));
}

TEST_F(GifReading, InterlacedIsTheSamePicture) {
  for (const int height : {1, 2, 5, 8, 19}) {
    Frame frame{.width = 7, .height = height};
    for (int i = 0; i < 7 * height; ++i)
      frame.indices.push_back(static_cast<GifPixelType>((i * i / 3 + i / 7) % 4));
    WriteGif(folder_ / "plain", 7, height, {frame});
    frame.interlaced = true;
    WriteGif(folder_ / "interlaced", 7, height, {frame});
    const Picture plain = ReadPicture(folder_ / "plain").picture;
    EXPECT_TRUE(SamePixels(ReadPicture(folder_ / "interlaced").picture, plain)) << height;
    EXPECT_EQ(Sample(plain, 6, height - 1, 0), kPalette[frame.indices.back()].Red);
  }
}

TEST_F(GifReading, CutFilesAreErrorsUntilTheFrameIsComplete) {
  Frame frame{.width = 30, .height = 20};
  for (int i = 0; i < 600; ++i) frame.indices.push_back(static_cast<GifPixelType>(i * i % 7 % 4));
  for (const bool interlaced : {false, true}) {
    frame.interlaced = interlaced;
    WriteGif(folder_ / "a", 30, 20, {frame});
    const std::string bytes = ReadBytes(folder_ / "a");
    for (std::size_t size = 1; size + 1 < bytes.size(); ++size) {
      WriteBytes(folder_ / "cut", bytes.substr(0, size));
      EXPECT_THAT(ErrorOf([&] { ReadPicture(folder_ / "cut"); }), HasSubstr("/cut: ")) << size;
    }
    // Without the last byte nothing is missing but the end mark.
    WriteBytes(folder_ / "cut", bytes.substr(0, bytes.size() - 1));
    const PictureFile read = ReadPicture(folder_ / "cut");
    EXPECT_EQ(read.warnings.size(), 1u);
    EXPECT_TRUE(SamePixels(read.picture, ReadPicture(folder_ / "a").picture));
  }
}

TEST_F(GifReading, DamageIsHarmless) {
  WriteGif(
      folder_ / "a", 6, 4,
      {{.x = 1, .y = 1, .width = 3, .height = 2, .indices = {0, 1, 2, 3, 2, 1}, .transparent = 1}});
  const std::string bytes = ReadBytes(folder_ / "a");
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const int value : {0, 1, 0x7F, 0xFF}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(value);
      WriteBytes(folder_ / "b", damaged);
      const std::string error = ErrorOf([&] { ReadPicture(folder_ / "b"); });
      EXPECT_TRUE(error == "no error" || error.find("/b: ") != std::string::npos) << error;
    }
  }
  // Far more pixels than the file can hold: nothing of their size is held while they are read.
  std::string huge = bytes;
  for (const std::size_t at : {6u, 8u}) huge.replace(at, 2, "\x30\x75");  // 30000x30000
  WriteBytes(folder_ / "b", huge);
  EXPECT_EQ(OpenImage(folder_ / "b")->HeldBytes(), 0u);
  EXPECT_THAT(ErrorOf([&] { OpenImage(folder_ / "b", {.max_pixels = 1000000}); }),
              HasSubstr("claims 30000x30000"));
}

}  // namespace
}  // namespace tessera
