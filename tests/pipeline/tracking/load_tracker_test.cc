// Which networks a tracker takes, and what it says of others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "ops/error.h"
#include "pipeline/tracking/tracker.h"
#include "tests/engine/test_model.h"
#include "tests/shared_files.h"
#include "tests/temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class LoadTrackerTest : public testing::Test {
 protected:
  static constexpr int kFloat32 = onnx::TensorProto::FLOAT, kFloat16 = onnx::TensorProto::FLOAT16;

  fs::path Save(const std::string& name, TestModel& model) {
    const fs::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << model.proto.SerializeAsString();
    return path;
  }
  fs::path Backbone(std::int64_t channels, int inputs = 1, int type = kFloat32) {
    TestModel model;
    model.Input("input", {1, 3, -1, -1});
    for (int i = 1; i < inputs; ++i) model.Input("more" + std::to_string(i), {1});
    model.Noise("w", {channels, 3, 3, 3}, 1e-3F)
        .Node("Conv", {"input", "w"}, {"features"},
              {{"strides", std::vector<std::int64_t>{16, 16}},
               {"pads", std::vector<std::int64_t>{1, 1, 1, 1}}});
    OutputAs(model, "features", "output", type);
    return Save("backbone.onnx", model);
  }
  // Class and box map from the search features; those of the template are added to them.
  fs::path Head(std::int64_t channels, std::int64_t classes = 2, std::int64_t boxes = 4,
                bool search_first = false, int type = kFloat32) {
    TestModel model;
    const std::string search = search_first ? "a" : "b", target = search_first ? "b" : "a";
    model.Input("a", {1, channels, search_first ? 16 : 8, search_first ? 16 : 8})
        .Input("b", {1, channels, search_first ? 8 : 16, search_first ? 8 : 16})
        .Noise("wc", {classes, channels, 1, 1})
        .Noise("wb", {boxes, channels, 1, 1})
        .Node("GlobalAveragePool", {target}, {"mean"})
        .Node("Add", {search, "mean"}, {"sum"})
        .Node("Conv", {"sum", "wc"}, {"logits"})
        .Node("Conv", {"sum", "wb"}, {"logs"})
        .Node("Exp", {"logs"}, {"distances"});
    OutputAs(model, "distances", "boxes", type);
    OutputAs(model, "logits", "classes", type);
    return Save("head.onnx", model);
  }
  static void OutputAs(TestModel& model, const std::string& value, const std::string& name,
                       int type) {
    model.Node("Cast", {value}, {name}, {{"to", std::int64_t{type}}}).Output(name, type);
  }
  static std::string ErrorOf(const TrackerFiles& files) {
    try {
      LoadTracker(files);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  TemporaryFolder folder_;
};

TEST_F(LoadTrackerTest, VersionsOfNanoTrackAreToldByTheirNetworks) {
  if (!SharedFolder()) GTEST_SKIP() << "the shared folder is missing";
  const fs::path folder = *SharedFolder() / "models/nanotrack";
  for (const std::string version : {"v1", "v2", "v3"}) {
    const TrackerFiles files{.model = folder / ("nanotrack" + version + "_backbone.onnx"),
                             .head = folder / ("nanotrack" + version + "_head.onnx"),
                             .variant = ""};
    EXPECT_EQ(LoadTracker(files).config().name, "NanoTrack " + version);
  }
  // What is asked for goes before what is found.
  EXPECT_EQ(
      LoadTracker({folder / "nanotrackv2_backbone.onnx", folder / "nanotrackv2_head.onnx", "v1"})
          .config()
          .name,
      "NanoTrack v1");
  EXPECT_THAT(ErrorOf({folder / "nanotrackv2_backbone.onnx", folder / "nanotrackv3_head.onnx", ""}),
              HasSubstr("nanotrackv3_head.onnx"));
}

TEST_F(LoadTrackerTest, InputsAndOutputsOfAHeadMayStandInAnyOrder) {
  const fs::path backbone = Backbone(48);
  for (const bool search_first : {false, true}) {
    Tracker tracker = LoadTracker({backbone, Head(48, 2, 4, search_first), "v2"});
    EXPECT_EQ(tracker.config().window_influence, 0.490);
    std::vector<std::uint8_t> pixels(64 * 48 * 3, 100);
    const FrameView frame{pixels.data(), 64, 48, 64 * 3};
    tracker.Init(frame, {10, 10, 20, 20});
    const TrackResult result = tracker.Update(frame);
    EXPECT_GT(result.score, 0);
    EXPECT_LT(result.score, 1);
  }
}

TEST_F(LoadTrackerTest, FeaturesAndMapsMayBeOfHalfPrecision) {
  std::vector<std::uint8_t> pixels(64 * 48 * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 7);
  const FrameView frame{pixels.data(), 64, 48, 64 * 3};
  std::vector<TrackResult> results;
  for (const int type : {kFloat32, kFloat16}) {
    Tracker tracker = LoadTracker({Backbone(48, 1, type), Head(48, 2, 4, false, type), "v2"});
    tracker.Init(frame, {10, 10, 20, 20});
    results.push_back(tracker.Update(frame));
  }
  EXPECT_NEAR(results[1].score, results[0].score, 1e-2);
  EXPECT_GT(Overlap(results[1].box, results[0].box), 0.95);
}

TEST_F(LoadTrackerTest, NamesOfTheConfigurationGoBeforeTheOrderOfInputs) {
  std::ofstream(folder_ / "named.cfg") << "search_input = a\n";
  TestModel model;
  model.Input("a", {1, 48, -1, -1}).Input("b", {1, 48, -1, -1});
  model.Noise("wc", {2, 48, 1, 1}).Noise("wb", {4, 48, 1, 1});
  model.Node("GlobalAveragePool", {"b"}, {"mean"}).Node("Add", {"a", "mean"}, {"sum"});
  model.Node("Conv", {"sum", "wc"}, {"classes"}).Node("Conv", {"sum", "wb"}, {"boxes"});
  model.Output("classes").Output("boxes");
  const fs::path head = Save("dynamic.onnx", model);
  // The maps have the size of the search features: 16 x 16 points, or 8 x 8 of the template's.
  EXPECT_NO_THROW(LoadTracker({Backbone(48), head, folder_ / "named.cfg"}));
  const auto session = Session::Load(head), backbone = Session::Load(Backbone(48));
  TrackerConfig config = NanoTrackConfig(2);
  EXPECT_EQ(MakeTwoPartNetwork(backbone, *session, config)->map_side(), 8);
  config.search_input = "a";
  EXPECT_EQ(MakeTwoPartNetwork(backbone, *session, config)->map_side(), 16);
}

TEST_F(LoadTrackerTest, NetworksThatDoNotFitAreNamed) {
  EXPECT_THAT(ErrorOf({folder_ / "none.onnx", Head(48), ""}), HasSubstr("none.onnx"));
  EXPECT_THAT(ErrorOf({Backbone(48), "", ""}),
              testing::AllOf(HasSubstr("backbone.onnx"), HasSubstr("--head")));
  EXPECT_THAT(ErrorOf({Backbone(24), Head(24), ""}),
              testing::AllOf(HasSubstr("backbone.onnx"), HasSubstr("24 channels")));
  EXPECT_THAT(ErrorOf({Backbone(48, 2), Head(48), "v1"}),
              testing::AllOf(HasSubstr("backbone.onnx"), HasSubstr("a backbone has one")));
  EXPECT_THAT(ErrorOf({Backbone(48), Backbone(48), "v1"}), HasSubstr("a head has two"));
  EXPECT_THAT(ErrorOf({Backbone(48), Head(24), "v1"}), HasSubstr("head.onnx"));
  EXPECT_THAT(ErrorOf({Backbone(48), Head(48, 3), "v1"}),
              testing::AllOf(HasSubstr("head.onnx"), HasSubstr("class map"),
                             HasSubstr("classes 1x3x16x16")));
  EXPECT_THAT(ErrorOf({Backbone(48), Head(48, 2, 5), "v1"}), HasSubstr("box map"));
  EXPECT_THAT(ErrorOf({Backbone(48), Head(48), "v4"}),
              HasSubstr("v4: is neither v1, v2, v3 nor a file"));
}

}  // namespace
}  // namespace tessera
