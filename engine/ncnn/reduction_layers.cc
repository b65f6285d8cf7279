// Reduction and ArgMax.
#include <algorithm>
#include <array>

#include "engine/ncnn/layers.h"

namespace tessera {
namespace {

using Layer = NcnnLayerContext;

void Reduction(Layer& layer) {
  constexpr std::array<std::string_view, 11> kOps = {
      "ReduceSum",  "ReduceL1", "ReduceSumSquare", "ReduceMean",   "ReduceMax",      "ReduceMin",
      "ReduceProd", "ReduceL1", "ReduceL2",        "ReduceLogSum", "ReduceLogSumExp"};
  const int type = layer.Int(0, 0);
  const bool all = layer.Int(1, 1) != 0;
  const float factor = layer.Float(2, 1);
  const std::vector<int> written_axes = layer.Ints(3);
  const bool keep = layer.Int(4, 0) != 0;
  const bool fixed = layer.Int(5, 0) != 0;
  layer.Check(type >= 0 && type < static_cast<int>(kOps.size()), "operation ", type,
              " is not known");
  layer.Check(fixed || written_axes.empty(),
              "the file is so old that its axes mean something else; convert the model anew");
  const NcnnBlob x = layer.ToFloat(layer.In(0));
  std::vector<bool> reduced(x.dims.size(), all || x.rank() == 1);
  for (int axis : written_axes) {
    reduced[static_cast<std::size_t>(layer.Axis(axis, x.rank()))] = true;
  }
  std::vector<std::int64_t> tensor_axes, dims;
  for (int i = 0; i < x.rank(); ++i) {
    if (!reduced[static_cast<std::size_t>(i)]) {
      dims.push_back(x.dims[static_cast<std::size_t>(i)]);
      continue;
    }
    tensor_axes.push_back(i + 1);
    if (keep) dims.push_back(1);
  }
  layer.Check(!tensor_axes.empty(), "reduces no axis");
  const std::string_view op = kOps[static_cast<std::size_t>(type)];
  std::vector<ValueId> inputs = {x.value};
  std::vector<Layer::Attribute> attributes = {{"keepdims", std::int64_t{keep}}};
  // Of all reductions, ReduceSum alone has its axes as an input in this opset.
  if (op == "ReduceSum") {
    inputs.push_back(layer.Int64s(tensor_axes));
  } else {
    attributes.emplace_back("axes", tensor_axes);
  }
  NcnnBlob y = layer.Node(op, inputs, dims, attributes);
  if (y.dims.empty()) y = layer.Unsqueeze(y, {0});
  layer.Out(factor == 1 ? y : layer.WithConstant("Mul", y, layer.Scalar(factor)));
}

// The `topk` largest numbers of the whole blob: their places, as floats, below the numbers
// themselves if those are wanted.
void ArgMax(Layer& layer) {
  const bool with_values = layer.Int(0, 0) != 0;
  const std::int64_t k = layer.Int(1, 1);
  const NcnnBlob x = layer.Flatten(layer.ToFloat(layer.In(0)));
  layer.Check(k > 0 && (x.dims[0] < 0 || k <= x.dims[0]), "wants the largest ", k, " of ",
              x.dims[0], " numbers");
  const std::vector<ValueId> found =
      layer.MultiNode("TopK", {x.value, layer.Int64s({k})}, 2, {{"axis", std::int64_t{1}}});
  const NcnnBlob places =
      layer.Unsqueeze(layer.Cast({found[1], {k}, DType::kInt64}, DType::kFloat32), {0});
  if (!with_values) return layer.Out(places);
  layer.Out(layer.Concat({layer.Unsqueeze({found[0], {k}}, {0}), places}, 0));
}

constexpr NcnnLayerDef kLayers[] = {
    {"ArgMax", 1, 1, 1, 1, ArgMax},
    {"Reduction", 1, 1, 1, 1, Reduction},
};

}  // namespace

std::span<const NcnnLayerDef> NcnnReductionLayers() { return kLayers; }

}  // namespace tessera
