#include "models/f5dctnet.h"

#include <string>

#include "models/layers.h"

namespace tessera {
namespace {

using Value = GraphBuilder::Value;
constexpr std::int64_t kGrid = 256;
// Larger coefficients count as this one: F5 changes values by one, and nearly all are small.
constexpr int kMaxValue = 5;

// One plane for each value of a coefficient, 1 where the coefficient has that value.
Value OneHotPlanes(GraphBuilder& graph, const Value& coefficients) {
  const Value real = graph.Node("Cast", "coefficients.float", {coefficients},
                                {{"to", std::int64_t{onnx::TensorProto::FLOAT}}});
  const Value shape = graph.Ints("grid.shape", {1, 1, kGrid, kGrid});
  const Value grid = graph.Node("Reshape", "grid", {real, shape});
  const Value low = graph.Scalar("clip.min", -kMaxValue);
  const Value high = graph.Scalar("clip.max", kMaxValue);
  const Value clipped = graph.Node("Clip", "clip", {grid, low, high});

  std::vector<Value> planes;
  for (int value = -kMaxValue; value <= kMaxValue; ++value) {
    const std::string name = "plane." + std::to_string(value);
    const Value constant = graph.Scalar(name + ".value", static_cast<float>(value));
    const Value equal = graph.Node("Equal", name + ".equal", {clipped, constant});
    planes.push_back(
        graph.Node("Cast", name, {equal}, {{"to", std::int64_t{onnx::TensorProto::FLOAT}}}));
  }
  return graph.Node("Concat", "planes", planes, {{"axis", std::int64_t{1}}});
}

Value ConvBatchNormRelu(GraphBuilder& graph, const std::string& name, const Value& x,
                        ConvSpec spec) {
  spec.bias = false;  // the normalisation has one
  const Value conv = Conv(graph, name + ".conv", x, spec);
  const auto channel_weight = [&](const char* field, double mean, double deviation) {
    return graph.Weight(name + ".bn." + field, {spec.out}, {.mean = mean, .deviation = deviation});
  };
  const Value scale = channel_weight("weight", 1, 0.1);
  const Value bias = channel_weight("bias", 0, 0.1);
  const Value mean = channel_weight("running_mean", 0, 0.1);
  const Value variance = channel_weight("running_var", 1, 0.1);
  const Value normalised = graph.Node("BatchNormalization", name + ".bn",
                                      {conv, scale, bias, mean, variance}, {{"epsilon", 1e-5f}});
  return graph.Node("Relu", name, {normalised});
}

Value Gemm(GraphBuilder& graph, const std::string& name, const Value& x, std::int64_t in,
           std::int64_t out) {
  const double deviation = 1 / static_cast<double>(in);
  const Value weight =
      graph.Weight(name + ".weight", {out, in}, {.mean = 0, .deviation = 8 * deviation});
  const Value bias = graph.Weight(name + ".bias", {out}, {.mean = 0, .deviation = 0.1});
  return graph.Node("Gemm", name, {x, weight, bias},
                    {{"alpha", 1.0f}, {"beta", 1.0f}, {"transB", std::int64_t{1}}});
}

}  // namespace

void DefineF5DctNet(GraphBuilder& graph, const F5DctNetSpec& spec) {
  const bool strided = spec.downsampling == F5DctNetSpec::Downsampling::kStridedConv;
  Value x = OneHotPlanes(graph,
                         graph.Input("coefficients", onnx::TensorProto::INT16, {1, kGrid * kGrid}));
  std::int64_t channels = 2 * kMaxValue + 1;
  for (std::size_t stage = 0; stage < spec.widths.size(); ++stage) {
    const std::string name = "stage" + std::to_string(stage + 1);
    const std::int64_t width = spec.widths[stage];
    x = ConvBatchNormRelu(graph, name + ".1", x, {.in = channels, .out = width});
    x = ConvBatchNormRelu(graph, name + ".2", x,
                          {.in = width, .out = width, .stride = strided ? 2 : 1});
    if (!strided) {
      x = graph.Node("AveragePool", name + ".pool", {x},
                     {{"kernel_shape", std::vector<std::int64_t>{2, 2}},
                      {"strides", std::vector<std::int64_t>{2, 2}}});
    }
    channels = width;
  }
  x = graph.Node("GlobalAveragePool", "pool", {x});
  x = graph.Node("Flatten", "features", {x}, {{"axis", std::int64_t{1}}});
  const Value ratio = graph.Scalar("dropout.ratio", 0.2f);
  x = graph.Node("Dropout", "dropout", {x, ratio});
  graph.Output(Gemm(graph, "logits_detect", x, channels, 2), onnx::TensorProto::FLOAT, {1, 2});
  graph.Output(Gemm(graph, "beta_raw", x, channels, 1), onnx::TensorProto::FLOAT, {1, 1});
}

}  // namespace tessera
