// A convolution that goes nowhere but into a 1x1 convolution, alone or as a part of a Concat, makes
// the 1x1 convolution's share of its channels at once:
//   P(Concat(C(x), rest)) = (P_C o C)(x) + P_rest(rest),
// as SPAN ends: the last 3x3 convolution then writes its share of the result on top of the rest's.
// https://arxiv.org/abs/2311.12770
#include <algorithm>
#include <vector>

#include "engine/passes/conv_fusion.h"
#include "engine/passes/passes.h"

namespace tessera {
namespace {

constexpr std::int64_t kUnknown = -1;

// The channels of rank-4 values as far as they follow from weights alone; kUnknown elsewhere.
std::vector<std::int64_t> ChannelsFromWeights(const Graph& graph) {
  std::vector<std::int64_t> channels(graph.values.size(), kUnknown);
  const auto of = [&](ValueId v) {
    const Tensor* t = graph.Constant(v);
    if (t == nullptr) return channels[static_cast<std::size_t>(v)];
    const int rank = t->shape().rank();
    return rank >= 3 ? t->shape()[rank - 3] : 1;
  };
  for (const Node& node : graph.nodes) {
    const std::string& type = node.op.type;
    std::int64_t& out = channels[static_cast<std::size_t>(node.outputs[0])];
    if (type == "Conv") {
      const Tensor* w = graph.Constant(node.inputs[1]);
      if (w != nullptr && w->shape().rank() == 4) out = w->shape()[0];
    } else if (type == "Relu" || type == "LeakyRelu" || type == "PRelu" || type == "Clip" ||
               type == "Sigmoid" || type == "Tanh" || type == "HardSwish") {
      out = of(node.inputs[0]);
    } else if (type == "Add" || type == "Sub" || type == "Mul" || type == "Div") {
      const std::int64_t a = of(node.inputs[0]), b = of(node.inputs[1]);
      if (a != kUnknown && b != kUnknown) out = std::max(a, b);
    }
  }
  return channels;
}

bool AreAll(const std::vector<std::int64_t>& values, std::int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [&](std::int64_t v) { return v == wanted; });
}

// A 2-D Conv in one group, with weights that can be changed.
bool IsDense(const Graph& graph, const Node& node) {
  return HasFloatWeights(graph, node) && graph.Constant(node.inputs[1])->shape().rank() == 4 &&
         AtNode(graph, node, [&] { return node.op.attributes.Int("group", 1) == 1; });
}

bool IsPointwise(const Graph& graph, const Node& node) {
  if (!IsDense(graph, node)) return false;
  const Shape& w = graph.Constant(node.inputs[1])->shape();
  return w[2] == 1 && w[3] == 1 && AtNode(graph, node, [&] {
           const Attributes& a = node.op.attributes;
           return a.String("auto_pad", "NOTSET") == "NOTSET" && AreAll(a.Ints("pads"), 0) &&
                  AreAll(a.Ints("strides"), 1);
         });
}

// Weights of the 1x1 convolution for its input channels [begin, end), or for all others.
Tensor TakeColumns(const Tensor& weights, std::int64_t begin, std::int64_t end, bool others) {
  const Shape& s = weights.shape();
  const std::int64_t taken = others ? s[1] - (end - begin) : end - begin;
  Tensor out(DType::kFloat32, {s[0], taken, 1, 1});
  float* to = out.data<float>();
  for (std::int64_t o = 0; o < s[0]; ++o) {
    for (std::int64_t c = 0; c < s[1]; ++c) {
      if ((c >= begin && c < end) != others) *to++ = weights.data<float>()[o * s[1] + c];
    }
  }
  return out;
}

// a [O, C, 1, 1] times b [C, N] as [O, N].
std::vector<float> Multiply(const Tensor& a, const float* b, std::int64_t n) {
  const std::int64_t rows = a.shape()[0], inner = a.shape()[1];
  std::vector<float> out;
  std::vector<double> sums(static_cast<std::size_t>(n));
  for (std::int64_t o = 0; o < rows; ++o) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::int64_t c = 0; c < inner; ++c) {
      const auto factor = static_cast<double>(a.data<float>()[o * inner + c]);
      for (std::int64_t i = 0; i < n; ++i) {
        sums[static_cast<std::size_t>(i)] += factor * static_cast<double>(b[c * n + i]);
      }
    }
    for (const double sum : sums) out.push_back(static_cast<float>(sum));
  }
  return out;
}

const Tensor* Bias(const Graph& graph, const Node& conv) {
  return conv.inputs.size() > kConvBias ? graph.Constant(conv.inputs[kConvBias]) : nullptr;
}

// The convolution `share` followed by `conv`'s own, as a node that writes `output`.
Node Compose(Graph& graph, const Node& conv, const Tensor& share, const Tensor* bias,
             ValueId output) {
  const Tensor& w = *graph.Constant(conv.inputs[1]);
  Shape shape = w.shape();
  const std::int64_t per_channel = shape.NumElements(1, 4);
  shape[0] = share.shape()[0];
  Tensor new_bias(DType::kFloat32, {shape[0]});
  std::fill_n(new_bias.data<float>(), shape[0], 0.f);
  if (const Tensor* own = Bias(graph, conv)) {
    const std::vector<float> sums = Multiply(share, own->data<float>(), 1);
    std::copy(sums.begin(), sums.end(), new_bias.data<float>());
  }
  for (std::int64_t o = 0; bias != nullptr && o < shape[0]; ++o) {
    new_bias.data<float>()[o] += bias->data<float>()[o];
  }
  Tensor new_weights =
      Tensor::FromVector<float>(shape, Multiply(share, w.data<float>(), per_channel));
  Node out = conv;
  out.inputs = {
      conv.inputs[0],
      graph.AddConstant(StrCat(conv.op.name, ".weights.pointwise"), std::move(new_weights)),
      graph.AddConstant(StrCat(conv.op.name, ".bias.pointwise"), std::move(new_bias))};
  out.outputs = {output};
  return out;
}

// The convolution of a part of the 1x1 convolution's input, and the place of its channels there.
struct Part {
  const Node* conv = nullptr;
  std::size_t index = 0;
  std::int64_t begin = 0, end = 0;
};

// The first part that a convolution of no fewer channels than the result makes for it alone.
Part FindPart(const Graph& graph, const std::vector<ValueId>& parts, const Tensor& pointwise,
              const std::vector<int>& producers, const std::vector<std::vector<int>>& consumers) {
  const std::vector<std::int64_t> channels = ChannelsFromWeights(graph);
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < parts.size() && parts[i] != kNoValue; ++i) {
    const std::int64_t count = channels[static_cast<std::size_t>(parts[i])];
    if (graph.Constant(parts[i]) != nullptr || count == kUnknown) break;
    const Node* conv = OnlyProducer(graph, parts[i], "Conv", producers, consumers);
    if (conv != nullptr && IsDense(graph, *conv) && count >= pointwise.shape()[0] &&
        begin + count <= pointwise.shape()[1]) {
      return {conv, i, begin, begin + count};
    }
    begin += count;
  }
  return {};
}

// Others than convolutions may be fused with the 1x1 convolution later: those are left to it.
bool OnlyConvolutionsRead(const Graph& graph, ValueId value,
                          const std::vector<std::vector<int>>& consumers) {
  const auto& readers = consumers[static_cast<std::size_t>(value)];
  return std::all_of(readers.begin(), readers.end(), [&](int reader) {
    return graph.nodes[static_cast<std::size_t>(reader)].op.type == "Conv";
  });
}

bool FoldAt(Graph& graph, std::size_t n) {
  const auto producers = graph.Producers();
  const auto consumers = graph.Consumers();
  const Node pointwise = graph.nodes[n];
  if (!OnlyConvolutionsRead(graph, pointwise.outputs[0], consumers)) return false;
  const Node* concat = OnlyProducer(graph, pointwise.inputs[0], "Concat", producers, consumers);
  if (concat != nullptr &&
      AtNode(graph, *concat, [&] { return concat->op.attributes.Int("axis", 0); }) != 1) {
    return false;
  }
  std::vector<ValueId> parts = concat ? concat->inputs : std::vector{pointwise.inputs[0]};
  const Tensor& weights = *graph.Constant(pointwise.inputs[1]);
  const Part part = FindPart(graph, parts, weights, producers, consumers);
  if (part.conv == nullptr) return false;
  const Tensor share = TakeColumns(weights, part.begin, part.end, /*others=*/false);
  if (parts.size() == 1) {
    if (part.end != weights.shape()[1]) return false;  // an error that Conv reports
    graph.nodes[n] =
        Compose(graph, *part.conv, share, Bias(graph, pointwise), pointwise.outputs[0]);
    return true;
  }

  const Node composed = Compose(graph, *part.conv, share, Bias(graph, pointwise),
                                graph.AddValue(StrCat(pointwise.op.name, ".part")));
  parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(part.index));
  Node rest_concat = *concat, rest = pointwise;
  rest_concat.inputs = parts;
  rest_concat.outputs = {graph.AddValue(StrCat(pointwise.op.name, ".rest.input"))};
  rest.inputs = {rest_concat.outputs[0],
                 graph.AddConstant(StrCat(pointwise.op.name, ".weights.rest"),
                                   TakeColumns(weights, part.begin, part.end, /*others=*/true))};
  rest.outputs = {graph.AddValue(StrCat(pointwise.op.name, ".rest"))};
  // The composed convolution takes the sum: it has the longer computation to hide the reading of
  // the other's result behind. (An Add would broadcast where the Concat's parts do not fit
  // together.)
  graph.nodes[n] = MakeFusedConv(composed, {.combine = Combine::kAdd}, kNoValue, rest.outputs[0],
                                 pointwise.outputs[0]);
  graph.nodes.insert(graph.nodes.begin() + static_cast<std::ptrdiff_t>(n), {rest_concat, rest});
  return true;
}

}  // namespace

int FoldPointwise(Graph& graph) {
  int rewrites = 0;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (IsPointwise(graph, graph.nodes[n]) && FoldAt(graph, n)) ++rewrites;
  }
  return rewrites;
}

}  // namespace tessera
