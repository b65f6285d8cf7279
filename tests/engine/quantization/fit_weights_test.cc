#include "engine/quantization/fit_weights.h"

#include <cmath>

#include "tests/engine/quantization/quantizer_test_util.h"

namespace tessera {
namespace {

TEST(RoundWeights, StepsAreThoseOfEachChannel) {
  const Tensor w = Tensor::FromVector<float>({2, 1, 1, 2}, {1.27f, -0.5f, 0.0f, 0.0f});
  const Tensor b = Tensor::FromVector<float>({2}, {1.0f, -2.0f});
  const LayerWeights r = RoundWeights(w, &b, 0.5f, /*clip=*/false);
  EXPECT_FLOAT_EQ(r.scales.data<float>()[0], 0.01f);
  EXPECT_EQ(r.values.data<std::int8_t>()[0], 127);
  EXPECT_EQ(r.values.data<std::int8_t>()[1], -50);
  EXPECT_EQ(r.values.data<std::int8_t>()[2], 0);
  EXPECT_EQ(IntegerBias(r, 0.5f).data<std::int32_t>()[0], 200);
  // A channel without weights still has its bias.
  const float unit = 0.5f * r.scales.data<float>()[1];
  EXPECT_NEAR(static_cast<float>(IntegerBias(r, 0.5f).data<std::int32_t>()[1]) * unit, -2, 1e-5);
}

TEST(RoundWeights, BiasesDoNotOverflow) {
  const Tensor w = Tensor::FromVector<float>({1, 1, 1, 1}, {1e-9f});
  const Tensor b = Tensor::FromVector<float>({1}, {1e5f});
  const LayerWeights r = RoundWeights(w, &b, 1e-3f, true);
  const double bias = IntegerBias(r, 1e-3f).data<std::int32_t>()[0];
  EXPECT_LE(std::abs(bias), 1 << 30);
  EXPECT_NEAR(bias * static_cast<double>(1e-3f * r.scales.data<float>()[0]), 1e5, 1);
}

TEST(ChoosePixels, AreSpreadDifferentAndTheSameEachTime) {
  const std::vector<Shape> shapes{{1, 4, 5, 6}, {2, 4, 3, 3}};
  const auto pixels = ChoosePixels(shapes, 24);
  ASSERT_EQ(pixels.size(), 24u);
  std::set<std::array<std::int64_t, 4>> seen;
  for (const OutputPixel& p : pixels) {
    ASSERT_LT(p.sample, 2u);
    ASSERT_TRUE(p.image < shapes[p.sample][0] && p.y < shapes[p.sample][2] &&
                p.x < shapes[p.sample][3]);
    seen.insert({static_cast<std::int64_t>(p.sample), p.image, p.y, p.x});
  }
  EXPECT_EQ(seen.size(), 24u);
  EXPECT_EQ(ChoosePixels(shapes, 1000).size(), 48u);  // all there are
}

// On inputs whose neighbours are alike, as those of pictures are.
TEST(FitWeights, ErrorsCancelOutOnCorrelatedInputs) {
  for (const std::int64_t group : {1, 4}) {
    SCOPED_TRACE(group);
    TestModel m;
    m.Input("x", {1, 4, -1, -1}).Noise("w", {8, 4 / group, 3, 3}).Output("y");
    m.Node("Conv", {"x", "w"}, {"y"}, {{"group", group}});
    const Graph graph = ImportTestModel(m);
    std::vector<Sample> samples = NoiseSamples({1, 4, 40, 40}, 6);
    for (Sample& s : samples) {  // running sums along the rows
      float* v = s[0].data<float>();
      for (std::int64_t i = 1; i < s[0].size(); ++i) v[i] = 0.97f * v[i - 1] + 0.2f * v[i];
    }
    SerialParallel serial;
    const auto reference = RunSamples(graph, samples, &serial);
    std::vector<Shape> shapes;
    std::vector<const Tensor*> inputs;
    for (std::size_t i = 0; i < 4; ++i) {  // the others are for the test
      shapes.push_back(reference[i][0].shape());
      inputs.push_back(&samples[i][0]);
    }
    const auto pixels = ChoosePixels(shapes, 4096);
    const Tensor& w = *graph.Constant(graph.nodes[0].inputs[1]);
    LayerWeights weights = RoundWeights(w, nullptr, 1, false);
    const auto error = [&](const LayerWeights& lw) {
      Graph changed = graph;
      changed.nodes[0].inputs[1] = changed.AddConstant("q", RealWeights(lw));
      return RelativeError(
          std::span(reference).subspan(4),
          RunSamples(changed, std::span<const Sample>(samples).subspan(4), &serial));
    };
    const double rounded = error(weights);
    FitWeights(graph.nodes[0], w, inputs, pixels, ReadPixels(std::span(reference).first(4), pixels),
               1, false, serial, weights);
    EXPECT_LT(error(weights), 0.7 * rounded);
  }
}

}  // namespace
}  // namespace tessera
