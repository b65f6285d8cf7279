#include "models/siamese.h"

#include <cmath>
#include <map>
#include <string>

#include "models/layers.h"

namespace tessera {
namespace {

using Value = GraphBuilder::Value;

constexpr std::int64_t kTemplateSize = 128, kSearchSize = 256, kStride = 16;
constexpr std::int64_t kTemplateSide = kTemplateSize / kStride, kSearchSide = kSearchSize / kStride;
constexpr std::int64_t kStemWidth = 16, kFeatures = 128;
constexpr int kTowerLength = 3;
// Seeded weights: boxes begin at half the template's target in each direction.
constexpr double kBoxSide = 32;

struct Bottleneck {
  std::int64_t kernel, hidden, out, stride;
  const char* activation;
};

constexpr Bottleneck kBackbone[] = {
    {3, 16, 16, 1, "Relu"},       {3, 96, 24, 2, "Relu"},       {3, 72, 24, 1, "Relu"},
    {5, 144, 32, 2, "Relu"},      {3, 96, 32, 1, "Relu"},       {5, 192, 32, 1, "Relu"},
    {5, 192, 64, 2, "HardSwish"}, {3, 192, 64, 1, "HardSwish"}, {5, 384, 64, 1, "HardSwish"},
    {5, 384, 96, 1, "HardSwish"}, {5, 576, 96, 1, "HardSwish"},
};

ConvSpec Pointwise(std::int64_t in, std::int64_t out, double gain) {
  return {.in = in, .out = out, .kernel = 1, .gain = gain};
}

ConvSpec Depthwise(std::int64_t channels, std::int64_t kernel, std::int64_t stride, double gain) {
  return {.in = channels,
          .out = channels,
          .kernel = kernel,
          .stride = stride,
          .groups = channels,
          .gain = gain};
}

// Runs on several inputs with the same weights, which are made when the first asks for them.
class Backbone {
 public:
  explicit Backbone(GraphBuilder& graph) : graph_(graph) {}

  // Features of a patch; nodes are called TOWER.LAYER.
  Value Apply(const std::string& tower, const Value& patch) {
    tower_ = tower + ".";
    Value x =
        Activate("stem", "HardSwish",
                 Convolve("stem", patch, {.in = 3, .out = kStemWidth, .kernel = 3, .stride = 2}));
    std::int64_t channels = kStemWidth;
    int index = 0;
    for (const Bottleneck& block : kBackbone) {
      x = Apply("block" + std::to_string(++index), x, channels, block);
      channels = block.out;
    }
    return Convolve("neck", x, Pointwise(channels, kFeatures, kLinearGain));
  }

 private:
  Value Apply(const std::string& name, const Value& x, std::int64_t in, const Bottleneck& block) {
    Value y = x;
    if (block.hidden != in) {
      y = Convolve(name + ".expand", y, Pointwise(in, block.hidden, kReluGain));
      y = Activate(name + ".expand", block.activation, y);
    }
    y = Convolve(name + ".depthwise", y,
                 Depthwise(block.hidden, block.kernel, block.stride, kReluGain));
    y = Activate(name + ".depthwise", block.activation, y);
    const bool residual = block.stride == 1 && block.out == in;
    // What is added to a shortcut is half as large, so that a row of blocks stays level.
    y = Convolve(name + ".project", y,
                 Pointwise(block.hidden, block.out, residual ? kLinearGain / 2 : kLinearGain));
    return residual ? graph_.Node("Add", tower_ + name, {x, y}) : y;
  }

  Value Convolve(const std::string& name, const Value& x, const ConvSpec& spec) {
    const auto [weights, is_new] = weights_.try_emplace(name);
    if (is_new) weights->second = MakeConvWeights(graph_, name, spec);
    return Conv(graph_, tower_ + name, x, spec, weights->second);
  }

  Value Activate(const std::string& name, const char* type, const Value& x) {
    return graph_.Node(type, tower_ + name + ".act", {x});
  }

  GraphBuilder& graph_;
  std::string tower_;
  std::map<std::string, ConvWeights> weights_;
};

Value Separable(GraphBuilder& graph, const std::string& name, const Value& x, std::int64_t in,
                const ConvSpec& pointwise) {
  const Value y = Conv(graph, name + ".depthwise", x, Depthwise(in, 3, 1, kLinearGain));
  return Conv(graph, name + ".pointwise", y, pointwise);
}

Value SeparableRelu(GraphBuilder& graph, const std::string& name, const Value& x, std::int64_t in) {
  return graph.Node("Relu", name,
                    {Separable(graph, name, x, in, Pointwise(in, kFeatures, kReluGain))});
}

// One map for each of the template's pixels (`kernel`, [1, pixels, channels]).
Value Correlate(GraphBuilder& graph, const std::string& name, const Value& kernel, const Value& x) {
  const Value flat_shape =
      graph.Ints(name + ".flat.shape", {1, kFeatures, kSearchSide * kSearchSide});
  const Value flat = graph.Node("Reshape", name + ".flat", {x, flat_shape});
  const Value product = graph.Node("MatMul", name + ".product", {kernel, flat});
  const Value shape =
      graph.Ints(name + ".shape", {1, kTemplateSide * kTemplateSide, kSearchSide, kSearchSide});
  return graph.Node("Reshape", name, {product, shape});
}

// The last layer of the class or of the box branch.
Value Branch(GraphBuilder& graph, const std::string& name, const Value& kernel, const Value& search,
             ConvSpec last) {
  const Value x = SeparableRelu(graph, name + ".encode", search, kFeatures);
  const Value correlation = Correlate(graph, name + ".correlation", kernel, x);
  const Value joined =
      graph.Node("Concat", name + ".joined", {x, correlation}, {{"axis", std::int64_t{1}}});
  Value y = SeparableRelu(graph, name + ".join", joined, kFeatures + kTemplateSide * kTemplateSide);
  for (int i = 1; i <= kTowerLength; ++i) {
    y = SeparableRelu(graph, name + ".tower" + std::to_string(i), y, kFeatures);
  }
  return Separable(graph, name + ".last", y, kFeatures, last);
}

}  // namespace

void DefineSiameseTwoTower(GraphBuilder& graph) {
  const auto patch = [&](const char* name, std::int64_t size) {
    return graph.Input(name, onnx::TensorProto::FLOAT, {1, 3, size, size});
  };
  Backbone backbone(graph);
  const Value target = backbone.Apply("template", patch("template", kTemplateSize));
  const Value search = backbone.Apply("search", patch("search", kSearchSize));

  const Value shape =
      graph.Ints("kernel.flat.shape", {1, kFeatures, kTemplateSide * kTemplateSide});
  const Value kernel =
      graph.Node("Transpose", "kernel", {graph.Node("Reshape", "kernel.flat", {target, shape})},
                 {{"perm", std::vector<std::int64_t>{0, 2, 1}}});

  // The gains bring logits to a few units and boxes to within a factor of two of each other.
  ConvSpec last = Pointwise(kFeatures, 1, 4);
  Value classes = Branch(graph, "class", kernel, search, last);
  last = Pointwise(kFeatures, 4, 0.3);
  last.bias_mean = std::log(kBoxSide);
  const Value logs = Branch(graph, "box", kernel, search, last);

  classes = graph.Node("Identity", "classes", {classes});
  graph.Output(classes, onnx::TensorProto::FLOAT, {1, 1, kSearchSide, kSearchSide});
  graph.Output(graph.Node("Exp", "boxes", {logs}), onnx::TensorProto::FLOAT,
               {1, 4, kSearchSide, kSearchSide});
}

}  // namespace tessera
