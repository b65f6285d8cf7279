// LSTM.
//
// ncnn's sequences are tables of one row a step; gates come in the order input, forget, output,
// cell. Where it projects the hidden state (h = P * H) ONNX has no such thing: an LSTM on H with
// recurrent weights R * P is the same, and P is multiplied to its output.
#include <algorithm>
#include <array>

#include "engine/ncnn/layers.h"

namespace tessera {
namespace {

using Layer = NcnnLayerContext;

// Rows of the four gates, from ncnn's order to ONNX's: input, output, forget, cell.
constexpr std::array<std::int64_t, 4> kGates = {0, 2, 1, 3};

// `w` [directions, 4 * hidden, columns] with the gates in ONNX's order, made float by `scales`, one
// a row, if it is int8.
Tensor OrderGates(Layer& layer, const Tensor& w, const std::vector<float>& scales) {
  const std::int64_t directions = w.shape()[0], rows = w.shape()[1], columns = w.shape()[2];
  const std::int64_t hidden = rows / 4;
  layer.Check(w.dtype() == DType::kFloat32 || !scales.empty(), "has int8 weights without scales");
  Tensor out(DType::kFloat32, w.shape());
  float* to = out.data<float>();
  for (std::int64_t d = 0; d < directions; ++d) {
    for (std::int64_t gate : kGates) {
      for (std::int64_t h = 0; h < hidden; ++h) {
        const std::int64_t row = d * rows + gate * hidden + h;
        if (w.dtype() == DType::kFloat32) {
          to = std::copy_n(w.data<float>() + row * columns, columns, to);
          continue;
        }
        const float scale = scales[static_cast<std::size_t>(row)];
        for (std::int64_t c = 0; c < columns; ++c) {
          const auto q = static_cast<float>(w.data<std::int8_t>()[row * columns + c]);
          *to++ = scale == 0 ? 0 : q / scale;
        }
      }
    }
  }
  return out;
}

// a [directions, m, k] * b [directions, k, n]
Tensor Product(const Tensor& a, const Tensor& b) {
  const std::int64_t directions = a.shape()[0], m = a.shape()[1], k = a.shape()[2],
                     n = b.shape()[2];
  Tensor out(DType::kFloat32, {directions, m, n});
  std::fill_n(out.data<float>(), out.size(), 0.0f);
  for (std::int64_t d = 0; d < directions; ++d) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < k; ++j) {
        const float factor = a.data<float>()[(d * m + i) * k + j];
        const float* row = b.data<float>() + (d * k + j) * n;
        for (std::int64_t c = 0; c < n; ++c)
          out.data<float>()[(d * m + i) * n + c] += factor * row[c];
      }
    }
  }
  return out;
}

Tensor TurnLastTwo(const Tensor& a) {
  Tensor out(DType::kFloat32, {a.shape()[0], a.shape()[2], a.shape()[1]});
  float* to = out.data<float>();
  for (std::int64_t d = 0; d < a.shape()[0]; ++d) {
    for (std::int64_t j = 0; j < a.shape()[2]; ++j) {
      for (std::int64_t i = 0; i < a.shape()[1]; ++i) {
        *to++ = a.data<float>()[(d * a.shape()[1] + i) * a.shape()[2] + j];
      }
    }
  }
  return out;
}

void Lstm(Layer& layer) {
  constexpr std::array<const char*, 3> kDirections = {"forward", "reverse", "bidirectional"};
  const std::int64_t outputs = layer.Int(0, 0), weights = layer.Int(1, 0);
  const int direction = layer.Int(2, 0);
  const std::int64_t hidden = layer.Int(3, static_cast<int>(outputs));
  const bool int8 = layer.Int(8, 0) != 0;
  layer.Check(direction >= 0 && direction < 3, "direction ", direction, " is not known");
  const std::int64_t directions = direction == 2 ? 2 : 1;
  layer.Check(outputs > 0 && hidden > 0 && weights > 0 && weights % (directions * hidden * 4) == 0,
              "has ", weights, " weights for ", hidden, " cells in ", directions, " directions");
  const std::int64_t inputs = weights / (directions * hidden * 4);
  const bool projected = outputs != hidden;

  const Tensor stored_w = layer.Weights({directions, hidden * 4, inputs});
  Tensor bias = layer.Weights({directions, 4 * hidden, 1});
  const Tensor stored_r = layer.Weights({directions, hidden * 4, outputs});
  Tensor projection;
  if (projected) {
    projection = layer.Weights({directions, outputs, hidden});
    layer.Check(projection.dtype() == DType::kFloat32, "has int8 weights without scales");
  }
  std::vector<float> w_scales, r_scales;
  if (int8) {
    w_scales = layer.FloatWeights(directions * hidden * 4);
    r_scales = layer.FloatWeights(directions * hidden * 4);
  }
  Tensor w = OrderGates(layer, stored_w, w_scales);
  Tensor r = OrderGates(layer, stored_r, r_scales);
  if (projected) r = Product(r, projection);
  bias = OrderGates(layer, bias, {});
  // Beside the bias of the inputs ONNX has one of the hidden state.
  Tensor both(DType::kFloat32, {directions, hidden * 8});
  std::fill_n(both.data<float>(), both.size(), 0.0f);
  for (std::int64_t d = 0; d < directions; ++d) {
    std::copy_n(bias.data<float>() + d * hidden * 4, hidden * 4,
                both.data<float>() + d * hidden * 8);
  }

  const NcnnBlob x = layer.ToFloat(layer.In(0));
  layer.Check(x.rank() == 2, "its input has ", x.rank(), " axes instead of 2");
  layer.Check(x.dims[1] < 0 || x.dims[1] == inputs, "its input has ", x.dims[1],
              " columns, its weights are for ", inputs);
  const auto node = [&](std::string_view op, const std::vector<ValueId>& in,
                        const std::vector<Layer::Attribute>& attributes) {
    return layer.MultiNode(op, in, 1, attributes)[0];
  };
  const std::vector<std::int64_t> swap = {1, 0, 2};
  std::vector<ValueId> operands = {node("Transpose", {x.value}, {{"perm", swap}}),
                                   layer.Constant(std::move(w)), layer.Constant(std::move(r)),
                                   layer.Constant(std::move(both))};
  layer.Check(layer.num_bottoms() == 1 || layer.num_bottoms() == 3,
              "needs one input, or three with its states");
  if (layer.num_bottoms() == 3) {
    layer.Check(!projected, "has a projection and an initial state, which is not supported");
    operands.push_back(kNoValue);  // the lengths of sequences
    for (std::size_t i : {1u, 2u}) {
      operands.push_back(
          node("Reshape", {layer.ToFloat(layer.In(i)).value, layer.Int64s({directions, 1, hidden})},
               {}));
    }
  }
  const std::size_t tops = layer.num_tops();
  layer.Check(tops == 1 || tops == 3, "makes ", tops, " outputs instead of 1 or 3");
  std::vector<ValueId> y =
      layer.MultiNode("LSTM", operands, tops,
                      {{"direction", std::string(kDirections[static_cast<std::size_t>(direction)])},
                       {"hidden_size", hidden}});
  // [steps, directions, 1, hidden] and, for the states, [directions, 1, hidden].
  if (projected) {
    // One matrix for each direction, for all steps.
    const ValueId matrix = layer.Constant(TurnLastTwo(projection));
    y[0] = node("MatMul", {y[0], matrix}, {});
    if (tops == 3) y[1] = node("MatMul", {y[1], matrix}, {});
  }
  const ValueId sequence =
      node("Transpose", {y[0]}, {{"perm", std::vector<std::int64_t>{2, 0, 1, 3}}});
  layer.Out(0, layer.Node("Reshape", {sequence, layer.Int64s({0, 0, -1})},
                          {x.dims[0], directions * outputs}));
  if (tops == 1) return;
  layer.Out(1, layer.Node("Transpose", {y[1]}, {directions, outputs}, {{"perm", swap}}));
  layer.Out(2, layer.Node("Transpose", {y[2]}, {directions, hidden}, {{"perm", swap}}));
}

constexpr NcnnLayerDef kLayers[] = {{"LSTM", 1, 3, 1, 3, Lstm}};

}  // namespace

std::span<const NcnnLayerDef> NcnnLstmLayers() { return kLayers; }

}  // namespace tessera
