#include "models/span.h"

#include <string>

#include "models/layers.h"

namespace tessera {
namespace {

using Value = GraphBuilder::Value;

// Mean of the DIV2K photographs that the published weights are trained on, and their range.
const std::vector<float> kRgbMean = {0.4488f, 0.4371f, 0.4040f};
constexpr float kRange = 255;
constexpr int kBlocks = 6;

Value Silu(GraphBuilder& graph, const std::string& name, const Value& x) {
  return graph.Node("Mul", name, {x, graph.Node("Sigmoid", name + ".sigmoid", {x})});
}

struct BlockValues {
  Value output;
  Value first_activation;
};

BlockValues Block(GraphBuilder& graph, const std::string& name, const Value& x, int features) {
  // The gate multiplies by less than a half, which this gain makes up for.
  const ConvSpec conv = {.in = features, .out = features};
  const ConvSpec gated_conv = {.in = features, .out = features, .gain = 2};
  const Value first = Silu(graph, name + ".act1", Conv(graph, name + ".c1_r", x, conv));
  const Value second = Silu(graph, name + ".act2", Conv(graph, name + ".c2_r", first, conv));
  const Value third = Conv(graph, name + ".c3_r", second, gated_conv);

  const Value half = graph.Scalar(name + ".half", 0.5f);
  const Value gate = graph.Node("Sub", name + ".gate",
                                {graph.Node("Sigmoid", name + ".gate.sigmoid", {third}), half});
  const Value sum = graph.Node("Add", name + ".sum", {third, x});
  return {.output = graph.Node("Mul", name, {sum, gate}), .first_activation = first};
}

}  // namespace

void DefineSpan(GraphBuilder& graph, const SpanSpec& spec) {
  const std::int64_t features = spec.features;
  const Value centred = graph.Node(
      "Sub", "centred", {PictureInput(graph), graph.Floats("mean", {1, 3, 1, 1}, kRgbMean)});
  const Value ranged = graph.Node("Mul", "ranged", {centred, graph.Scalar("range", kRange)});

  // Seeded weights take the range out again and bring activations to about 2, where the gates work.
  const Value first =
      Conv(graph, "conv_1", ranged, {.in = 3, .out = features, .gain = 8.0 / kRange});
  std::vector<BlockValues> blocks;
  Value x = first;
  for (int i = 1; i <= kBlocks; ++i) {
    blocks.push_back(Block(graph, "block_" + std::to_string(i), x, spec.features));
    x = blocks.back().output;
  }
  x = Conv(graph, "conv_2", x, {.in = features, .out = features, .gain = kLinearGain});
  x = graph.Node("Concat", "joined",
                 {first, x, blocks.front().output, blocks.back().first_activation},
                 {{"axis", std::int64_t{1}}});
  x = Conv(graph, "conv_cat", x,
           {.in = 4 * features, .out = features, .kernel = 1, .gain = kLinearGain});
  x = Conv(graph, "upsampler.0", x,
           {.in = features, .out = 3 * spec.scale * spec.scale, .gain = 0.1, .bias_mean = 0.5});
  PictureOutput(graph, PixelShuffle(graph, "output", x, spec.scale));
}

}  // namespace tessera
