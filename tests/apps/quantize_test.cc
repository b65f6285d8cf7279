#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/session.h"
#include "ops/error.h"
#include "pipeline/image_writer.h"
#include "tests/apps/small_upscaler.h"
#include "tests/apps/track_command.h"
#include "tests/pipeline/test_pictures.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t Nodes(const std::string& file, const std::string& type) {
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(ReadBytes(file))) << file;
  return static_cast<std::size_t>(
      std::ranges::count(model.graph().node(), type, &onnx::NodeProto::op_type));
}

class QuantizeCommand : public testing::Test {
 protected:
  QuantizeCommand() {
    WriteBytes(model_, SmallUpscaler());
    std::filesystem::create_directory(folder_ / "pictures");
    for (const std::uint32_t seed : {1U, 2U}) {
      WritePicture(folder_ / "pictures" / StrCat(seed, ".png"), ImageFormat::kPng,
                   NoisePicture({.width = 90, .height = 70}, seed));
    }
  }

  ProgramResult Quantize(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "quantize");
    return RunProgram(std::move(arguments));
  }
  ProgramResult WithPictures(std::vector<std::string> options = {}) const {
    std::vector<std::string> arguments = {model_, out_, "--calib", Path("pictures")};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return Quantize(std::move(arguments));
  }
  // Fails with one line that holds all of `parts`, and leaves no new file.
  void ExpectFailure(int exit_code, const std::vector<std::string>& parts,
                     std::vector<std::string> arguments) const {
    const std::size_t files = folder_.NumFiles();
    const ProgramResult result = Quantize(std::move(arguments));
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_THAT(result.err, testing::StartsWith("quantize: "));
    for (const std::string& part : parts) EXPECT_THAT(result.err, HasSubstr(part));
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(folder_.NumFiles(), files);
  }
  std::string WriteRaw(const std::string& name, int count) const {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(0.5 + 0.5 * std::sin(0.37 * static_cast<double>(i)));
    WriteBytes(folder_ / name, {reinterpret_cast<const char*>(values.data()), 4 * values.size()});
    return Path(name);
  }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  TemporaryFolder folder_;
  std::string model_ = Path("model.onnx"), out_ = Path("out.onnx");
};

TEST_F(QuantizeCommand, MakesAModelAndShowsATable) {
  const ProgramResult result = WithPictures();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Nodes(out_, "Conv"), 2u);
  EXPECT_GE(Nodes(out_, "QuantizeLinear"), 2u);
  EXPECT_THAT(result.out, testing::StartsWith("layer "));
  EXPECT_THAT(result.out, HasSubstr("\nConv_c1 "));
  EXPECT_THAT(result.out, HasSubstr("\nConv_c2 "));
  EXPECT_THAT(result.out, HasSubstr("speed-up"));
  EXPECT_THAT(result.out, HasSubstr("model.onnx: 2 of 2 convolutions"));
  EXPECT_THAT(result.out, HasSubstr("PSNR to float32: "));
  EXPECT_EQ(result.err, "");
}

TEST_F(QuantizeCommand, OptionsChangeTheResult) {
  std::vector<std::string> results;
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{},
                                             {"--method", "minmax"},
                                             {"--method", "percentile", "--percentile", "90"},
                                             {"--method", "entropy"},
                                             {"--format", "qlinear"},
                                             {"--exclude", "Conv_c1"},
                                             {"--samples", "1", "--tile", "16"}}) {
    std::vector<std::string> arguments = options;
    arguments.push_back("--overwrite");
    const ProgramResult result = WithPictures(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    results.push_back(ReadBytes(out_));
    EXPECT_EQ(std::ranges::count(results, results.back()), 1) << options.size();
  }
  ASSERT_EQ(WithPictures({"--format", "qlinear", "--overwrite"}).exit_code, 0);
  EXPECT_GE(Nodes(out_, "QLinearConv"), 1u);
  const ProgramResult excluded =
      WithPictures({"--exclude", "Conv_c1", "-x", "Conv_c2", "--overwrite"});
  EXPECT_EQ(excluded.exit_code, 0) << excluded.err;
  EXPECT_THAT(excluded.out, Not(HasSubstr("int8 ")));
}

TEST_F(QuantizeCommand, SearchKeepsTheDamageWithinTheLimit) {
  const ProgramResult loose = WithPictures({"--search", "30"});
  ASSERT_EQ(loose.exit_code, 0) << loose.err;
  EXPECT_THAT(loose.out, HasSubstr("PSNR alone"));
  EXPECT_THAT(loose.out, HasSubstr("2 of 2 convolutions"));
  const ProgramResult strict = WithPictures({"--search", "0", "--overwrite"});
  ASSERT_EQ(strict.exit_code, 0) << strict.err;
  EXPECT_THAT(strict.out, HasSubstr("0 of 2 convolutions"));
  EXPECT_THAT(strict.out, HasSubstr("float"));
}

TEST_F(QuantizeCommand, PicturesVideosAndFoldersCalibrate) {
  WriteSquareVideo(Path("clip.mp4"), 10);
  for (const std::vector<std::string>& inputs : std::vector<std::vector<std::string>>{
           {Path("pictures/1.png")}, {Path("clip.mp4")}, {Path("pictures"), Path("clip.mp4")}}) {
    std::vector<std::string> arguments = {model_, out_, "--overwrite"};
    for (const std::string& input : inputs) {
      arguments.push_back("--calib");
      arguments.push_back(input);
    }
    const ProgramResult result = Quantize(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
}

TEST_F(QuantizeCommand, RawNumbersCalibrateAnyNetwork) {
  WriteBytes(model_, SmallUpscaler(12));
  const std::string raw = WriteRaw("a.f32", 2 * 3 * 12 * 12);
  const ProgramResult one = Quantize({model_, out_, "--calib", raw});
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("difference from float32"));
  WriteBytes(model_, SmallUpscaler());
  const ProgramResult named =
      Quantize({model_, out_, "--overwrite", "--calib", "x:1x3x16x8:" + WriteRaw("b.f32", 384)});
  EXPECT_EQ(named.exit_code, 0) << named.err;
  // A folder of them.
  std::filesystem::create_directory(folder_ / "raw");
  std::filesystem::rename(raw, folder_ / "raw" / "a.f32");
  WriteBytes(model_, SmallUpscaler(12));
  const ProgramResult folder = Quantize({model_, out_, "--overwrite", "--calib", Path("raw")});
  EXPECT_EQ(folder.exit_code, 0) << folder.err;
}

TEST_F(QuantizeCommand, SaysWhatIsWrongAndLeavesNothing) {
  const auto with = [this](std::vector<std::string> more) {
    std::vector<std::string> all = {model_, out_};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const std::string pictures = Path("pictures");
  ExpectFailure(2, {"--calib"}, with({}));
  ExpectFailure(2, {"a model and an output"}, {model_, "--calib", pictures});
  ExpectFailure(2, {"none.onnx"}, {Path("none.onnx"), out_, "--calib", pictures});
  ExpectFailure(2, {"out.txt", ".onnx"}, {model_, Path("out.txt"), "--calib", pictures});
  ExpectFailure(2, {"model.onnx", "input"}, {model_, model_, "--calib", pictures, "--overwrite"});
  ExpectFailure(2, {"--format"}, with({"--calib", pictures, "--format", "int4"}));
  ExpectFailure(2, {"Conv_none"}, with({"--calib", pictures, "--exclude", "Conv_none"}));
  ExpectFailure(2, {"--search"}, with({"--calib", pictures, "--search", "-1"}));
  ExpectFailure(2, {"go together"},
                with({"--calib", pictures, "--init", "1,2,3,4", "--head", "h"}));
  ExpectFailure(2, {"--head is for trackers"},
                with({"--calib", pictures, "--head", model_, "--head-out", Path("h.onnx")}));
  ExpectFailure(1, {"none.png"}, with({"--calib", Path("none.png")}));
  WriteBytes(Path("broken.png"), "no picture");
  ExpectFailure(1, {"broken.png"}, with({"--calib", Path("broken.png")}));
  std::filesystem::create_directory(folder_ / "empty");
  ExpectFailure(1, {"empty", "no pictures"}, with({"--calib", Path("empty")}));
  ExpectFailure(1, {"odd.f32"}, with({"--calib", "x:1x3x16x8:" + WriteRaw("odd.f32", 100)}));
  ExpectFailure(2, {"do not go together"},
                with({"--calib", pictures, "--calib", "x:1x3x16x8:" + WriteRaw("r.f32", 384)}));
  // Sizes that the network refuses.
  TestModel fixed;
  fixed.Input("x", {1, 3, 8, 8}).Output("y").Noise("w", {4, 3, 3, 3}).Ints("s", {1, 4, 36});
  fixed.Node("Conv", {"x", "w"}, {"c"}).Node("Reshape", {"c", "s"}, {"y"});
  WriteBytes(Path("fixed.onnx"), fixed.Bytes());
  ExpectFailure(2, {"fixed.onnx"},
                {Path("fixed.onnx"), out_, "--calib", "x:1x3x9x9:" + WriteRaw("n.f32", 243)});
}

TEST_F(QuantizeCommand, ModelsThatCannotBeQuantisedAreNamed) {
  ASSERT_EQ(WithPictures().exit_code, 0);
  const std::string pictures = Path("pictures");
  ExpectFailure(2, {"out.onnx", "quantised already"},
                {out_, Path("again.onnx"), "--calib", pictures});
  WriteBytes(Path("nan.onnx"), SmallUpscaler(-1, std::numeric_limits<float>::quiet_NaN()));
  ExpectFailure(2, {"nan.onnx", "no number"},
                {Path("nan.onnx"), Path("o.onnx"), "--calib", pictures});
  TestModel words;
  words.Input("x", {1, 7}).Output("y").Node("Relu", {"x"}, {"y"});
  WriteBytes(Path("words.onnx"), words.Bytes());
  ExpectFailure(2, {"words.onnx", "pictures"},
                {Path("words.onnx"), Path("o.onnx"), "--calib", pictures});
  WriteBytes(Path("text.onnx"), "no model");
  ExpectFailure(2, {"text.onnx"}, {Path("text.onnx"), Path("o.onnx"), "--calib", pictures});
}

TEST_F(QuantizeCommand, OutputsThatExistAreKept) {
  WriteBytes(out_, "old");
  ExpectFailure(2, {"out.onnx", "exists", "--overwrite"},
                {model_, out_, "--calib", Path("pictures")});
  EXPECT_EQ(ReadBytes(out_), "old");
  EXPECT_EQ(WithPictures({"--overwrite"}).exit_code, 0);
  EXPECT_NE(ReadBytes(out_), "old");
}

class QuantizeTracker : public QuantizeCommand {
 protected:
  QuantizeTracker() {
    WriteBytes(backbone_, BrightnessBackbone());
    WriteBytes(head_, BrightnessHead());
    WriteSquareVideo(video_, 30);
    std::string boxes = "frame,x,y,w,h\n";
    for (int i = 0; i < 30; ++i) {
      const Box box = SquareBox(i);
      boxes += StrCat(i, ",", box.x, ",", box.y, ",", box.width, ",", box.height, "\n");
    }
    WriteBytes(boxes_, boxes);
  }
  std::string backbone_ = Path("backbone.onnx"), head_ = Path("head.onnx");
  std::string video_ = Path("clip.mp4"), boxes_ = Path("boxes.csv"), head_out_ = Path("h8.onnx");
};

TEST_F(QuantizeTracker, BothNetworksComeOutAndFollow) {
  for (const std::vector<std::string>& target : std::vector<std::vector<std::string>>{
           {"--groundtruth", boxes_}, {"--init", "30,40,40,40"}, {"--init", boxes_}}) {
    std::vector<std::string> arguments = {backbone_,    out_,      "--head",     head_,
                                          "--head-out", head_out_, "--variant",  "v1",
                                          "--calib",    video_,    "--overwrite"};
    arguments.insert(arguments.end(), target.begin(), target.end());
    const ProgramResult result = Quantize(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("backbone.onnx: 1 of 1"));
    EXPECT_THAT(result.out, HasSubstr("head.onnx: "));
    EXPECT_THAT(result.out, HasSubstr("overlap with float32's boxes: "));
    const ProgramResult followed =
        RunProgram({"track", video_, "--model", out_, "--head", head_out_, "--variant", "v1",
                    "--groundtruth", boxes_, "--quiet"});
    EXPECT_EQ(followed.exit_code, 0) << followed.err;
    EXPECT_THAT(followed.out, HasSubstr("precision at 20 px: 1.0000"));
  }
}

TEST_F(QuantizeTracker, ABackboneAloneWillDo) {
  const ProgramResult result =
      Quantize({backbone_, out_, "--calib", video_, "--groundtruth", boxes_});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("difference from float32"));
}

TEST_F(QuantizeTracker, SaysWhatIsWrongAndLeavesNothing) {
  const std::vector<std::string> both = {backbone_,    out_,      "--head",    head_,
                                         "--head-out", head_out_, "--variant", "v1"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all = both;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  ExpectFailure(2, {"--init or --groundtruth"}, with({"--calib", video_}));
  ExpectFailure(1, {"none.mp4"}, with({"--calib", Path("none.mp4"), "--groundtruth", boxes_}));
  ExpectFailure(2, {"none.csv"}, with({"--calib", video_, "--groundtruth", Path("none.csv")}));
  WriteBytes(Path("late.csv"), "frame,x,y,w,h\n500,1,2,3,4\n");
  ExpectFailure(1, {"clip.mp4"}, with({"--calib", video_, "--groundtruth", Path("late.csv")}));
  ExpectFailure(1, {"clip.mp4", "outside"}, with({"--calib", video_, "--init", "900,900,9,9"}));
  ExpectFailure(2, {"one clip"},
                with({"--calib", video_, "--calib", video_, "--groundtruth", boxes_}));
  ExpectFailure(2, {"two outputs"},
                {backbone_, out_, "--head", head_, "--head-out", out_, "--variant", "v1", "--calib",
                 video_, "--groundtruth", boxes_});
  // A network that is no head.
  ExpectFailure(2, {"backbone.onnx"},
                {backbone_, out_, "--head", backbone_, "--head-out", head_out_, "--variant", "v1",
                 "--calib", video_, "--groundtruth", boxes_});
}

}  // namespace
}  // namespace tessera
