// Options on sizes and pixels: that each arrives where it has to.
#include "pipeline/metadata.h"
#include "tests/apps/upscale_command.h"
#include "tests/pipeline/metadata_blocks.h"

namespace tessera {
namespace {

using testing::HasSubstr;

class UpscaleOptions : public UpscaleCommand {
 protected:
  // The result of the doubling model with these options.
  Picture Result(std::vector<std::string> options, const std::string& name = "out.png") const {
    options.insert(options.begin(), {input_, Path(name), "--overwrite", "--quiet"});
    const ProgramResult result = Upscale(std::move(options));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return ReadPicture(Path(name)).picture;
  }
};

TEST_F(UpscaleOptions, Sizes) {
  const struct {
    std::vector<std::string> options;
    std::int64_t width, height;
  } cases[] = {{{"--width", "100"}, 100, 78},
               {{"--height", "100"}, 128, 100},
               {{"--width", "50", "--height", "90"}, 50, 90},
               {{"--longest", "111"}, 111, 87},
               {{"--shortest", "15"}, 19, 15}};
  for (const auto& c : cases) {
    const Picture out = Result(c.options);
    EXPECT_EQ(out.width(), c.width) << c.options[0];
    EXPECT_EQ(out.height(), c.height) << c.options[0];
  }
}

TEST_F(UpscaleOptions, BitDepth) {
  const Picture deep = Result({"--bit-depth", "16"});
  EXPECT_EQ(deep.format().bit_depth, 16);
  EXPECT_EQ(Sample(deep, 10, 12, 1), Sample(picture_, 5, 6, 1) * 257);
  WritePicture(input_, ImageFormat::kPng, NoisePicture({.width = 9, .height = 9, .bit_depth = 16}));
  EXPECT_EQ(Result({}).format().bit_depth, 16);
  EXPECT_EQ(Result({"--bit-depth", "8"}).format().bit_depth, 8);
}

TEST_F(UpscaleOptions, Background) {
  const Picture clear({.width = 8, .height = 8, .channels = 4});
  for (std::int64_t y = 0; y < 8; ++y)
    for (std::int64_t x = 0; x < 8; ++x)
      for (int c = 0; c < 4; ++c) SetSample(clear, x, y, c, 0);
  WritePicture(input_, ImageFormat::kPng, clear);
  const auto pixel = [&](const std::vector<std::string>& options) {
    const Picture out = Result(options, "o.bmp");
    return std::vector{Sample(out, 5, 5, 0), Sample(out, 5, 5, 1), Sample(out, 5, 5, 2)};
  };
  using testing::ElementsAre;
  EXPECT_THAT(pixel({"-f", "bmp", "--background", "#1080fF"}), ElementsAre(16, 128, 255));
  EXPECT_THAT(pixel({"-f", "bmp", "--background", "1,2,3"}), ElementsAre(1, 2, 3));
}

// A network that adds up 3x3 pixels, with zeros around.
TEST_F(UpscaleOptions, EdgesAndTextures) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Output("y");
  std::vector<float> mean(9 * 9);
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t k = 0; k < 9; ++k) mean[(c * 3 + c) * 9 + k] = 1.0f / 9;
  m.Floats("w", {3, 3, 3, 3}, mean);
  m.Node("Conv", {"x", "w"}, {"y"}, {{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}});
  model_ = Path("mean.onnx");
  WriteBytes(model_, m.Bytes());
  // Red 90 in columns 0 to 5, 180 in 6 to 11.
  const Picture halves({.width = 12, .height = 9});
  for (std::int64_t y = 0; y < 9; ++y)
    for (std::int64_t x = 0; x < 12; ++x)
      for (int c = 0; c < 3; ++c) SetSample(halves, x, y, c, x < 6 ? 90 : 180);
  WritePicture(input_, ImageFormat::kPng, halves);
  const auto left = [&](const std::vector<std::string>& options) {
    return Sample(Result(options), 0, 4, 0);
  };
  EXPECT_EQ(left({}), 90u);
  EXPECT_EQ(left({"--edge", "reflect"}), 90u);
  EXPECT_EQ(left({"--edge", "zero"}), 60u);
  EXPECT_EQ(left({"--wrap", "x"}), 120u);
  EXPECT_EQ(left({"--wrap", "xy"}), 120u);
  EXPECT_EQ(left({"--wrap", "y"}), 90u);
}

TEST_F(UpscaleOptions, AlphaByTheModel) {
  // The model repeats pixels, bicubic interpolation does not.
  const Picture picture = NoisePicture({.width = 12, .height = 12, .channels = 4});
  for (std::int64_t y = 0; y < 12; ++y)
    for (std::int64_t x = 0; x < 12; ++x)
      SetSample(picture, x, y, 3, static_cast<std::uint32_t>(60 + 10 * x));
  WritePicture(input_, ImageFormat::kPng, picture);
  const Picture by_model = Result({"--alpha", "model"}), bicubic = Result({"--alpha", "bicubic"});
  for (std::int64_t x = 0; x < 24; ++x)
    EXPECT_EQ(Sample(by_model, x, 7, 3), Sample(picture, x / 2, 3, 3));
  EXPECT_LT(Sample(bicubic, 10, 7, 3), Sample(bicubic, 11, 7, 3));
  EXPECT_TRUE(SamePixels(Result({}), bicubic));
}

TEST_F(UpscaleOptions, MaxPixels) {
  EXPECT_EQ(Result({"--max-pixels", "1073"}).width(), 74);
  ExpectFailure(1, "in.png", "1072", {input_, Path("o.png"), "--max-pixels", "1072"});
}

TEST_F(UpscaleOptions, MetadataGoAlongUnlessStripped) {
  const Metadata metadata{.icc = IccBlock("RGB "),
                          .exif = ExifBlock({.orientation = 6}),
                          .xmp = kXmpPacket,
                          .density = Metadata::Density{.x = 10000, .y = 10000}};
  for (const std::string in : {"m.png", "m.jpg", "m.webp", "m.tif"}) {
    WritePicture(Path(in), *FormatOfExtension(in), picture_, {.metadata = metadata});
    const bool turned = in != "m.tif";  // a TIFF is turned by a tag of its own
    for (const std::string out : {"o.png", "o.jpg", "o.webp", "o.tif"}) {
      SCOPED_TRACE(in + " to " + out);
      ASSERT_EQ(Upscale({Path(in), Path(out), "--overwrite"}).exit_code, 0);
      const std::unique_ptr<ImageReader> reader = OpenImage(Path(out));
      EXPECT_EQ(reader->format().width, turned ? 2 * 29 : 2 * 37);
      const Metadata& kept = reader->metadata();
      EXPECT_EQ(kept.icc, metadata.icc);
      EXPECT_THAT(kept.xmp, HasSubstr("tiff:Orientation=\"1\""));
      if (in != "m.webp") {  // has no place for it but EXIF, whose 300 dpi count then
        ASSERT_TRUE(kept.density || out == "o.webp");
        if (kept.density) {
          EXPECT_NEAR(kept.density->x, 10000, 20);
        }
      }
      if (turned && out != "o.tif") {
        EXPECT_EQ(ValueOf(kept.exif, kExifFirst, 274), (ExifValue{kExifShort, 1}));
        EXPECT_EQ(ValueOf(kept.exif, kExifFirst, 256), (ExifValue{kExifShort, 2 * 29}));
      }

      ASSERT_EQ(Upscale({Path(in), Path(out), "--overwrite", "--strip"}).exit_code, 0);
      const std::unique_ptr<ImageReader> stripped = OpenImage(Path(out));
      EXPECT_EQ(stripped->format().width, reader->format().width);
      EXPECT_EQ(stripped->metadata().icc + stripped->metadata().exif + stripped->metadata().xmp,
                "");
    }
  }
}

TEST_F(UpscaleOptions, QualityAndPngLevel) {
  Result({"--quality", "20"}, "low.jpg");
  Result({"--quality", "95"}, "high.jpg");
  EXPECT_LT(2 * ReadBytes(Path("low.jpg")).size(), ReadBytes(Path("high.jpg")).size());
  Result({}, "default.jpg");
  EXPECT_EQ(ReadBytes(Path("default.jpg")), ReadBytes(Path("high.jpg")));
  Result({"--png-level", "0"}, "plain.png");
  Result({"--png-level", "9"}, "packed.png");
  EXPECT_LT(ReadBytes(Path("packed.png")).size(), ReadBytes(Path("plain.png")).size());
}

}  // namespace
}  // namespace tessera
