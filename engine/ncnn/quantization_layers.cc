// Quantize, Dequantize, Requantize and Cast.
#include "engine/ncnn/layers.h"

namespace tessera {
namespace {

using Layer = NcnnLayerContext;

// Multiplies by one number, or by one for each channel.
NcnnBlob PerChannel(Layer& layer, std::string_view op, const NcnnBlob& x,
                    const std::vector<float>& values) {
  return layer.WithConstant(op, x, layer.PerChannel(values, values.size() == 1 ? 1 : x.rank()));
}

// To the nearest integer, halves away from 0 (ONNX's Round takes the even one), from -127 to 127.
NcnnBlob ToInt8(Layer& layer, const NcnnBlob& x) {
  const NcnnBlob size = layer.WithConstant("Add", layer.Unary("Abs", x), layer.Scalar(0.5f));
  const NcnnBlob rounded = layer.Binary("Mul", layer.Unary("Sign", x), layer.Unary("Floor", size));
  return layer.Cast(layer.Activation(rounded, 3, {-127, 127}), DType::kInt8);
}

void Quantize(Layer& layer) {
  const std::vector<float> scale = layer.FloatWeights(layer.Int(0, 1));
  layer.Out(ToInt8(layer, PerChannel(layer, "Mul", layer.ToFloat(layer.In(0)), scale)));
}

void Dequantize(Layer& layer) {
  const int scales = layer.Int(0, 1), biases = layer.Int(1, 0);
  NcnnBlob y = layer.ToFloat(layer.In(0));
  y = PerChannel(layer, "Mul", y, layer.FloatWeights(scales));
  if (biases != 0) y = PerChannel(layer, "Add", y, layer.FloatWeights(biases));
  layer.Out(y);
}

void Requantize(Layer& layer) {
  const int scales_in = layer.Int(0, 1), scales_out = layer.Int(1, 1), biases = layer.Int(2, 0);
  const int activation = layer.Int(3, 0);
  const std::vector<float> scale_in = layer.FloatWeights(scales_in);
  const std::vector<float> scale_out = layer.FloatWeights(scales_out);
  NcnnBlob y = PerChannel(layer, "Mul", layer.ToFloat(layer.In(0)), scale_in);
  if (biases != 0) y = PerChannel(layer, "Add", y, layer.FloatWeights(biases));
  y = layer.Activation(y, activation, layer.Floats(4));
  layer.Out(ToInt8(layer, PerChannel(layer, "Mul", y, scale_out)));
}

void Cast(Layer& layer) {
  enum Type { kAuto, kFloat32, kFloat16, kInt8, kBfloat16 };
  const int from = layer.Int(0, 0), to = layer.Int(1, 0);
  const NcnnBlob x = layer.In(0);
  const auto is_known = [](int type) { return type >= kAuto && type <= kBfloat16; };
  layer.Check(is_known(from) && is_known(to), "type ", is_known(from) ? to : from, " is not known");
  if (from == to) return layer.Out(x);
  if (to == kFloat16) {
    // Rounded to float16; what follows computes in float32, as it does in ncnn.
    return layer.Out(layer.ToFloat(layer.Cast(layer.ToFloat(x), DType::kFloat16)));
  }
  layer.Check(to != kInt8, "ncnn has no conversion to int8 but Quantize");
  // bfloat16 is how ncnn stores numbers to save memory: not rounding them is more exact.
  layer.Out(layer.ToFloat(x));
}

constexpr NcnnLayerDef kLayers[] = {
    {"Cast", 1, 1, 1, 1, Cast},
    {"Dequantize", 1, 1, 1, 1, Dequantize},
    {"Quantize", 1, 1, 1, 1, Quantize},
    {"Requantize", 1, 1, 1, 1, Requantize},
};

}  // namespace

std::span<const NcnnLayerDef> NcnnQuantizationLayers() { return kLayers; }

}  // namespace tessera
