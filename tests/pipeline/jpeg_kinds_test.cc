// Every kind of JPEG shows the picture that went into it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "pipeline/image_reader.h"
#include "tests/pipeline/codec_test.h"
#include "tests/pipeline/jpeg_files.h"
#include "tests/pipeline/metadata_blocks.h"
#include "tests/pipeline/test_pictures.h"

namespace tessera {
namespace {

using testing::HasSubstr;

// Waves that are slow enough for any sampling, of another phase in each channel.
Picture Waves(const PictureFormat& format) {
  Picture picture(format);
  for (std::int64_t y = 0; y < format.height; ++y) {
    for (std::int64_t x = 0; x < format.width; ++x) {
      for (int c = 0; c < format.channels; ++c) {
        const double phase = static_cast<double>(x) / 25 + static_cast<double>(y) / 40 + c;
        SetSample(picture, x, y, c, static_cast<std::uint32_t>(128 + 90 * std::sin(phase)));
      }
    }
  }
  return picture;
}

// What ink on white paper looks like: 255 is full ink.
Picture Printed(const Picture& ink) {
  Picture rgb(PictureFormat{.width = ink.width(), .height = ink.height()});
  for (std::int64_t y = 0; y < ink.height(); ++y) {
    for (std::int64_t x = 0; x < ink.width(); ++x) {
      const double paper = 1 - Sample(ink, x, y, 3) / 255.0;
      for (int c = 0; c < 3; ++c) {
        const double light = (255.0 - Sample(ink, x, y, c)) * paper;
        SetSample(rgb, x, y, c, static_cast<std::uint32_t>(std::lround(light)));
      }
    }
  }
  return rgb;
}

void ExpectLike(const Picture& picture, const Picture& expected, double mean, double most) {
  ASSERT_EQ(picture.format(), expected.format());
  double sum = 0, worst = 0;
  for (std::int64_t y = 0; y < picture.height(); ++y) {
    for (std::int64_t x = 0; x < picture.width(); ++x) {
      for (int c = 0; c < picture.format().channels; ++c) {
        const double difference =
            std::abs(1.0 * Sample(picture, x, y, c) - Sample(expected, x, y, c));
        sum += difference;
        worst = std::max(worst, difference);
      }
    }
  }
  EXPECT_LE(sum / static_cast<double>(picture.bytes()), mean);
  EXPECT_LE(worst, most);
}

class JpegKinds : public testing::Test {
 protected:
  Picture Read() { return ReadPicture(folder_ / "a.jpg").picture; }

  TemporaryFolder folder_;
};

struct Kind {
  const char* name;
  std::function<void(jpeg_compress_struct&)> set_up;
};
const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> kinds{
      {"sequential", [](jpeg_compress_struct&) {}},
      {"progressive", [](jpeg_compress_struct& jpeg) { jpeg_simple_progression(&jpeg); }},
      {"restart markers", [](jpeg_compress_struct& jpeg) { jpeg.restart_interval = 3; }},
      {"arithmetic", [](jpeg_compress_struct& jpeg) { jpeg.arith_code = TRUE; }},
      {"optimised", [](jpeg_compress_struct& jpeg) { jpeg.optimize_coding = TRUE; }},
      {"progressive with restart markers and arithmetic", [](jpeg_compress_struct& jpeg) {
         jpeg_simple_progression(&jpeg);
         jpeg.restart_interval = 5;
         jpeg.arith_code = TRUE;
       }}};
  return kinds;
}

TEST_F(JpegKinds, ColourInEverySampling) {
  // Sizes that are no multiple of a block, with rows of blocks that are cut.
  const Picture picture = Waves({.width = 101, .height = 67});
  const int samplings[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {4, 2}, {1, 4}};
  for (const auto& [horizontal, vertical] : samplings) {
    for (const Kind& kind : Kinds()) {
      SCOPED_TRACE(testing::Message() << kind.name << ", " << horizontal << "x" << vertical);
      WriteJpegFile(folder_ / "a.jpg", picture, JCS_RGB, [&](jpeg_compress_struct& jpeg) {
        jpeg.comp_info[0].h_samp_factor = horizontal;
        jpeg.comp_info[0].v_samp_factor = vertical;
        kind.set_up(jpeg);
      });
      ExpectLike(Read(), picture, 2, 14);
    }
  }
}

TEST_F(JpegKinds, Grey) {
  const Picture picture = Waves({.width = 101, .height = 67, .channels = 1});
  for (const Kind& kind : Kinds()) {
    SCOPED_TRACE(kind.name);
    WriteJpegFile(folder_ / "a.jpg", picture, JCS_GRAYSCALE, kind.set_up);
    ExpectLike(Read(), picture, 1, 4);
  }
}

TEST_F(JpegKinds, Ink) {
  const Picture ink = Waves({.width = 101, .height = 67, .channels = 4});
  Picture inverted(ink.format());
  for (std::int64_t y = 0; y < ink.height(); ++y) {
    for (std::size_t i = 0; i < ink.format().RowBytes(); ++i)
      inverted.Row<std::uint8_t>(y)[i] =
          static_cast<std::uint8_t>(255 - ink.Row<std::uint8_t>(y)[i]);
  }
  const Picture printed = Printed(ink);
  for (const Kind& kind : Kinds()) {
    SCOPED_TRACE(kind.name);
    const auto write = [&](const Picture& picture, J_COLOR_SPACE colours, bool adobe) {
      WriteJpegFile(folder_ / "a.jpg", picture, JCS_CMYK, [&](jpeg_compress_struct& jpeg) {
        jpeg_set_colorspace(&jpeg, colours);
        jpeg.write_Adobe_marker = adobe ? TRUE : FALSE;
        kind.set_up(jpeg);
      });
    };
    write(ink, JCS_CMYK, false);
    ExpectLike(Read(), printed, 1.5, 8);
    write(inverted, JCS_CMYK, true);
    ExpectLike(Read(), printed, 1.5, 8);
    write(inverted, JCS_YCCK, true);
    ExpectLike(Read(), printed, 1.5, 8);
  }
}

TEST_F(JpegKinds, HeldBytes) {
  const Picture picture = Waves({.width = 160, .height = 96});
  const auto held = [&](std::uint32_t orientation, bool progressive) {
    WriteJpegFile(
        folder_ / "a.jpg", picture, JCS_RGB,
        [&](jpeg_compress_struct& jpeg) {
          if (progressive) jpeg_simple_progression(&jpeg);
        },
        [&](jpeg_compress_struct& jpeg) {
          const std::string exif =
              std::string("Exif\0\0", 6) + ExifBlock({.orientation = orientation});
          jpeg_write_marker(&jpeg, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(exif.data()),
                            static_cast<unsigned>(exif.size()));
        });
    const auto reader = OpenImage(folder_ / "a.jpg");
    EXPECT_EQ(reader->format().width, orientation > 4 ? 96 : 160);
    const std::size_t bytes = reader->HeldBytes();
    ReadAll(*reader);
    EXPECT_EQ(reader->HeldBytes(), bytes);
    return bytes;
  };
  EXPECT_EQ(held(1, false), 0u);
  EXPECT_GE(held(8, false), picture.bytes());
  // Two bytes for each sample: all of luma, a quarter of each chroma.
  EXPECT_EQ(held(1, true), picture.bytes() / 3 * 3 / 2 * 2);
  EXPECT_EQ(held(3, true), held(1, true) + held(3, false));
}

// Whatever is cut off: nothing is read as grey. Only the end marker is not needed, if nothing but
// it can be missing.
TEST_F(JpegKinds, CutFilesAreErrorsUnlessOnlyTheEndMarkerIsMissing) {
  struct Case {
    Kind kind;
    bool may_lack_end;
  };
  const Case cases[] = {
      {Kinds()[0], true},
      {Kinds()[1], false},
      {Kinds()[2], true},
      {Kinds()[3], false},
      {{"subsampled",
        [](jpeg_compress_struct& jpeg) {
          jpeg.comp_info[0].h_samp_factor = jpeg.comp_info[0].v_samp_factor = 2;
        }},
       true},
      {{"each row of blocks restarts",
        [](jpeg_compress_struct& jpeg) { jpeg.restart_in_rows = 1; }},
       true},
      {{"a scan for each component",
        [](jpeg_compress_struct& jpeg) {
          static const jpeg_scan_info kScans[] = {
              {1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
          jpeg.scan_info = kScans;
          jpeg.num_scans = 3;
        }},
       false},
  };
  const Picture noise = NoisePicture({.width = 11, .height = 19});
  for (const auto& [kind, may_lack_end] : cases) {
    SCOPED_TRACE(kind.name);
    WriteJpegFile(folder_ / "a.jpg", noise, JCS_RGB, kind.set_up);
    const PictureFile whole = ReadPicture(folder_ / "a.jpg");
    EXPECT_TRUE(whole.warnings.empty());
    const std::size_t whole_size = std::filesystem::file_size(folder_ / "a.jpg");
    for (std::size_t size = whole_size - 1; size >= kFormatHeadBytes; --size) {
      SCOPED_TRACE(testing::Message() << size << " of " << whole_size << " bytes");
      std::filesystem::resize_file(folder_ / "a.jpg", size);
      if (may_lack_end && size + 2 >= whole_size) {
        const PictureFile file = ReadPicture(folder_ / "a.jpg");
        EXPECT_TRUE(SamePixels(file.picture, whole.picture));
        EXPECT_THAT(file.warnings, testing::ElementsAre("the file has no end marker"));
      } else {
        ASSERT_EQ(ErrorOf([&] { ReadPicture(folder_ / "a.jpg"); }),
                  (folder_ / "a.jpg").string() + ": the file ends too soon");
      }
    }
  }
}

// Where libjpeg would make room for all of the picture.
TEST_F(JpegKinds, AbsurdSizesAreRefusedAtOnce) {
  for (const bool progressive : {false, true}) {
    WriteJpegFile(folder_ / "a.jpg", Waves({.width = 16, .height = 16}), JCS_RGB,
                  [&](jpeg_compress_struct& jpeg) {
                    if (progressive) jpeg_simple_progression(&jpeg);
                  });
    std::string bytes = ReadBytes(folder_ / "a.jpg");
    const std::size_t frame = bytes.find(progressive ? "\xFF\xC2" : "\xFF\xC0");
    ASSERT_NE(frame, std::string::npos);
    bytes.replace(frame + 5, 4, "\x75\x30\x75\x30");  // 30000x30000
    WriteBytes(folder_ / "b.jpg", bytes);
    EXPECT_THAT(ErrorOf([&] { OpenImage(folder_ / "b.jpg"); }), HasSubstr("claims 30000x30000"));
  }
}

// The most that a flat picture can be packed is let through.
TEST_F(JpegKinds, FlatPicturesAreNotTakenForAbsurd) {
  Picture flat({.width = 4000, .height = 3000});
  std::memset(flat.Row(0), 77, flat.bytes());
  for (const Kind& kind : Kinds()) {
    WriteJpegFile(folder_ / "a.jpg", flat, JCS_RGB, [&](jpeg_compress_struct& jpeg) {
      kind.set_up(jpeg);
      if (!jpeg.arith_code) jpeg.optimize_coding = TRUE;
    });
    ExpectLike(Read(), flat, 0, 0);
  }
}

// A scan of a few bytes takes as long as one of many.
TEST_F(JpegKinds, ScansAreLimited) {
  const Picture picture = Waves({.width = 64, .height = 48, .channels = 1});
  // The mean of each block, and the rest of it: what comes again overwrites it.
  const jpeg_scan_info scans[] = {{1, {0}, 0, 0, 0, 0}, {1, {0}, 1, 63, 0, 0}};
  WriteJpegFile(folder_ / "a.jpg", picture, JCS_GRAYSCALE, [&](jpeg_compress_struct& jpeg) {
    jpeg.scan_info = scans;
    jpeg.num_scans = 2;
  });
  const std::string bytes = ReadBytes(folder_ / "a.jpg");
  const std::size_t at = bytes.rfind("\xFF\xDA"), end = bytes.size() - 2;
  const Picture expected = ReadPicture(folder_ / "a.jpg").picture;
  const auto write = [&](int count) {
    std::string many = bytes.substr(0, at);
    for (int i = 1; i < count; ++i) many += bytes.substr(at, end - at);
    WriteBytes(folder_ / "a.jpg", many + bytes.substr(end));
  };
  write(500);
  EXPECT_TRUE(SamePixels(ReadPicture(folder_ / "a.jpg").picture, expected));
  write(501);
  EXPECT_THAT(ErrorOf([&] { ReadPicture(folder_ / "a.jpg"); }),
              testing::HasSubstr("has more than 500 scans"));
}

}  // namespace
}  // namespace tessera
