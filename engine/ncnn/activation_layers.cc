// Layers of one input that work on each number by itself.
#include <array>
#include <cmath>
#include <limits>

#include "engine/ncnn/layers.h"

namespace tessera {
namespace {

using Layer = NcnnLayerContext;

NcnnBlob Input(Layer& layer) { return layer.ToFloat(layer.In(0)); }

template <const char* kOp>
void Simple(Layer& layer) {
  layer.Out(layer.Unary(kOp, Input(layer)));
}

constexpr char kAbs[] = "Abs", kErf[] = "Erf", kSigmoid[] = "Sigmoid", kSoftplus[] = "Softplus",
               kTanh[] = "Tanh";

void Celu(Layer& layer) {
  layer.Out(layer.Unary("Celu", Input(layer), {{"alpha", layer.Float(0, 1)}}));
}

void Clip(Layer& layer) {
  constexpr float kMax = std::numeric_limits<float>::max();
  const float low = layer.Float(0, -kMax), high = layer.Float(1, kMax);
  layer.Out(layer.Activation(Input(layer), 3, {low, high}));
}

void Elu(Layer& layer) {
  layer.Out(layer.Unary("Elu", Input(layer), {{"alpha", layer.Float(0, 0.1f)}}));
}

// scale * x + shift
NcnnBlob Linear(Layer& layer, const NcnnBlob& x, float scale, float shift) {
  NcnnBlob y = x;
  if (scale != 1) y = layer.WithConstant("Mul", y, layer.Scalar(scale));
  if (shift != 0) y = layer.WithConstant("Add", y, layer.Scalar(shift));
  return y;
}

void Exp(Layer& layer) {
  const float base = layer.Float(0, -1), scale = layer.Float(1, 1), shift = layer.Float(2, 0);
  NcnnBlob y = Linear(layer, Input(layer), scale, shift);
  if (base == -1) {
    y = layer.Unary("Exp", y);
  } else {
    y = layer.Node("Pow", {layer.Scalar(base), y.value}, y.dims);
  }
  layer.Out(y);
}

void Log(Layer& layer) {
  const float base = layer.Float(0, -1), scale = layer.Float(1, 1), shift = layer.Float(2, 0);
  const NcnnBlob y = layer.Unary("Log", Linear(layer, Input(layer), scale, shift));
  layer.Out(base == -1 ? y : Linear(layer, y, 1 / std::log(base), 0));
}

void Power(Layer& layer) {
  const float power = layer.Float(0, 1), scale = layer.Float(1, 1), shift = layer.Float(2, 0);
  NcnnBlob y = Linear(layer, Input(layer), scale, shift);
  if (power != 1) y = layer.WithConstant("Pow", y, layer.Scalar(power));
  layer.Out(y);
}

void Gelu(Layer& layer) {
  const NcnnBlob x = Input(layer);
  NcnnBlob inner;
  if (layer.Int(0, 0) != 0) {
    // tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))
    const NcnnBlob square = layer.Binary("Mul", x, x);
    const NcnnBlob cubic = layer.Binary("Mul", x, Linear(layer, square, 0.044715f, 1));
    inner = layer.Unary("Tanh", Linear(layer, cubic, 0.79788456f, 0));
  } else {
    inner = layer.Unary("Erf", Linear(layer, x, 0.70710678f, 0));
  }
  layer.Out(Linear(layer, layer.Binary("Mul", x, Linear(layer, inner, 1, 1)), 0.5f, 0));
}

void HardSigmoid(Layer& layer) {
  const float alpha = layer.Float(0, 0.2f), beta = layer.Float(1, 0.5f);
  layer.Out(layer.Unary("HardSigmoid", Input(layer), {{"alpha", alpha}, {"beta", beta}}));
}

void HardSwish(Layer& layer) {
  const float alpha = layer.Float(0, 0.2f), beta = layer.Float(1, 0.5f);
  layer.Out(layer.HardSwish(Input(layer), alpha, beta));
}

void Mish(Layer& layer) { layer.Out(layer.Mish(Input(layer))); }

void PRelu(Layer& layer) {
  const std::vector<float> slopes = layer.FloatWeights(layer.Int(0, 0));
  const NcnnBlob x = Input(layer);
  if (slopes.size() == 1) {
    layer.Out(layer.Activation(x, 2, slopes));
  } else {
    layer.Out(layer.WithConstant("PRelu", x, layer.PerChannel(slopes, x.rank())));
  }
}

void Relu(Layer& layer) {
  const float slope = layer.Float(0, 0);
  layer.Out(layer.Activation(Input(layer), slope == 0 ? 1 : 2, {slope}));
}

void Selu(Layer& layer) {
  layer.Out(layer.Unary(
      "Selu", Input(layer),
      {{"alpha", layer.Float(0, 1.67326324f)}, {"gamma", layer.Float(1, 1.050700987f)}}));
}

void Swish(Layer& layer) {
  const NcnnBlob x = Input(layer);
  layer.Out(layer.Binary("Mul", x, layer.Unary("Sigmoid", x)));
}

void Threshold(Layer& layer) {
  const NcnnBlob x = Input(layer);
  const NcnnBlob above =
      layer.Node("Greater", {x.value, layer.Scalar(layer.Float(0, 0))}, x.dims, {}, DType::kBool);
  layer.Out(layer.ToFloat(above));
}

// Those of UnaryOp that are one operator of ONNX; the rest is below.
constexpr std::array<std::string_view, 28> kUnaryOps = {
    "Abs",  "Neg", "Floor", "Ceil",  "",     "Sqrt",       "",      "Exp", "Log",   "Sin",
    "Cos",  "Tan", "Asin",  "Acos",  "Atan", "Reciprocal", "Tanh",  "",    "Round", "",
    "Sign", "",    "Sinh",  "Asinh", "Cosh", "Acosh",      "Atanh", ""};

void UnaryOp(Layer& layer) {
  const int type = layer.Int(0, 0);
  const NcnnBlob x = Input(layer);
  layer.Check(type >= 0 && type < static_cast<int>(kUnaryOps.size()), "operation ", type,
              " is not known");
  switch (type) {
    case 4:
      return layer.Out(layer.Binary("Mul", x, x));
    case 6:
      return layer.Out(layer.Unary("Reciprocal", layer.Unary("Sqrt", x)));
    case 17:  // logarithm to the base of 10
      return layer.Out(Linear(layer, layer.Unary("Log", x), 0.43429448f, 0));
    case 19:  // towards 0
      return layer.Out(
          layer.Binary("Mul", layer.Unary("Sign", x), layer.Unary("Floor", layer.Unary("Abs", x))));
    case 21:
      return layer.Out(Linear(layer, layer.Unary("Exp", x), 1, -1));
    case 27:
      return layer.Out(layer.Unary("Log", Linear(layer, x, 1, 1)));
    default:
      return layer.Out(layer.Unary(kUnaryOps[static_cast<std::size_t>(type)], x));
  }
}

constexpr NcnnLayerDef kLayers[] = {
    {"AbsVal", 1, 1, 1, 1, Simple<kAbs>},
    {"BNLL", 1, 1, 1, 1, Simple<kSoftplus>},
    {"CELU", 1, 1, 1, 1, Celu},
    {"Clip", 1, 1, 1, 1, Clip},
    {"ELU", 1, 1, 1, 1, Elu},
    {"Erf", 1, 1, 1, 1, Simple<kErf>},
    {"Exp", 1, 1, 1, 1, Exp},
    {"GELU", 1, 1, 1, 1, Gelu},
    {"HardSigmoid", 1, 1, 1, 1, HardSigmoid},
    {"HardSwish", 1, 1, 1, 1, HardSwish},
    {"Log", 1, 1, 1, 1, Log},
    {"Mish", 1, 1, 1, 1, Mish},
    {"PReLU", 1, 1, 1, 1, PRelu},
    {"Power", 1, 1, 1, 1, Power},
    {"ReLU", 1, 1, 1, 1, Relu},
    {"SELU", 1, 1, 1, 1, Selu},
    {"Sigmoid", 1, 1, 1, 1, Simple<kSigmoid>},
    {"Softplus", 1, 1, 1, 1, Simple<kSoftplus>},
    {"Swish", 1, 1, 1, 1, Swish},
    {"TanH", 1, 1, 1, 1, Simple<kTanh>},
    {"Threshold", 1, 1, 1, 1, Threshold},
    {"UnaryOp", 1, 1, 1, 1, UnaryOp},
};

}  // namespace

std::span<const NcnnLayerDef> NcnnActivationLayers() { return kLayers; }

}  // namespace tessera
