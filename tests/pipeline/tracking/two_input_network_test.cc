// Networks that have template and search patch as inputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/networks.h"
#include "ops/error.h"
#include "pipeline/tracking/siamese_network.h"
#include "pipeline/tracking/tracker.h"
#include "tests/allocation_count.h"
#include "tests/engine/test_model.h"
#include "tests/temporary_folder.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Ints = std::vector<std::int64_t>;

Tensor Patch(std::int64_t size, std::uint32_t seed) {
  return Tensor::FromVector<float>(
      {1, 3, size, size}, TestModel::NoiseValues(static_cast<std::size_t>(3 * size * size), seed));
}

struct MapValues {
  std::vector<float> classes, boxes;

  bool operator==(const MapValues&) const = default;
};

// Copies, with `channels` of the class map.
MapValues Search(SiameseNetwork& network, const Tensor& patch, std::int64_t channels = 1) {
  SerialParallel serial;
  const SiameseNetwork::Maps maps = network.Search(patch.view(), serial);
  const std::int64_t points = network.map_side() * network.map_side();
  return {{maps.classes, maps.classes + channels * points}, {maps.boxes, maps.boxes + 4 * points}};
}

void SetTemplate(SiameseNetwork& network, const Tensor& patch) {
  SerialParallel serial;
  network.SetTemplate(patch.view(), serial);
}

// A tracker in small: a shared convolution of stride 4; the template's mean feature weighs those of
// the search patch. Template 16 x 16, search 32 x 32, maps 8 x 8.
struct Tiny {
  Ints template_dims = {1, 3, 16, 16}, search_dims = {1, 3, 32, 32};
  bool search_first = false;
  std::int64_t class_channels = 1, box_channels = 4;

  TestModel Model() const {
    TestModel m;
    if (search_first) m.Input("x", search_dims);
    m.Input("z", template_dims);
    if (!search_first) m.Input("x", search_dims);
    m.Noise("w", {8, 3, 4, 4}).Noise("wc", {class_channels, 8, 1, 1});
    m.Noise("wb", {box_channels, 8, 1, 1}, 0.1f);
    m.Node("Conv", {"z", "w"}, {"zf"}, {{"strides", Ints{4, 4}}});
    m.Node("Conv", {"x", "w"}, {"xf"}, {{"strides", Ints{4, 4}}});
    m.Node("GlobalAveragePool", {"zf"}, {"mean"}).Node("Mul", {"xf", "mean"}, {"weighed"});
    m.Node("Conv", {"weighed", "wb"}, {"logs"}).Node("Exp", {"logs"}, {"box"});
    m.Node("Conv", {"weighed", "wc"}, {"class"});
    return m.Output("box").Output("class");
  }
};

TrackerConfig TinyConfig() {
  TrackerConfig config;
  config.template_size = 16;
  config.search_size = 32;
  config.stride = 4;
  config.score = ScoreKind::kSigmoid;
  return config;
}

// The whole network at once.
MapValues RunWhole(const TestModel& model, const Tensor& target, const Tensor& search) {
  std::vector<Tensor> outputs;
  model.Load({.reference = true})
      ->Run(std::vector<NamedView>{{"z", target.view()}, {"x", search.view()}}, outputs);
  return {ToFloats(outputs[1].view()), ToFloats(outputs[0].view())};
}

void ExpectNear(const MapValues& a, const MapValues& b) {
  EXPECT_THAT(a.classes, testing::Pointwise(testing::FloatNear(1e-5f), b.classes));
  EXPECT_THAT(a.boxes, testing::Pointwise(testing::FloatNear(1e-5f), b.boxes));
}

std::string ErrorOf(const TestModel& model, const TrackerConfig& config) {
  try {
    MakeTwoInputNetwork(*model.Load(), config);
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), StartsWith("test.onnx: "));
    return error.what();
  }
  return "no error";
}

TEST(TwoInputNetwork, GivesTheMapsOfTheWhole) {
  SeededWeights weights(5);
  const std::string bytes =
      BuildNetwork(*FindNetwork("siamese-two-tower"), weights).SerializeAsString();
  const auto session = Session::LoadFromMemory(std::as_bytes(std::span(bytes)), "siamese.onnx");
  TrackerConfig config;
  config.template_size = 128;
  config.search_size = 256;
  config.score = ScoreKind::kSigmoid;
  const auto network = MakeTwoInputNetwork(*session, config);
  ASSERT_EQ(network->map_side(), 16);

  SerialParallel serial;
  for (const std::uint32_t seed : {1u, 2u}) {
    const Tensor target = Patch(128, seed);
    SetTemplate(*network, target);
    for (const std::uint32_t frame : {10u, 11u}) {
      const Tensor search = Patch(256, frame);
      std::vector<Tensor> whole;
      session->Run(std::vector<NamedView>{{"template", target.view()}, {"search", search.view()}},
                   whole, &serial);
      const MapValues maps = Search(*network, search);
      EXPECT_THAT(maps.classes, ElementsAreArray(ToFloats(whole[0].view())));
      EXPECT_THAT(maps.boxes, ElementsAreArray(ToFloats(whole[1].view())));
    }
  }
}

// Random weights follow nothing, but boxes and scores are such as a tracker gives.
TEST(TwoInputNetwork, RunsInATracker) {
  const TemporaryFolder folder;
  SeededWeights weights(1);
  WriteBytes(folder / "siamese.onnx",
             BuildNetwork(*FindNetwork("siamese-two-tower"), weights).SerializeAsString());
  Tracker tracker =
      LoadTracker({.model = folder / "siamese.onnx",
                   .head = "",
                   .variant = TESSERA_SOURCE_DIR "/samples/tracker-configs/siamese-two-tower.cfg"});
  constexpr std::int64_t kWidth = 160, kHeight = 120;
  std::vector<std::uint8_t> pixels(3 * kWidth * kHeight);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<std::uint8_t>(i / 9 * 37 + i / (3 * kWidth) / 7 * 91);
  }
  const FrameView frame{pixels.data(), kWidth, kHeight, 3 * kWidth};
  tracker.Init(frame, {50, 40, 30, 24});
  for (int i = 0; i < 5; ++i) {
    const TrackResult result = tracker.Update(frame);
    EXPECT_GT(result.score, 0);
    EXPECT_LT(result.score, 1);
    EXPECT_GT(Overlap(result.box, {0, 0, kWidth, kHeight}), 0.001);
    EXPECT_LE(result.box.width, kWidth);
    EXPECT_LE(result.box.height, kHeight);
  }
}

TEST(TwoInputNetwork, KeepsItsTemplateUntilThereIsAnother) {
  const Tensor target = Patch(16, 1), other = Patch(16, 2), search = Patch(32, 3);
  const TestModel model = Tiny{}.Model();
  const auto network = MakeTwoInputNetwork(*model.Load(), TinyConfig());
  SetTemplate(*network, target);
  const MapValues first = Search(*network, search);
  ExpectNear(first, RunWhole(model, target, search));
  EXPECT_FALSE(Search(*network, Patch(32, 4)) == first);
  EXPECT_EQ(Search(*network, search), first);
  SetTemplate(*network, other);
  ExpectNear(Search(*network, search), RunWhole(model, other, search));
  SetTemplate(*network, target);
  EXPECT_EQ(Search(*network, search), first);
}

TEST(TwoInputNetwork, FindsInputsBySizeOrName) {
  const Tensor target = Patch(16, 1), search = Patch(32, 2);
  const Ints dynamic = {-1, 3, -1, -1};
  TrackerConfig named = TinyConfig();
  named.template_input = "z";
  TrackerConfig search_named = TinyConfig();
  search_named.search_input = "x";
  const std::pair<Tiny, TrackerConfig> cases[] = {
      {{}, TinyConfig()},
      {{.search_first = true}, TinyConfig()},
      {{.template_dims = dynamic}, TinyConfig()},
      {{.search_dims = dynamic, .search_first = true}, TinyConfig()},
      {{.template_dims = dynamic, .search_dims = dynamic}, named},
      {{.template_dims = dynamic, .search_dims = dynamic, .search_first = true}, named},
      {{.template_dims = dynamic, .search_dims = dynamic}, search_named},
  };
  for (const auto& [tiny, config] : cases) {
    const TestModel model = tiny.Model();
    const auto network = MakeTwoInputNetwork(*model.Load(), config);
    EXPECT_EQ(network->map_side(), 8);
    SetTemplate(*network, target);
    ExpectNear(Search(*network, search), RunWhole(model, target, search));
  }
}

TEST(TwoInputNetwork, FindsOutputsByChannelsOrName) {
  const Tensor target = Patch(16, 1), search = Patch(32, 2);
  TrackerConfig softmax = TinyConfig();
  softmax.score = ScoreKind::kSoftmax;
  const TestModel two = Tiny{.class_channels = 2}.Model();
  const auto network = MakeTwoInputNetwork(*two.Load(), softmax);
  SetTemplate(*network, target);
  ExpectNear(Search(*network, search, 2), RunWhole(two, target, search));

  TestModel more = Tiny{}.Model();
  more.Output("logs").Output("xf");
  EXPECT_THAT(ErrorOf(more, TinyConfig()), HasSubstr("which is the box map?"));
  TrackerConfig named = TinyConfig();
  named.box_output = "box";
  const auto of_more = MakeTwoInputNetwork(*more.Load(), named);
  SetTemplate(*of_more, target);
  ExpectNear(Search(*of_more, search), RunWhole(more, target, search));
}

TEST(TwoInputNetwork, SizesOtherThanConfiguredAreErrors) {
  TrackerConfig config = TinyConfig();
  config.search_size = 64;
  EXPECT_EQ(ErrorOf(Tiny{}.Model(), config),
            "test.onnx: has the inputs z float32 1x3x16x16, x float32 1x3x32x32, the configuration "
            "wants a "
            "template, 1x3x16x16, and a search patch, 1x3x64x64");
  EXPECT_THAT(ErrorOf(Tiny{.template_dims = {-1, 3, -1, -1}}.Model(), config),
              HasSubstr("z float32 ?x3x?x?, x float32 1x3x32x32"));
  config = TinyConfig();
  config.stride = 8;
  EXPECT_EQ(ErrorOf(Tiny{}.Model(), config),
            "test.onnx: 8 points in a row, 8 pixels apart (stride of the configuration), are more "
            "than search patches of 32 pixels hold");
}

TEST(TwoInputNetwork, InputsThatCannotBeToldAreErrors) {
  const Ints dynamic = {1, 3, -1, -1};
  EXPECT_EQ(ErrorOf(Tiny{.template_dims = dynamic, .search_dims = dynamic}.Model(), TinyConfig()),
            "test.onnx: which of the inputs z float32 1x3x?x?, x float32 1x3x?x? is the template? "
            "(template_input "
            "of the configuration)");
  TrackerConfig config = TinyConfig();
  config.template_input = "target";
  EXPECT_THAT(ErrorOf(Tiny{}.Model(), config), HasSubstr("a template, target 1x3x16x16,"));
  config.template_input = "x";  // which is the search patch
  EXPECT_THAT(ErrorOf(Tiny{}.Model(), config), HasSubstr("a template, x 1x3x16x16,"));

  TestModel three = Tiny{}.Model();
  three.Input("update", {1, 3, 16, 16});
  EXPECT_EQ(ErrorOf(three, TinyConfig()),
            "test.onnx: has 3 inputs (z float32 1x3x16x16, x float32 1x3x32x32, update float32 "
            "1x3x16x16), want two: "
            "template and search patch");
  TestModel unused;
  unused.Input("z", {1, 3, 16, 16}).Input("x", {1, 3, 32, 32}).Noise("w", {5, 3, 4, 4});
  unused.Node("Conv", {"x", "w"}, {"y"}).Output("y");
  EXPECT_EQ(ErrorOf(unused, TinyConfig()),
            "test.onnx: no output depends on the template, input 'z'");
}

TEST(TwoInputNetwork, OutputsThatDoNotFitAreErrors) {
  EXPECT_THAT(ErrorOf(Tiny{.class_channels = 2}.Model(), TinyConfig()),
              AllOf(HasSubstr("class map"), HasSubstr("class 1x2x8x8")));
  EXPECT_THAT(ErrorOf(Tiny{.box_channels = 8}.Model(), TinyConfig()),
              AllOf(HasSubstr("box map"), HasSubstr("box 1x8x8x8")));
}

TEST(TwoInputNetwork, AllocatesNothingAfterTheFirstCalls) {
  SerialParallel serial;
  const Tensor target = Patch(16, 1), search = Patch(32, 2);
  const auto network = MakeTwoInputNetwork(*Tiny{}.Model().Load(), TinyConfig());
  SiameseNetwork::Maps maps;
  const auto follow = [&] {
    network->SetTemplate(target.view(), serial);
    network->Search(search.view(), serial);
    maps = network->Search(search.view(), serial);
  };
  const int at_first = CountAllocations(follow);
  EXPECT_TRUE(at_first > 0 || !kCountsAllocations);
  const SiameseNetwork::Maps first = maps;
  EXPECT_EQ(CountAllocations(follow), 0);
  EXPECT_EQ(maps.classes, first.classes);
  EXPECT_EQ(maps.boxes, first.boxes);
}

}  // namespace
}  // namespace tessera
