// Interp.
#include <cmath>
#include <string>

#include "engine/ncnn/expression.h"
#include "engine/ncnn/layers.h"

namespace tessera {
namespace {

using Layer = NcnnLayerContext;

enum ResizeType { kNearest = 1, kLinear, kCubic };

// The length of an axis times `scale`, rounded down; -1 if it is not known.
std::int64_t Scaled(const Layer& layer, std::int64_t length, float scale) {
  if (length < 0) return -1;
  const float scaled = static_cast<float>(length) * scale;
  layer.Check(scaled < 0x1p31f, "scales an axis of ", length, " by ", scale);
  return static_cast<std::int64_t>(scaled);
}

NcnnSize SizeOf(Layer& layer, const NcnnBlob& x, int axis) {
  const std::int64_t length = x.dims[static_cast<std::size_t>(axis)];
  return length >= 0 ? NcnnSize{length, kNoValue} : NcnnSize{{}, layer.DimOf(x, axis)};
}

// The same as a size, which is computed where the length is not known.
NcnnSize ScaledSize(Layer& layer, const NcnnBlob& x, int axis, float scale) {
  const std::int64_t length = x.dims[static_cast<std::size_t>(axis)];
  if (length >= 0) return {Scaled(layer, length, scale), kNoValue};
  const ValueId number =
      layer.MultiNode("Cast", {layer.DimOf(x, axis)}, 1, {{"to", DTypeToOnnx(DType::kFloat32)}})[0];
  const ValueId product = layer.MultiNode("Mul", {number, layer.Scalar(scale)}, 1, {})[0];
  return {{}, layer.MultiNode("Cast", {product}, 1, {{"to", DTypeToOnnx(DType::kInt64)}})[0]};
}

void Interp(Layer& layer) {
  const int type = layer.Int(0, 0);
  const float height_scale = layer.Float(1, 1), width_scale = layer.Float(2, 1);
  const int height = layer.Int(3, 0), width = layer.Int(4, 0);
  const bool like_blob = layer.Int(5, 0) != 0;
  const bool align_corners = layer.Int(6, 0) != 0;
  const std::string text = layer.Text(9);
  layer.Check(type >= kNearest && type <= kCubic, "type ", type, " is not known");
  layer.Check(height_scale > 0 && width_scale > 0 && height >= 0 && width >= 0, "scales by ",
              height_scale, " and ", width_scale, " to ", height, "x", width);

  const NcnnBlob input = layer.ToFloat(layer.In(0));
  const int rank = input.rank();
  layer.Check(rank <= 3, "its input has ", rank, " axes, it needs 1 to 3");
  // Pictures: numbers of a list become pictures of one pixel each, rows of a table one of one row.
  NcnnBlob x = input;
  if (rank == 1) x = layer.Unsqueeze(input, {1, 2});
  if (rank == 2) x = layer.Unsqueeze(input, {1});
  constexpr int kHeight = 1, kWidth = 2;

  NcnnSize out_height, out_width;
  bool by_scale = false;
  if (!text.empty()) {
    const std::vector<NcnnSize> sizes = EvaluateNcnnSizes(layer, text);
    layer.Check(sizes.size() <= 2, "its expression has ", sizes.size(), " sizes");
    out_width = sizes[0];
    out_height = sizes.size() == 2 ? sizes[1] : SizeOf(layer, x, kHeight);
  } else if (like_blob) {
    layer.Check(layer.num_bottoms() == 2, "needs a second input");
    const NcnnBlob& like = layer.In(1);
    const auto size = [&](char name) -> NcnnSize {
      const int axis = NcnnAxis(name, like.rank());
      return axis < 0 ? NcnnSize{1, kNoValue} : SizeOf(layer, like, axis);
    };
    out_height = size('h');
    out_width = size('w');
  } else if (height != 0 && width != 0) {
    out_height.known = height;
    out_width.known = width;
  } else {
    // Linear and cubic go by the ratio of the sizes; it is the scale where that has no fraction.
    by_scale = type == kNearest ||
               (height_scale == std::trunc(height_scale) && width_scale == std::trunc(width_scale));
    out_height = by_scale ? NcnnSize{Scaled(layer, x.dims[kHeight], height_scale), kNoValue}
                          : ScaledSize(layer, x, kHeight, height_scale);
    out_width = by_scale ? NcnnSize{Scaled(layer, x.dims[kWidth], width_scale), kNoValue}
                         : ScaledSize(layer, x, kWidth, width_scale);
  }
  // A table keeps its rows.
  if (rank == 2) out_height.known = 1;

  std::vector<Layer::Attribute> attributes;
  if (type == kNearest) {
    attributes = {{"mode", std::string("nearest")},
                  {"coordinate_transformation_mode", std::string("asymmetric")},
                  {"nearest_mode", std::string("floor")}};
  } else {
    attributes = {{"mode", std::string(type == kLinear ? "linear" : "cubic")},
                  {"coordinate_transformation_mode",
                   std::string(align_corners ? "align_corners" : "half_pixel")}};
  }
  const auto dim = [](const NcnnSize& size) { return size.known.value_or(-1); };
  const std::vector<std::int64_t> dims = {x.dims[0], dim(out_height), dim(out_width)};
  std::vector<ValueId> operands = {x.value, kNoValue};
  if (by_scale) {
    operands.push_back(layer.Constant(
        Tensor::FromVector<float>({4}, {1, 1, rank == 2 ? 1 : height_scale, width_scale})));
  } else {
    operands.push_back(kNoValue);
    operands.push_back(
        JoinNcnnSizes(layer, {{1, kNoValue}, SizeOf(layer, x, 0), out_height, out_width}));
  }
  const NcnnBlob y = layer.Node("Resize", operands, dims, attributes);
  layer.Out(rank == 2 ? layer.Squeeze(y, {1}) : y);
}

constexpr NcnnLayerDef kLayers[] = {{"Interp", 1, -1, 1, 1, Interp}};

}  // namespace

std::span<const NcnnLayerDef> NcnnResizeLayers() { return kLayers; }

}  // namespace tessera
