// JPEG 2000 and Sun raster files, BMP files with palettes, and formats that are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <string>
#include <vector>

#include "pipeline/image_reader.h"
#include "tests/pipeline/codec_test.h"
#include "tests/pipeline/metadata_blocks.h"

namespace tessera {
namespace {

using testing::HasSubstr;

std::string BigEndian(std::uint64_t value, std::size_t size) {
  return NumberBytes(value, size, true);
}

// The main header of a codestream, with a tile that has no data.
struct CodestreamSpec {
  std::uint32_t width = 30000, height = 30000, origin = 0, tile = 30000;
  std::uint32_t components = 3, bits = 8, step = 1;
};
std::string Codestream(const CodestreamSpec& spec) {
  std::string components;
  for (std::uint32_t c = 0; c < spec.components; ++c)
    components += BigEndian(spec.bits - 1, 1) + BigEndian(spec.step, 1) + BigEndian(spec.step, 1);
  return BigEndian(0xFF4FFF51, 4) + BigEndian(38 + components.size(), 2) + BigEndian(0, 2) +
         BigEndian(spec.width, 4) + BigEndian(spec.height, 4) + BigEndian(spec.origin, 4) +
         BigEndian(0, 4) + BigEndian(spec.tile, 4) + BigEndian(spec.tile, 4) + BigEndian(0, 8) +
         BigEndian(spec.components, 2) + components +
         // COD: no layers beside one, 5 levels, blocks of 64x64. QCD: no quantisation.
         BigEndian(0xFF52, 2) + BigEndian(12, 2) + BigEndian(0, 2) + BigEndian(1, 2) +
         BigEndian(0x0105040400, 5) + BigEndian(1, 1) + BigEndian(0xFF5C, 2) + BigEndian(19, 2) +
         std::string(17, '\x40') + BigEndian(0xFF90, 2) + BigEndian(10, 2) + BigEndian(0, 6) +
         BigEndian(1, 2) + BigEndian(0xFF93, 2) + std::string(40, '\0') + BigEndian(0xFFD9, 2);
}

std::string Box(const std::string& type, const std::string& content) {
  return BigEndian(8 + content.size(), 4) + type + content;
}

std::string Jp2(const std::string& codestream) {
  return Box("jP  ", "\r\n\x87\n") + Box("ftyp", "jp2 " + BigEndian(0, 4) + "jp2 ") +
         Box("jp2h", Box("ihdr", BigEndian(1, 4) + BigEndian(1, 4) + BigEndian(3, 2) + "\7\7" +
                                     std::string(2, '\0')) +
                         Box("colr", BigEndian(1, 1) + BigEndian(0, 2) + BigEndian(16, 4))) +
         Box("jp2c", codestream);
}

class Jpeg2000Reading : public CodecTest {
 protected:
  std::string OpeningError(const std::string& bytes) {
    WriteBytes(folder_ / "a", bytes);
    return ErrorOf([&] { OpenImage(folder_ / "a"); });
  }
};

TEST_F(Jpeg2000Reading, ClaimedSizesAreCheckedAgainstTheFile) {
  struct rusage before, after;
  ::getrusage(RUSAGE_SELF, &before);
  const auto both = [&](const CodestreamSpec& spec) {
    const std::string codestream = Codestream(spec), error = OpeningError(codestream);
    EXPECT_EQ(OpeningError(Jp2(codestream)).substr(0, 40), error.substr(0, 40));
    return error;
  };
  EXPECT_THAT(both({}), HasSubstr("claims 30000x30000"));
  EXPECT_THAT(both({.width = 60000, .height = 60000}), HasSubstr("the limit"));
  EXPECT_THAT(both({.width = 0}), HasSubstr("claims 0x30000"));
  EXPECT_THAT(both({.width = 200, .height = 200, .tile = 1}), HasSubstr("40000 tiles"));
  EXPECT_THAT(both({.width = 9, .height = 9, .tile = 0}), HasSubstr("damaged"));
  EXPECT_THAT(both({.width = 9, .height = 9, .origin = 3}), HasSubstr("origin"));
  EXPECT_THAT(both({.width = 9, .height = 9, .components = 2}), HasSubstr("2 channels"));
  EXPECT_THAT(both({.width = 9, .height = 9, .components = 16384}), HasSubstr("16384 channels"));
  EXPECT_THAT(both({.width = 9, .height = 9, .bits = 7}), HasSubstr("7 bits"));
  EXPECT_THAT(both({.width = 9, .height = 9, .bits = 24}), HasSubstr("24 bits"));
  EXPECT_THAT(both({.width = 9, .height = 9, .bits = 0x88}), HasSubstr("signed"));
  EXPECT_THAT(both({.width = 9, .height = 9, .step = 2}), HasSubstr("subsampled"));
  EXPECT_EQ(both({.width = 9, .height = 9}), "no error");
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 100 << 10);  // KB
}

TEST_F(Jpeg2000Reading, HeadersThatAreCutOff) {
  const std::string codestream = Codestream({.width = 9, .height = 9}), jp2 = Jp2(codestream);
  for (std::size_t size = 1; size < 51; ++size)
    EXPECT_NE(OpeningError(codestream.substr(0, size)), "no error") << size;
  for (std::size_t size = 1; size < jp2.size() - codestream.size(); ++size)
    EXPECT_NE(OpeningError(jp2.substr(0, size)), "no error") << size;
  // Boxes that are shorter than their own header, or longer than the file.
  for (const char length : {'\0', '\7', '\x7F'}) {
    std::string damaged = jp2;
    damaged[length == '\x7F' ? 12 : 15] = length;
    EXPECT_THAT(OpeningError(damaged), HasSubstr("damaged"));
  }
}

TEST_F(Jpeg2000Reading, PixelsOfEachKind) {
  const std::vector<int> lossless{cv::IMWRITE_JPEG2000_COMPRESSION_X1000, 1000};
  for (const int type : {CV_8UC1, CV_8UC3, CV_16UC1, CV_16UC3, CV_8UC4}) {
    cv::Mat written(37, 41, type);
    cv::randu(written, 0, CV_MAT_DEPTH(type) == CV_8U ? 256 : 65536);
    cv::imwrite((folder_ / "a.jp2").string(), written, lossless);
    const auto reader = OpenImage(folder_ / "a.jp2");
    const int channels = written.channels(), bits = written.depth() == CV_8U ? 8 : 16;
    ASSERT_EQ(reader->format(), (PictureFormat{41, 37, channels, bits}));
    EXPECT_GE(reader->HeldBytes(), written.total() * written.elemSize());
    const Picture p = ReadAll(*reader);
    for (int y = 0; y < 37; ++y) {
      for (int x = 0; x < 41; ++x) {
        for (int c = 0; c < channels; ++c) {
          const int i = x * channels + (channels >= 3 && c < 3 ? 2 - c : c);
          ASSERT_EQ(static_cast<int>(Sample(p, x, y, c)),
                    bits == 8 ? written.ptr<std::uint8_t>(y)[i] : written.ptr<std::uint16_t>(y)[i]);
        }
      }
    }
  }
}

// 12 bits are stretched to 16.
TEST_F(Jpeg2000Reading, BitsBetween8And16) {
  cv::Mat written(40, 33, CV_16UC1);
  for (int y = 0; y < 40; ++y)
    for (int x = 0; x < 33; ++x)  // what is 0 to 4095 where the middle is not 32768 but 2048
      written.at<std::uint16_t>(y, x) = static_cast<std::uint16_t>(32768 - 2048 + 4095 * x / 32);
  cv::imwrite((folder_ / "a.jp2").string(), written,
              {cv::IMWRITE_JPEG2000_COMPRESSION_X1000, 1000});
  std::string bytes = ReadBytes(folder_ / "a.jp2");
  const std::size_t at = bytes.find(BigEndian(0xFF4FFF51, 4));
  ASSERT_EQ(bytes[at + 42], 15);
  bytes[at + 42] = 11;
  WriteBytes(folder_ / "a.jp2", bytes);
  const Picture p = ReadPicture(folder_ / "a.jp2").picture;
  ASSERT_EQ(p.format(), (PictureFormat{33, 40, 1, 16}));
  for (int x = 0; x < 33; ++x)
    EXPECT_NEAR(Sample(p, x, 3, 0), (4095 * x / 32) * 65535.0 / 4095, 1) << x;
}

TEST_F(Jpeg2000Reading, DamagedDataAreAnErrorOfTheFirstRow) {
  WriteBytes(folder_ / "a.jp2", Jp2(Codestream({.width = 9, .height = 9}).substr(0, 100)));
  const auto reader = OpenImage(folder_ / "a.jp2");
  EXPECT_NE(ErrorOf([&] { ReadAll(*reader); }), "no error");
}

std::string SunRaster(std::uint32_t width, std::uint32_t height, std::uint32_t bits,
                      std::uint32_t type, const std::string& palette, const std::string& pixels) {
  return BigEndian(0x59A66A95, 4) + BigEndian(width, 4) + BigEndian(height, 4) +
         BigEndian(bits, 4) + BigEndian(pixels.size(), 4) + BigEndian(type, 4) +
         BigEndian(palette.empty() ? 0 : 1, 4) + BigEndian(palette.size(), 4) + palette + pixels;
}

using SunRasterReading = Jpeg2000Reading;

TEST_F(SunRasterReading, ClaimedSizesAreCheckedAgainstTheFile) {
  const std::string pixels(64, '\0');
  EXPECT_THAT(OpeningError(SunRaster(32000, 32000, 24, 1, "", pixels)), HasSubstr("too soon"));
  EXPECT_THAT(OpeningError(SunRaster(60000, 60000, 24, 1, "", pixels)), HasSubstr("the limit"));
  EXPECT_THAT(OpeningError(SunRaster(30000, 30000, 1, 1, "", pixels)), HasSubstr("too soon"));
  EXPECT_THAT(OpeningError(SunRaster(30000, 30000, 0, 1, "", pixels)), HasSubstr("damaged"));
  EXPECT_THAT(OpeningError(SunRaster(3, 2, 8, 2, "", pixels)), HasSubstr("type 2"));
  EXPECT_THAT(OpeningError(SunRaster(3, 2, 8, 1, "", pixels).substr(0, 20)), HasSubstr("damaged"));
}

TEST_F(SunRasterReading, Pixels) {
  WriteBytes(folder_ / "a", SunRaster(1, 2, 24, 1, "", std::string("\1\2\3\0\4\5\6\0", 8)));
  Picture p = ReadPicture(folder_ / "a").picture;
  ASSERT_EQ(p.format(), (PictureFormat{1, 2, 3, 8}));
  EXPECT_EQ(Sample(p, 0, 1, 0), 6u);
  EXPECT_EQ(Sample(p, 0, 1, 2), 4u);
  // A palette of colours, and one of greys.
  WriteBytes(folder_ / "a", SunRaster(2, 1, 8, 1, "\1\2\3\4\5\6", std::string("\0\1", 2)));
  p = ReadPicture(folder_ / "a").picture;
  ASSERT_EQ(p.format(), (PictureFormat{2, 1, 3, 8}));
  EXPECT_EQ(Sample(p, 1, 0, 0), 2u);
  EXPECT_EQ(Sample(p, 1, 0, 2), 6u);
  WriteBytes(folder_ / "a", SunRaster(2, 1, 8, 1, "\1\x9\1\x9\1\x9", std::string("\0\1", 2)));
  p = ReadPicture(folder_ / "a").picture;
  ASSERT_EQ(p.format(), (PictureFormat{2, 1, 1, 8}));
  EXPECT_EQ(Sample(p, 1, 0, 0), 9u);
}

using OtherFormats = Jpeg2000Reading;

// Only what the size is known of beforehand is given to OpenCV.
TEST_F(OtherFormats, AreRefusedAsTheyAre) {
  const std::string floats = "floating-point";
  EXPECT_THAT(OpeningError("#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 30000 +X 30000\n"),
              HasSubstr(floats));
  EXPECT_THAT(OpeningError("PF\n30000 30000\n-1.0\n"), HasSubstr(floats));
  EXPECT_THAT(OpeningError("\x76\x2F\x31\x01\2"), HasSubstr(floats));
  EXPECT_THAT(OpeningError("<VRTDataset rasterXSize='9' rasterYSize='9'></VRTDataset>"),
              HasSubstr("no picture of a known format"));
  EXPECT_THAT(OpeningError("BM"), HasSubstr("no picture of a known format"));
}

}  // namespace
}  // namespace tessera
