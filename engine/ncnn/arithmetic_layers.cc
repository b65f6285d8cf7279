// Layers that combine blobs number by number, with each other or with constants.
#include <array>
#include <numbers>
#include <utility>

#include "engine/ncnn/layers.h"

namespace tessera {
namespace {

using Layer = NcnnLayerContext;

// `x` with as many axes as `other`, if that has more. ncnn puts the axes of x outermost; only a
// list (rank 1) that does not fit the outermost axis becomes the innermost one.
NcnnBlob Extend(Layer& layer, const NcnnBlob& x, const NcnnBlob& other) {
  if (x.rank() >= other.rank()) return x;
  const std::int64_t length = x.dims[0], outer = other.dims.front();
  const bool innermost = x.rank() == 1 && length > 1 && outer >= 0 && length != outer;
  std::vector<int> axes;
  for (int i = x.rank(); i < other.rank(); ++i) axes.push_back(innermost ? i - x.rank() : i);
  return layer.Unsqueeze(x, axes);
}

// The angle of the point (x, y), from the axis of x.
NcnnBlob Atan2(Layer& layer, const NcnnBlob& y, const NcnnBlob& x) {
  const float pi = std::numbers::pi_v<float>;
  const ValueId zero = layer.Scalar(0);
  const NcnnBlob angle = layer.Unary("Atan", layer.Binary("Div", y, x));
  const auto is = [&](std::string_view comparison, const NcnnBlob& a) {
    return layer.Node(comparison, {a.value, zero}, a.dims, {}, DType::kBool);
  };
  const NcnnBlob half_turn =
      layer.Node("Where", {is("Less", y).value, layer.Scalar(-pi), layer.Scalar(pi)}, y.dims);
  const NcnnBlob left = layer.Node(
      "Where", {is("Less", x).value, layer.Binary("Add", angle, half_turn).value, angle.value},
      angle.dims);
  // 0 / 0 is no number.
  const NcnnBlob on_axis =
      layer.Node("Where", {is("Less", x).value, half_turn.value, zero}, angle.dims);
  const NcnnBlob flat =
      layer.Node("And", {is("Equal", y).value, is("Equal", x).value}, angle.dims, {}, DType::kBool);
  return layer.Node("Where", {flat.value, on_axis.value, left.value}, angle.dims);
}

// Of a division whose result is rounded to the nearest integer.
NcnnBlob Remainder(Layer& layer, const NcnnBlob& a, const NcnnBlob& b) {
  const NcnnBlob times = layer.Unary("Round", layer.Binary("Div", a, b));
  return layer.Binary("Sub", a, layer.Binary("Mul", times, b));
}

NcnnBlob BinaryNode(Layer& layer, int type, const NcnnBlob& a, const NcnnBlob& b) {
  constexpr std::array<std::string_view, 7> kOps = {"Add", "Sub", "Mul", "Div",
                                                    "Max", "Min", "Pow"};
  if (type >= 0 && type < static_cast<int>(kOps.size())) {
    return layer.Binary(kOps[static_cast<std::size_t>(type)], a, b);
  }
  switch (type) {
    case 7:
      return layer.Binary("Sub", b, a);
    case 8:
      return layer.Binary("Div", b, a);
    case 9:
      return layer.Binary("Pow", b, a);
    case 10:
      return Atan2(layer, a, b);
    case 11:
      return Atan2(layer, b, a);
    case 12:
      return layer.Binary("Mod", a, b, {{"fmod", std::int64_t{1}}});
    case 13:
      return layer.Binary("Mod", b, a, {{"fmod", std::int64_t{1}}});
    case 14: {  // log(exp(a) + exp(b))
      const NcnnBlob larger = layer.Binary("Max", a, b), smaller = layer.Binary("Min", a, b);
      const NcnnBlob gap = layer.Binary("Sub", smaller, larger);
      return layer.Binary("Add", larger, layer.Unary("Softplus", gap));
    }
    case 15:
      return layer.Unary("Floor", layer.Binary("Div", a, b));
    case 16:
      return layer.Unary("Floor", layer.Binary("Div", b, a));
    case 17:
      return Remainder(layer, a, b);
    case 18:
      return Remainder(layer, b, a);
    default:
      layer.Fail("operation ", type, " is not known");
  }
}

void BinaryOp(Layer& layer) {
  const int type = layer.Int(0, 0);
  const bool with_scalar = layer.Int(1, 0) != 0;
  const float scalar = layer.Float(2, 0);
  const NcnnBlob a = layer.ToFloat(layer.In(0));
  if (with_scalar) {
    const NcnnBlob b{layer.Scalar(scalar), std::vector<std::int64_t>(a.dims.size(), 1)};
    layer.Out(BinaryNode(layer, type, a, b));
    return;
  }
  layer.Check(layer.num_bottoms() == 2, "needs two inputs");
  const NcnnBlob b = layer.ToFloat(layer.In(1));
  layer.Out(BinaryNode(layer, type, Extend(layer, a, b), Extend(layer, b, a)));
}

void Bias(Layer& layer) {
  std::vector<float> bias = layer.FloatWeights(layer.Int(0, 0));
  const NcnnBlob x = layer.ToFloat(layer.In(0));
  // Blobs of one and two axes count as one channel.
  if (x.rank() < 3) bias.resize(1);
  layer.Out(layer.WithConstant("Add", x, layer.PerChannel(bias, x.rank())));
}

void Scale(Layer& layer) {
  const int size = layer.Int(0, 0);
  const bool has_bias = layer.Int(1, 0) != 0;
  const NcnnBlob x = layer.ToFloat(layer.In(0));
  if (size == kNcnnAuto) {
    layer.Check(layer.num_bottoms() == 2 && !has_bias, "needs a second input and no bias");
    // One number for each channel, whatever the shape that it comes in.
    const NcnnBlob scale = layer.Flatten(layer.ToFloat(layer.In(1)));
    std::vector<int> axes;
    for (int i = 1; i < x.rank(); ++i) axes.push_back(i);
    layer.Out(layer.Binary("Mul", x, axes.empty() ? scale : layer.Unsqueeze(scale, axes)));
    return;
  }
  const std::vector<float> scale = layer.FloatWeights(size);
  NcnnBlob y = layer.WithConstant("Mul", x, layer.PerChannel(scale, x.rank()));
  if (has_bias) {
    y = layer.WithConstant("Add", y, layer.PerChannel(layer.FloatWeights(size), x.rank()));
  }
  layer.Out(y);
}

void Dropout(Layer& layer) {
  const float scale = layer.Float(0, 1);
  const NcnnBlob x = layer.In(0);
  layer.Out(scale == 1 ? x : layer.WithConstant("Mul", layer.ToFloat(x), layer.Scalar(scale)));
}

void Eltwise(Layer& layer) {
  constexpr std::array<std::string_view, 3> kOps = {"Mul", "Add", "Max"};
  constexpr int kSum = 1;
  const int type = layer.Int(0, 0);
  const std::vector<float> weights = layer.Floats(1);
  layer.Check(type >= 0 && type < static_cast<int>(kOps.size()), "operation ", type,
              " is not known");
  const bool weighted = type == kSum && !weights.empty();
  layer.Check(!weighted || weights.size() >= layer.num_bottoms(), "has ", weights.size(),
              " coefficients for ", layer.num_bottoms(), " inputs");
  NcnnBlob y;
  for (std::size_t i = 0; i < layer.num_bottoms(); ++i) {
    NcnnBlob x = layer.ToFloat(layer.In(i));
    if (weighted && weights[i] != 1) {
      x = layer.WithConstant("Mul", x, layer.Scalar(weights[i]));
    }
    y = i == 0 ? x : layer.Binary(kOps[static_cast<std::size_t>(type)], y, x);
  }
  layer.Out(y);
}

constexpr NcnnLayerDef kLayers[] = {
    {"Bias", 1, 1, 1, 1, Bias},       {"BinaryOp", 1, 2, 1, 1, BinaryOp},
    {"Dropout", 1, 1, 1, 1, Dropout}, {"Eltwise", 2, -1, 1, 1, Eltwise},
    {"Scale", 1, 2, 1, 1, Scale},
};

}  // namespace

std::span<const NcnnLayerDef> NcnnArithmeticLayers() { return kLayers; }

}  // namespace tessera
