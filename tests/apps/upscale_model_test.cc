// Which model the command takes.
#include "tests/apps/upscale_command.h"

namespace tessera {
namespace {

using testing::HasSubstr;

TEST_F(UpscaleCommand, WrongModelsAreExitCode2) {
  const auto expect_failure = [&](const std::string& name, const std::string& reason) {
    model_ = Path(name);
    ExpectFailure(2, name, reason, {input_, output_});
  };
  expect_failure("none.onnx", "no such file");
  WriteBytes(Path("text.onnx"), "this is no model");
  expect_failure("text.onnx", "");
  WriteBytes(Path("cut.onnx"), NearestModel(2).substr(0, 100));
  expect_failure("cut.onnx", "");
  TestModel m;
  m.Input("x", {1, 100}).Output("y").Node("Identity", {"x"}, {"y"});
  WriteBytes(Path("flat.onnx"), m.Bytes());
  expect_failure("flat.onnx", "no picture");
}

// Models come from anywhere, and so do the names in them.
TEST_F(UpscaleCommand, NamesInModelsCannotForgeMessages) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Output("y").Node("No\n\x1b[31mSuch", {"x"}, {"y"});
  model_ = Path("evil.onnx");
  WriteBytes(model_, m.Bytes());
  // ExpectFailure wants one line; it holds no escape that a terminal would obey either.
  ExpectFailure(2, "evil.onnx", "[31mSuch", {input_, output_});
  const ProgramResult result = Upscale({input_, output_});
  EXPECT_EQ(result.err.find('\x1b'), std::string::npos) << result.err;
}

TEST_F(UpscaleCommand, TheBuiltInModelNeedsNoFile) {
  ASSERT_EQ(RunProgram({"upscale", input_, output_}).exit_code, 0);
  const Picture by_default = ReadPicture(output_).picture;
  EXPECT_EQ(by_default.width(), 4 * 37);
  ASSERT_EQ(
      RunProgram({"upscale", input_, output_, "--overwrite", "--model", "default-x4"}).exit_code,
      0);
  EXPECT_TRUE(SamePixels(ReadPicture(output_).picture, by_default));
}

TEST_F(UpscaleCommand, TheDefaultModelGoesByScale) {
  const struct {
    const char *scale, *model;
  } cases[] = {
      {"1.5", "default-x2"}, {"2", "default-x2"}, {"2.5", "default-x4"}, {"5", "default-x4"}};
  for (const auto& c : cases) {
    ASSERT_EQ(RunProgram({"upscale", input_, output_, "--overwrite", "-s", c.scale}).exit_code, 0);
    const Picture by_default = ReadPicture(output_).picture;
    ASSERT_EQ(RunProgram({"upscale", input_, output_, "--overwrite", "-s", c.scale, "-m", c.model})
                  .exit_code,
              0);
    EXPECT_TRUE(SamePixels(ReadPicture(output_).picture, by_default)) << c.scale;
  }
}

TEST_F(UpscaleCommand, FindsModelsByName) {
  // tripling in a folder that is named, doubling in the user's own, under two names each.
  const std::filesystem::path named = folder_ / "named", own = folder_ / "data/tessera/models";
  std::filesystem::create_directories(named);
  std::filesystem::create_directories(own);
  for (const char* name : {"both.onnx", "default-x4.onnx"}) {
    WriteBytes(named / name, NearestModel(3));
    WriteBytes(own / name, NearestModel(2));
  }
  WriteBytes(own / "own.onnx", NearestModel(2));
  const std::vector<std::string> data = {"XDG_DATA_HOME=" + Path("data")};
  const auto width = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"upscale", input_, output_, "--overwrite"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = RunProgram(arguments, data);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return ReadPicture(output_).picture.width() / 37;
  };
  EXPECT_EQ(width({"-m", "own"}), 2);
  EXPECT_EQ(width({"-m", "both"}), 2);
  EXPECT_EQ(width({"-m", "both", "--model-path", named.string()}), 3);
  EXPECT_EQ(width({"-m", "default-x4", "--model-path", named.string()}), 3);
  ASSERT_EQ(RunProgram({"upscale", "--overwrite", "-m", "both", "--model-path", named.string(),
                        input_, output_})
                .exit_code,
            0);
  EXPECT_EQ(width({"-m", (own / "both.onnx").string(), "--model-path", named.string()}), 2);

  const ProgramResult unknown =
      RunProgram({"upscale", input_, output_, "-m", "own", "--model-path", named.string()});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("own: no such file, nor a model of that name"));
  const ProgramResult no_folder = RunProgram({"upscale", "--list-models", "--model-path", input_});
  EXPECT_EQ(no_folder.exit_code, 2);
  EXPECT_THAT(no_folder.err, HasSubstr("in.png: is no folder"));
  EXPECT_EQ(no_folder.out, "");
  // A path is none of the names, wherever it would lead from a folder of models.
  const ProgramResult path = RunProgram(
      {"upscale", input_, output_, "-m", "../named/both", "--model-path", named.string()});
  EXPECT_EQ(path.exit_code, 2);
}

TEST_F(UpscaleCommand, AFolderAndAName) {
  std::filesystem::create_directory(folder_ / "models");
  WriteBytes(Path("models/a.onnx"), NearestModel(2));
  WriteBytes(Path("models/b.onnx"), NearestModel(3));
  const auto upscale = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"upscale", input_, output_, "--overwrite"});
    return RunProgram(options);
  };
  ASSERT_EQ(upscale({"-m", Path("models"), "-n", "a"}).exit_code, 0);
  EXPECT_EQ(ReadPicture(output_).picture.width(), 2 * 37);
  ASSERT_EQ(upscale({"-m", Path("models"), "--model-name", "b"}).exit_code, 0);
  EXPECT_EQ(ReadPicture(output_).picture.width(), 3 * 37);
  ASSERT_EQ(upscale({"-n", "b", "--model-path", Path("models")}).exit_code, 0);
  EXPECT_EQ(ReadPicture(output_).picture.width(), 3 * 37);

  const auto expect_refused = [&](const std::vector<std::string>& options,
                                  const std::string& reason) {
    const ProgramResult result = upscale(options);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr(reason));
  };
  expect_refused({"-m", Path("models")}, "--model-name says which of its models (a, b)");
  expect_refused({"-m", Path("models"), "-n", "c"}, "c: no such file, nor a model of that name");
  expect_refused({"-m", model_, "-n", "a"}, "name two models");
  // A file is no name.
  expect_refused({"-n", model_}, "no such file, nor a model of that name");
}

// Grey 60 through models that make it 1 and 3 times as bright.
class UpscaleBlend : public UpscaleCommand {
 protected:
  UpscaleBlend() {
    const Picture grey({.width = 9, .height = 9});
    for (std::int64_t y = 0; y < 9; ++y) {
      for (std::int64_t x = 0; x < 9; ++x) {
        for (int c = 0; c < 3; ++c) SetSample(grey, x, y, c, 60);
      }
    }
    WritePicture(input_, ImageFormat::kPng, grey);
    std::filesystem::create_directory(folder_ / "models");
    WriteBytes(Path("models/realesr-general-x4v3.onnx"), NearestModel(4));
    WriteBytes(Path("models/realesr-general-wdn-x4v3.onnx"), NearestModel(4, 3));
  }

  void ExpectGrey(std::uint32_t grey, std::vector<std::string> options) const {
    options.insert(options.begin(), {"upscale", input_, output_, "--overwrite"});
    const ProgramResult result = RunProgram(options);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(Sample(ReadPicture(output_).picture, 17, 18, 1), grey);
  }
  void ExpectRefused(const std::string& reason, std::vector<std::string> options) const {
    options.insert(options.begin(), {"upscale", input_, output_, "--overwrite"});
    const ProgramResult result = RunProgram(options);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr(reason));
  }
};

TEST_F(UpscaleBlend, MixesWeights) {
  WriteBytes(Path("bright:er.onnx"), NearestModel(2, 3));
  for (const auto& [weight, grey] : {std::pair("0", 60u), {"0.25", 90u}, {"1", 180u}})
    ExpectGrey(grey, {"-m", model_, "--blend", Path("bright:er.onnx:") + weight});
  // By name, with a built-in model.
  ExpectGrey(90, {"-n", "double", "--model-path", folder_.path().string(), "--blend",
                  Path("bright:er.onnx:0.25")});
  WriteBytes(Path("triple.onnx"), NearestModel(3));
  ExpectRefused("triple.onnx", {"-m", model_, "--blend", Path("triple.onnx:0.5")});
  ExpectRefused("none.onnx: no such file", {"-m", model_, "--blend", Path("none.onnx:0.5")});
}

TEST_F(UpscaleBlend, DenoisesAsRealEsrganDoes) {
  const std::string models = Path("models"), file = Path("models/realesr-general-x4v3.onnx");
  ExpectGrey(60, {"-m", models, "-n", "realesr-general-x4v3", "-dn", "1"});
  ExpectGrey(90, {"-m", models, "-n", "realesr-general-x4v3", "-dn", "0.75"});
  ExpectGrey(180, {"-m", models, "-dn", "0"});
  ExpectGrey(120, {"--model-path", models, "--denoise", "0.5"});
  ExpectGrey(120, {"-m", file, "--denoise=0.5"});

  ExpectRefused("--denoise is for realesr-general-x4v3", {"-m", model_, "-dn", "0.5"});
  std::filesystem::remove(folder_ / "models/realesr-general-wdn-x4v3.onnx");
  ExpectRefused("realesr-general-wdn-x4v3: no such file", {"-m", models, "-dn", "0.5"});
  ExpectRefused("realesr-general-x4v3: no such file", {"-dn", "0.5"});
}

// A model that adds a slope along x: the mean over flips and rotations is level.
TEST_F(UpscaleCommand, TtaAveragesFlipsAndRotations) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Output("y");
  std::vector<float> left(9 * 9);
  for (std::size_t c = 0; c < 3; ++c) left[(c * 3 + c) * 9 + 3] = 1;  // the pixel to the left
  m.Floats("w", {3, 3, 3, 3}, left);
  m.Node("Conv", {"x", "w"}, {"y"}, {{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}});
  model_ = Path("shift.onnx");
  WriteBytes(model_, m.Bytes());
  ASSERT_EQ(Upscale({input_, output_, "--tta"}).exit_code, 0);
  const Picture out = ReadPicture(output_).picture;
  ASSERT_EQ(out.width(), 37);
  for (std::int64_t y = 1; y < 28; ++y) {
    for (std::int64_t x = 1; x < 36; ++x) {
      const double mean = 0.25 * (Sample(picture_, x - 1, y, 0) + Sample(picture_, x + 1, y, 0) +
                                  Sample(picture_, x, y - 1, 0) + Sample(picture_, x, y + 1, 0));
      ASSERT_NEAR(Sample(out, x, y, 0), mean, 0.51) << x << " " << y;
    }
  }
}

// The doubling model as ncnn's two files.
void WriteNcnnModel(const std::filesystem::path& stem) {
  std::string weights(4, '\0');  // the tag of float32
  for (int row = 0; row < 12; ++row) {
    for (int channel = 0; channel < 3; ++channel) {
      const float weight = row / 4 == channel ? 1 : 0;
      weights.append(reinterpret_cast<const char*>(&weight), sizeof(weight));
    }
  }
  WriteBytes(stem.string() + ".param",
             "7767517\n3 3\nInput data 0 1 data\nConvolution c 1 1 data c 0=12 1=1 6=36\n"
             "PixelShuffle p 1 1 c output 0=2\n");
  WriteBytes(stem.string() + ".bin", weights);
}

TEST_F(UpscaleCommand, TakesNcnnModels) {
  ASSERT_EQ(Upscale({input_, output_}).exit_code, 0);
  const std::string expected = ReadBytes(output_);
  WriteNcnnModel(folder_ / "ncnn");
  for (const std::string& model : {Path("ncnn.param"), Path("ncnn.bin"), Path("ncnn")}) {
    const std::string output = Path("by-ncnn.png");
    const ProgramResult result = RunProgram({"upscale", input_, output, "-m", model});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(ReadBytes(output), expected);
    std::filesystem::remove(output);
  }
  const std::string folder = folder_.path().string();
  ASSERT_EQ(
      RunProgram({"upscale", input_, output_, "--overwrite", "-m", "ncnn", "--model-path", folder})
          .exit_code,
      0);
  const ProgramResult list = RunProgram({"upscale", "--list-models", "--model-path", folder});
  EXPECT_THAT(list.out,
              testing::ContainsRegex("ncnn +x2 +36 +unknown +" + Path("ncnn.param") + "\n"));
  std::filesystem::remove(folder_ / "ncnn.bin");
  const ProgramResult half = RunProgram({"upscale", input_, output_, "-m", Path("ncnn.param")});
  EXPECT_EQ(half.exit_code, 2);
  EXPECT_THAT(half.err, HasSubstr("the weights have to be beside it, in ncnn.bin"));
}

TEST_F(UpscaleCommand, ListsModels) {
  using testing::ContainsRegex;
  const std::filesystem::path own = folder_ / "data/tessera/models";
  std::filesystem::create_directories(own);
  WriteBytes(own / "double.onnx", NearestModel(3));  // hidden by that of --model-path
  onnx::ModelProto licensed;
  ASSERT_TRUE(licensed.ParseFromString(NearestModel(3)));
  auto* entry = licensed.add_metadata_props();
  entry->set_key("license");
  entry->set_value("MIT");
  WriteBytes(own / "triple.onnx", licensed.SerializeAsString());
  WriteBytes(own / "text.onnx", "no model");
  WriteBytes(own / "readme.txt", "no model");
  const ProgramResult list =
      RunProgram({"upscale", "--list-models", "--model-path", folder_.path().string()},
                 {"XDG_DATA_HOME=" + Path("data")});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out, ContainsRegex("double +x2 +36 +unknown +" + model_ + "\n"));
  EXPECT_THAT(list.out, ContainsRegex("triple +x3 +81 +MIT +[^ ]*/models/triple.onnx\n"));
  EXPECT_THAT(list.out, ContainsRegex("default-x2 +x2 +256572 +Apache-2.0 +built in\n"));
  EXPECT_THAT(list.out, ContainsRegex("default-x4 +x4 +272160 +Apache-2.0 +built in\n"));
  EXPECT_THAT(list.out, ContainsRegex("default-x4-restore +x4 +272160 +Apache-2.0 +built in\n"));
  EXPECT_THAT(list.out, Not(ContainsRegex("double +x3")));
  EXPECT_THAT(list.err, HasSubstr("text.onnx: "));
  EXPECT_EQ(std::count(list.err.begin(), list.err.end(), '\n'), 1) << list.err;
}

}  // namespace
}  // namespace tessera
