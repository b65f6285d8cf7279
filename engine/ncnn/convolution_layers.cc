// Convolution, ConvolutionDepthWise, Deconvolution, DeconvolutionDepthWise and InnerProduct.
//
// int8 weights are made float32 by their scales; activations are not quantised, which is nearer to
// the network that was trained than ncnn's int8 arithmetic.
#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/ncnn/layers.h"

namespace tessera {
namespace {

struct ConvParams {
  std::int64_t outputs, kernel[2], dilation[2], stride[2];  // of height, width
  int before[2], after[2];                                  // pads
  std::int64_t bias, weights, groups = 1;
  int activation;
  std::vector<float> activation_params;

  std::int64_t Extent(int i) const { return dilation[i] * (kernel[i] - 1) + 1; }
};

// What all of them have in common.
ConvParams ReadParams(NcnnLayerContext& layer, bool grouped) {
  ConvParams p;
  p.outputs = layer.Int(0, 0);
  p.kernel[1] = layer.Int(1, 0);
  p.kernel[0] = layer.Int(11, static_cast<int>(p.kernel[1]));
  p.dilation[1] = layer.Int(2, 1);
  p.dilation[0] = layer.Int(12, static_cast<int>(p.dilation[1]));
  p.stride[1] = layer.Int(3, 1);
  p.stride[0] = layer.Int(13, static_cast<int>(p.stride[1]));
  p.before[1] = layer.Int(4, 0);
  p.after[1] = layer.Int(15, p.before[1]);
  p.before[0] = layer.Int(14, p.before[1]);
  p.after[0] = layer.Int(16, p.before[0]);
  p.bias = layer.Int(5, 0);
  p.weights = layer.Int(6, 0);
  if (grouped) p.groups = layer.Int(7, 1);
  p.activation = layer.Int(9, 0);
  p.activation_params = layer.Floats(10);
  for (int i : {0, 1}) {
    layer.Check(p.dilation[i] > 0 && p.stride[i] > 0, "a stride or dilation is not positive");
  }
  return p;
}

// Input channels of a group, from the number of weights.
std::int64_t GroupInputs(NcnnLayerContext& layer, const ConvParams& p) {
  layer.Check(p.outputs > 0 && p.kernel[0] > 0 && p.kernel[1] > 0 && p.groups > 0 &&
                  p.outputs % p.groups == 0,
              "cannot have ", p.outputs, " outputs in ", p.groups, " groups and a kernel of ",
              p.kernel[0], "x", p.kernel[1]);
  // Four factors of 31 bits could overflow.
  const std::int64_t plane = p.kernel[0] * p.kernel[1];
  const std::int64_t columns = p.weights / p.outputs;
  layer.Check(p.weights > 0 && p.weights % p.outputs == 0 && columns % plane == 0, "has ",
              p.weights, " weights, which is no multiple of ", p.outputs, " outputs times ",
              p.kernel[0], "x", p.kernel[1]);
  return columns / plane;
}

void CheckInput(NcnnLayerContext& layer, const NcnnBlob& x, std::int64_t channels) {
  layer.Check(x.rank() == 3, "its input has ", x.rank(), " axes instead of 3");
  layer.Check(x.dims[0] < 0 || x.dims[0] == channels, "its input has ", x.dims[0],
              " channels, its weights are for ", channels);
}

// Reads weights whose outermost axis is `rows`, and what comes after them (bias, then int8 scales):
// they are float32 then. `scales` is how many scales int8 weights have: 1, or one for each of
// `scales` equal parts of the rows.
struct Weights {
  Tensor values;
  std::vector<float> bias;
  float input_scale = 1;  // of an int8 input
};

Weights ReadWeights(NcnnLayerContext& layer, const Shape& shape, std::int64_t bias, int int8_term,
                    std::int64_t scales) {
  Weights w;
  Tensor stored = layer.Weights(shape);
  if (bias != 0) w.bias = layer.FloatWeights(shape[0]);
  std::vector<float> weight_scales;
  if (int8_term != 0) {
    weight_scales = layer.FloatWeights(scales);
    w.input_scale = layer.FloatWeights(1)[0];
    constexpr int kRequantizes = 100;  // terms above that have a scale for their output, too
    if (int8_term > kRequantizes) layer.FloatWeights(1);
  }
  if (stored.dtype() == DType::kFloat32) {
    w.values = std::move(stored);
    return w;
  }
  layer.Check(!weight_scales.empty(), "has int8 weights without scales");
  w.values = Tensor(DType::kFloat32, shape);
  const std::int64_t part = shape.NumElements() / scales;
  for (std::int64_t i = 0; i < shape.NumElements(); ++i) {
    const float scale = weight_scales[static_cast<std::size_t>(i / part)];
    w.values.data<float>()[i] =
        scale == 0 ? 0 : static_cast<float>(stored.data<std::int8_t>()[i]) / scale;
  }
  return w;
}

// An int8 input holds numbers that were multiplied by a scale.
NcnnBlob FloatInput(NcnnLayerContext& layer, const NcnnBlob& x, float scale) {
  if (x.dtype != DType::kInt8) return layer.ToFloat(x);
  layer.Check(scale != 0, "the scale of its input is 0");
  return layer.WithConstant("Mul", layer.ToFloat(x), layer.Scalar(1 / scale));
}

void FullyConnected(NcnnLayerContext& layer, std::int64_t outputs, std::int64_t weights,
                    std::int64_t bias, int int8_term, int activation,
                    const std::vector<float>& activation_params) {
  layer.Check(outputs > 0 && weights > 0 && weights % outputs == 0, "has ", weights,
              " weights for ", outputs, " outputs");
  const std::int64_t inputs = weights / outputs;
  const Weights w = ReadWeights(layer, {outputs, inputs}, bias, int8_term, outputs);
  NcnnBlob x = FloatInput(layer, layer.In(0), w.input_scale);
  const std::int64_t all = NcnnProduct(x.dims);
  if (x.rank() == 2 && (x.dims[1] < 0 || x.dims[1] == inputs)) {
    // Each row is an input.
    Tensor turned(DType::kFloat32, {inputs, outputs});
    for (std::int64_t o = 0; o < outputs; ++o) {
      for (std::int64_t i = 0; i < inputs; ++i) {
        turned.data<float>()[i * outputs + o] = w.values.data<float>()[o * inputs + i];
      }
    }
    x = layer.Node("MatMul", {x.value, layer.Constant(std::move(turned))}, {x.dims[0], outputs});
    if (!w.bias.empty()) x = layer.WithConstant("Add", x, layer.PerChannel(w.bias, 1));
  } else {
    layer.Check(all < 0 || all == inputs, "its input has ", all, " numbers, its weights are for ",
                inputs);
    std::vector<ValueId> operands = {layer.Flatten(x).value, layer.Constant(w.values.Clone())};
    if (!w.bias.empty()) operands.push_back(layer.PerChannel(w.bias, 1));
    x = layer.Node("Gemm", operands, {outputs}, {{"transB", std::int64_t{1}}});
  }
  layer.Out(layer.Activation(x, activation, activation_params));
}

void InnerProduct(NcnnLayerContext& layer) {
  const int outputs = layer.Int(0, 0), bias = layer.Int(1, 0), weights = layer.Int(2, 0);
  const int int8_term = layer.Int(8, 0), activation = layer.Int(9, 0);
  FullyConnected(layer, outputs, weights, bias, int8_term, activation, layer.Floats(10));
}

std::vector<std::int64_t> Pair(const std::int64_t (&v)[2]) { return {v[0], v[1]}; }

// The length of an axis after a convolution; -1 if it is not known.
std::int64_t ConvLength(NcnnLayerContext& layer, const ConvParams& p, int i, std::int64_t length,
                        std::int64_t pads) {
  if (length < 0) return -1;
  layer.Check(length + pads >= p.Extent(i), "its kernel is larger than its input");
  return (length + pads - p.Extent(i)) / p.stride[i] + 1;
}

// Weights and bias that other layers compute, [out, in, kernel, kernel] and [out].
std::vector<ValueId> ComputedWeights(NcnnLayerContext& layer, const ConvParams& p) {
  layer.Check(layer.num_bottoms() == (p.bias != 0 ? 3u : 2u) && layer.In(1).rank() == 4,
              "its weights have to be its second input, of 4 axes, its bias the third");
  const auto drop_batch = [&](const NcnnBlob& x) {
    return layer.MultiNode("Squeeze", {x.value, layer.Int64s({0})}, 1, {})[0];
  };
  std::vector<ValueId> values = {drop_batch(layer.In(1))};
  if (p.bias != 0) values.push_back(drop_batch(layer.Flatten(layer.In(2))));
  return values;
}

void AnyConvolution(NcnnLayerContext& layer, bool depthwise) {
  ConvParams p = ReadParams(layer, depthwise);
  const int int8_term = layer.Int(8, 0);
  const float pad_value = layer.Float(18, 0);
  const bool computed_weights = layer.Int(19, 0) != 0;

  // Convolution of a flat blob, as old files have it.
  if (!depthwise && !computed_weights && layer.In(0).rank() == 1 && p.kernel[0] == 1 &&
      p.kernel[1] == 1) {
    FullyConnected(layer, p.outputs, p.weights, p.bias, int8_term, p.activation,
                   p.activation_params);
    return;
  }

  NcnnBlob x = layer.In(0);
  std::vector<ValueId> operands;
  if (computed_weights) {
    layer.Check(x.rank() == 3, "its input has ", x.rank(), " axes instead of 3");
    const std::vector<std::int64_t>& w = layer.In(1).dims;
    operands = ComputedWeights(layer, p);
    p.outputs = w[0];
    p.kernel[0] = w[2];
    p.kernel[1] = w[3];
    layer.Check(p.kernel[0] > 0 && p.kernel[1] > 0, "the size of its kernel is not known");
    x = layer.ToFloat(x);
  } else {
    const std::int64_t inputs = GroupInputs(layer, p);
    CheckInput(layer, x, inputs * p.groups);
    constexpr int kOneScale = 2;  // modulo 100; 1 is a scale for each group or output
    const std::int64_t scales = !depthwise                     ? p.outputs
                                : int8_term % 100 == kOneScale ? 1
                                                               : p.groups;
    Weights w = ReadWeights(layer, {p.outputs, inputs, p.kernel[0], p.kernel[1]}, p.bias, int8_term,
                            scales);
    x = FloatInput(layer, x, w.input_scale);
    operands = {layer.Constant(std::move(w.values))};
    if (!w.bias.empty()) operands.push_back(layer.PerChannel(w.bias, 1));
  }

  const auto all_pads_are = [&p](int value) {
    return p.before[0] == value && p.before[1] == value && p.after[0] == value &&
           p.after[1] == value;
  };
  std::vector<NcnnLayerContext::Attribute> attributes;
  std::vector<std::int64_t> dims = {p.outputs, -1, -1};
  std::int64_t pads[4] = {};  // top, left, bottom, right
  const bool lower = all_pads_are(kNcnnAutoLower);
  if (all_pads_are(kNcnnAuto) || lower) {
    bool known = true;
    for (int i : {0, 1}) {
      const std::int64_t length = x.dims[static_cast<std::size_t>(i + 1)];
      known = known && (p.stride[i] == 1 || length >= 0);
      if (length >= 0) dims[static_cast<std::size_t>(i + 1)] = (length - 1) / p.stride[i] + 1;
      const std::int64_t covered = length < 0 ? 0 : (length - 1) / p.stride[i] * p.stride[i];
      const std::int64_t total =
          p.stride[i] == 1 ? p.Extent(i) - 1 : p.Extent(i) + covered - length;
      const std::int64_t less = std::max<std::int64_t>(total, 0) / 2;
      const std::int64_t more = std::max<std::int64_t>(total, 0) - less;
      pads[i] = lower ? more : less;
      pads[i + 2] = lower ? less : more;
    }
    if (p.stride[0] != 1 || p.stride[1] != 1) {
      // How much is added depends on the size of the input.
      layer.Check(pad_value == 0 || known, "SAME pads of ", pad_value,
                  " need an input of known size");
      if (pad_value == 0) {
        attributes.emplace_back("auto_pad", std::string(lower ? "SAME_LOWER" : "SAME_UPPER"));
      }
    }
  } else {
    for (int i : {0, 1}) {
      layer.Check(p.before[i] >= 0 && p.after[i] >= 0, "has pads of ", p.before[i], " and ",
                  p.after[i]);
      pads[i] = p.before[i];
      pads[i + 2] = p.after[i];
      dims[static_cast<std::size_t>(i + 1)] =
          ConvLength(layer, p, i, x.dims[static_cast<std::size_t>(i + 1)], pads[i] + pads[i + 2]);
    }
  }
  if (attributes.empty() && std::ranges::any_of(pads, [](std::int64_t n) { return n != 0; })) {
    if (pad_value != 0) {
      x = layer.Pad(x, {0, pads[0], pads[1]}, {0, pads[2], pads[3]}, "constant", pad_value);
    } else {
      attributes.emplace_back("pads", std::vector<std::int64_t>(std::begin(pads), std::end(pads)));
    }
  }
  attributes.emplace_back("kernel_shape", Pair(p.kernel));
  attributes.emplace_back("strides", Pair(p.stride));
  attributes.emplace_back("dilations", Pair(p.dilation));
  attributes.emplace_back("group", p.groups);
  operands.insert(operands.begin(), x.value);
  layer.Out(layer.Activation(layer.Node("Conv", operands, dims, attributes), p.activation,
                             p.activation_params));
}

// From [group, out, in, plane], as the file has it, to [group, in, out, plane].
Tensor SwapInputsAndOutputs(const Tensor& w, std::int64_t groups, std::int64_t out, std::int64_t in,
                            const ConvParams& p) {
  Tensor swapped(DType::kFloat32, {groups * in, out, p.kernel[0], p.kernel[1]});
  const std::int64_t plane = p.kernel[0] * p.kernel[1];
  for (std::int64_t g = 0; g < groups; ++g) {
    for (std::int64_t o = 0; o < out; ++o) {
      for (std::int64_t i = 0; i < in; ++i) {
        std::copy_n(w.data<float>() + ((g * out + o) * in + i) * plane, plane,
                    swapped.data<float>() + ((g * in + i) * out + o) * plane);
      }
    }
  }
  return swapped;
}

void AnyDeconvolution(NcnnLayerContext& layer, bool depthwise) {
  ConvParams p = ReadParams(layer, depthwise);
  const std::int64_t more[2] = {layer.Int(19, layer.Int(18, 0)), layer.Int(18, 0)};
  const std::int64_t size[2] = {layer.Int(21, layer.Int(20, 0)), layer.Int(20, 0)};
  const NcnnBlob x = layer.ToFloat(layer.In(0));
  std::vector<ValueId> operands = {x.value};
  if (layer.Int(28, 0) != 0) {
    // They come as ONNX has them, [in, out / groups, kernel, kernel].
    const std::vector<std::int64_t>& w = layer.In(1).dims;
    for (ValueId v : ComputedWeights(layer, p)) operands.push_back(v);
    p.outputs = w[1] < 0 ? -1 : w[1] * p.groups;
    p.kernel[0] = w[2];
    p.kernel[1] = w[3];
    layer.Check(p.kernel[0] > 0 && p.kernel[1] > 0, "the size of its kernel is not known");
  } else {
    const std::int64_t inputs = GroupInputs(layer, p);
    CheckInput(layer, x, inputs * p.groups);
    const Weights w =
        ReadWeights(layer, {p.outputs, inputs, p.kernel[0], p.kernel[1]}, p.bias, 0, 1);
    operands.push_back(
        layer.Constant(SwapInputsAndOutputs(w.values, p.groups, p.outputs / p.groups, inputs, p)));
    if (!w.bias.empty()) operands.push_back(layer.PerChannel(w.bias, 1));
  }

  std::vector<NcnnLayerContext::Attribute> attributes = {{"kernel_shape", Pair(p.kernel)},
                                                         {"strides", Pair(p.stride)},
                                                         {"dilations", Pair(p.dilation)},
                                                         {"group", p.groups}};
  layer.Check(more[0] >= 0 && more[1] >= 0, "its output is padded by ", more[0], " and ", more[1]);
  std::vector<std::int64_t> dims = {p.outputs, -1, -1};
  const auto any_pad = [&p](auto test) {
    return test(p.before[0]) || test(p.before[1]) || test(p.after[0]) || test(p.after[1]);
  };
  enum class Cut { kMoreAtTheEnd, kMoreAtTheStart };
  std::optional<Cut> cut;  // to a size that is given
  if (any_pad([](int n) { return n > 0; })) {
    layer.Check(!any_pad([](int n) { return n < 0; }), "some of its pads are negative");
  } else if (size[0] > 0 && size[1] > 0) {
    if (any_pad([](int n) { return n == kNcnnAuto; })) {
      cut = Cut::kMoreAtTheEnd;
    } else if (any_pad([](int n) { return n == kNcnnAutoLower; })) {
      cut = Cut::kMoreAtTheStart;
    } else {
      layer.Fail("has an output size, but no pads of ", kNcnnAuto, " or ", kNcnnAutoLower);
    }
  }
  std::vector<std::int64_t> pads(4, 0);
  for (int i : {0, 1}) {
    const std::size_t axis = static_cast<std::size_t>(i) + 1;
    pads[static_cast<std::size_t>(i)] = std::max(p.before[i], 0);
    pads[axis + 1] = std::max(p.after[i], 0);
    if (x.dims[axis] >= 0) {
      dims[axis] = (x.dims[axis] - 1) * p.stride[i] + p.Extent(i) + more[i] -
                   pads[static_cast<std::size_t>(i)] - pads[axis + 1];
      layer.Check(dims[axis] > 0, "nothing is left of its output");
    }
    layer.Check(!cut || dims[axis] >= 0, "an output size needs an input of known size");
  }
  if (more[0] != 0 || more[1] != 0) attributes.emplace_back("output_padding", Pair(more));
  NcnnBlob y;
  if (cut) {
    // A slice of the whole, since ONNX's versions differ in which side loses the odd pixel.
    y = layer.Node("ConvTranspose", operands, dims, attributes);
    for (int i : {0, 1}) {
      const std::int64_t whole = dims[static_cast<std::size_t>(i) + 1];
      layer.Check(whole >= size[i], "an output of ", size[i], " cannot be cut out of ", whole);
      const std::int64_t lost = whole - size[i];
      const std::int64_t start = *cut == Cut::kMoreAtTheEnd ? lost / 2 : lost - lost / 2;
      y = layer.Slice(y, i + 1, start, start + size[i]);
    }
  } else {
    attributes.emplace_back("pads", pads);
    y = layer.Node("ConvTranspose", operands, dims, attributes);
  }
  layer.Out(layer.Activation(y, p.activation, p.activation_params));
}

constexpr NcnnLayerDef kLayers[] = {
    {"Convolution", 1, 3, 1, 1, [](NcnnLayerContext& l) { AnyConvolution(l, false); }},
    {"ConvolutionDepthWise", 1, 3, 1, 1, [](NcnnLayerContext& l) { AnyConvolution(l, true); }},
    {"Deconvolution", 1, 3, 1, 1, [](NcnnLayerContext& l) { AnyDeconvolution(l, false); }},
    {"DeconvolutionDepthWise", 1, 3, 1, 1, [](NcnnLayerContext& l) { AnyDeconvolution(l, true); }},
    {"InnerProduct", 1, 1, 1, 1, InnerProduct},
};

}  // namespace

std::span<const NcnnLayerDef> NcnnConvolutionLayers() { return kLayers; }

}  // namespace tessera
