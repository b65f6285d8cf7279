// Layers that move numbers and do not change them.
#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "engine/ncnn/expression.h"
#include "engine/ncnn/layers.h"

namespace tessera {
namespace {

using Layer = NcnnLayerContext;

void Concat(Layer& layer) {
  const int axis = layer.Axis(layer.Int(0, 0), layer.In(0).rank());
  std::vector<NcnnBlob> parts;
  for (std::size_t i = 0; i < layer.num_bottoms(); ++i) parts.push_back(layer.In(i));
  const bool mixed = std::ranges::any_of(
      parts, [&](const NcnnBlob& part) { return part.dtype != parts[0].dtype; });
  if (mixed) {
    for (NcnnBlob& part : parts) part = layer.ToFloat(part);
  }
  layer.Out(layer.Concat(parts, axis));
}

void ExpandDims(Layer& layer) {
  const NcnnBlob x = layer.In(0);
  const std::vector<int> written = layer.Ints(3);
  const int rank = x.rank() + static_cast<int>(written.size());
  layer.Check(rank <= 4, "its output has ", rank, " axes, blobs have 4 at most");
  std::vector<int> axes;
  for (int axis : written) axes.push_back(layer.Axis(axis, rank));
  std::ranges::sort(axes);
  layer.Check(std::ranges::adjacent_find(axes) == axes.end(), "an axis is there twice");
  layer.Out(axes.empty() ? x : layer.Unsqueeze(x, axes));
}

void Flatten(Layer& layer) { layer.Out(layer.Flatten(layer.In(0))); }

void MemoryData(Layer& layer) {
  const int w = layer.Int(0, 0), h = layer.Int(1, 0), d = layer.Int(11, 0), c = layer.Int(2, 0);
  const int stored = layer.Int(21, 1);
  layer.Check(stored == 0 || stored == 1, "is stored in a way (", stored, ") that is not known");
  std::vector<std::int64_t> dims = {w};
  if (d != 0) {
    dims = {c, d, h, w};
  } else if (c != 0) {
    dims = {c, h, w};
  } else if (h != 0) {
    dims = {h, w};
  }
  Shape shape{1};
  for (std::int64_t dim : dims) {
    layer.Check(dim > 0, "has a size of ", w, ", ", h, ", ", d, ", ", c);
    shape.PushBack(dim);
  }
  Tensor data(DType::kFloat32, {});
  if (stored == 1) {
    layer.Check(NcnnProduct(dims) <= std::numeric_limits<std::int32_t>::max(), "is too large");
    const std::vector<float> values = layer.FloatWeights(NcnnProduct(dims));
    data = Tensor::FromVector(shape, values);
  } else {
    data = layer.Weights(shape);
  }
  const DType type = data.dtype();
  layer.Out({layer.Constant(std::move(data)), dims, type});
}

// Outputs are inputs: Noop, Split (copies) and what has to do with memory only.
void Same(Layer& layer) {
  for (std::size_t i = 0; i < layer.num_tops(); ++i) {
    layer.Out(i, layer.In(std::min(i, layer.num_bottoms() - 1)));
  }
}

// Orders of the axes, innermost first, by their numbers.
constexpr std::array<std::string_view, 2> kOrders2 = {"wh", "hw"};
constexpr std::array<std::string_view, 6> kOrders3 = {"whc", "hwc", "wch", "cwh", "hcw", "chw"};
constexpr std::array<std::string_view, 24> kOrders4 = {
    "whdc", "hwdc", "wdhc", "dwhc", "hdwc", "dhwc", "whcd", "hwcd", "wchd", "cwhd", "hcwd", "chwd",
    "wdch", "dwch", "wcdh", "cwdh", "dcwh", "cdwh", "hdcw", "dhcw", "hcdw", "chdw", "dchw", "cdhw"};

void Permute(Layer& layer) {
  const int type = layer.Int(0, 0);
  const NcnnBlob x = layer.In(0);
  if (x.rank() == 1 || type == 0) return layer.Out(x);
  const std::span<const std::string_view> orders =
      x.rank() == 2   ? std::span<const std::string_view>(kOrders2)
      : x.rank() == 3 ? std::span<const std::string_view>(kOrders3)
                      : std::span<const std::string_view>(kOrders4);
  layer.Check(type > 0 && type < static_cast<int>(orders.size()), "order ", type,
              " is not known for ", x.rank(), " axes");
  const std::string_view order = orders[static_cast<std::size_t>(type)];
  std::vector<int> axes;
  for (std::size_t i = order.size(); i-- > 0;) axes.push_back(NcnnAxis(order[i], x.rank()));
  layer.Out(layer.Transpose(x, axes));
}

void PixelShuffle(Layer& layer) {
  const std::int64_t factor = layer.Int(0, 1);
  const int mode = layer.Int(1, 0);
  const NcnnBlob x = layer.In(0);
  layer.Check(x.rank() == 3, "its input has ", x.rank(), " axes instead of 3");
  constexpr int kMaxFactor = 1 << 15;
  layer.Check(factor > 0 && factor <= kMaxFactor, "enlarges by ", factor);
  layer.Check(mode == 0 || mode == 1, "mode ", mode, " is not known");
  const std::int64_t c = x.dims[0], h = x.dims[1], w = x.dims[2], area = factor * factor;
  layer.Check(c < 0 || c % area == 0, c, " channels are no multiple of ", area);
  layer.Out(layer.Node("DepthToSpace", {x.value},
                       {c < 0 ? -1 : c / area, h < 0 ? -1 : h * factor, w < 0 ? -1 : w * factor},
                       {{"blocksize", factor}, {"mode", std::string(mode == 0 ? "CRD" : "DCR")}},
                       x.dtype));
}

void Reorg(Layer& layer) {
  const std::int64_t stride = layer.Int(0, 1);
  const int mode = layer.Int(1, 0);
  const NcnnBlob x = layer.In(0);
  layer.Check(x.rank() == 3, "its input has ", x.rank(), " axes instead of 3");
  constexpr int kMaxStride = 1 << 15;
  layer.Check(stride > 0 && stride <= kMaxStride, "has a stride of ", stride);
  layer.Check(mode == 0 || mode == 1, "mode ", mode, " is not known");
  const std::int64_t c = x.dims[0], h = x.dims[1], w = x.dims[2];
  const std::vector<std::int64_t> dims = {c < 0 ? -1 : c * stride * stride, h < 0 ? -1 : h / stride,
                                          w < 0 ? -1 : w / stride};
  if (mode == 1) {
    return layer.Out(layer.Node("SpaceToDepth", {x.value}, dims, {{"blocksize", stride}}, x.dtype));
  }
  // Pixels of a block lie within their channel, which SpaceToDepth cannot do. In steps that name no
  // size: [c, h, w] -> [c, h, w', sw] -> [c, w', sw, h', sh] -> [h', w', c, sh, sw] -> [c', h',
  // w'].
  const auto node = [&](std::string_view op, ValueId in, std::vector<ValueId> more,
                        const std::vector<Layer::Attribute>& attributes) {
    more.insert(more.begin(), in);
    return layer.MultiNode(op, more, 1, attributes)[0];
  };
  const auto transpose = [&](ValueId in, std::vector<std::int64_t> perm) {
    return node("Transpose", in, {}, {{"perm", std::move(perm)}});
  };
  ValueId v = node("Reshape", x.value, {layer.Int64s({0, 0, 0, -1, stride})}, {});
  v = transpose(v, {0, 1, 3, 4, 2});
  v = node("Reshape", v, {layer.Int64s({0, 0, 0, 0, -1, stride})}, {});
  v = transpose(v, {0, 4, 2, 1, 5, 3});
  v = node("Reshape", v, {layer.Int64s({0, 0, 0, -1})}, {});
  layer.Out({transpose(v, {0, 3, 1, 2}), dims, x.dtype});
}

// Lengths of the new axes, innermost first, with 0 for "as it is" and -1 for "the rest".
void ReshapeTo(Layer& layer, std::vector<NcnnSize> lengths) {
  const NcnnBlob x = layer.In(0);
  const int rank = static_cast<int>(lengths.size());
  layer.Check(rank >= 1 && rank <= 4, "makes ", rank, " axes, blobs have 1 to 4");
  std::ranges::reverse(lengths);
  constexpr std::string_view kNames[] = {"w", "hw", "chw", "cdhw"};
  const std::string_view names = kNames[rank - 1];
  std::vector<std::int64_t> dims;
  int rest = -1;
  for (int i = 0; i < rank; ++i) {
    NcnnSize& length = lengths[static_cast<std::size_t>(i)];
    dims.push_back(length.known.value_or(-1));
    if (!length.known) continue;
    layer.Check(*length.known >= -1, "cannot make an axis of ", *length.known);
    if (*length.known == -1) {
      layer.Check(rest < 0, "more than one length is left open");
      rest = i;
    }
    if (*length.known != 0) continue;
    const int from = NcnnAxis(names[static_cast<std::size_t>(i)], x.rank());
    dims.back() = from < 0 ? 1 : x.dims[static_cast<std::size_t>(from)];
    if (dims.back() >= 0) {
      length.known = dims.back();
    } else if (from != i) {  // ONNX's 0 copies from the same place only
      length = {{}, layer.DimOf(x, from)};
    }
  }
  if (rest >= 0) {
    const std::int64_t all = NcnnProduct(x.dims);
    std::vector<std::int64_t> others = dims;
    others[static_cast<std::size_t>(rest)] = 1;
    const std::int64_t product = NcnnProduct(others);
    layer.Check(all < 0 || product < 0 || (product > 0 && all % product == 0), all,
                " numbers do not fit its shape");
    if (all >= 0 && product > 0) dims[static_cast<std::size_t>(rest)] = all / product;
  }
  lengths.insert(lengths.begin(), {0, kNoValue});  // the batch
  layer.Out(layer.Node("Reshape", {x.value, JoinNcnnSizes(layer, lengths)}, dims, {}, x.dtype));
}

void Reshape(Layer& layer) {
  const int w = layer.Int(0, kNcnnAuto), h = layer.Int(1, kNcnnAuto), d = layer.Int(11, kNcnnAuto),
            c = layer.Int(2, kNcnnAuto);
  constexpr int kNoBatch = 233;
  const int batch_before = layer.Int(12, kNoBatch), batch_after = layer.Int(13, kNoBatch);
  layer.Check(batch_before == kNoBatch && batch_after == kNoBatch,
              "changes the batch, which is not supported");
  const std::string text = layer.Text(6);
  if (!text.empty()) return ReshapeTo(layer, EvaluateNcnnSizes(layer, text));
  std::vector<int> lengths = {w, h, c};
  if (d != kNcnnAuto) lengths = {w, h, d, c};
  // The first one that is absent ends the list.
  const auto end = std::ranges::find(lengths, kNcnnAuto);
  std::vector<NcnnSize> sizes;
  for (auto it = lengths.begin(); it != end; ++it) sizes.push_back({*it, kNoValue});
  ReshapeTo(layer, std::move(sizes));
}

// Numbers of a channel group side by side with those of the others.
void ShuffleChannel(Layer& layer) {
  std::int64_t groups = layer.Int(0, 1);
  const bool reverse = layer.Int(1, 0) != 0;
  const NcnnBlob x = layer.In(0);
  layer.Check(x.rank() >= 3 && groups > 0, "needs channels and a positive number of groups");
  const std::int64_t c = x.dims[0];
  layer.Check(c > 0 && c % groups == 0, c, " channels are no multiple of ", groups);
  constexpr std::int64_t kMostChannels = 1 << 20;  // a number for each
  layer.Check(c <= kMostChannels, "shuffles ", c, " channels");
  if (reverse) groups = c / groups;
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < c; ++i) order.push_back(i % groups * (c / groups) + i / groups);
  layer.Out(layer.Node("Gather", {x.value, layer.Int64s(order)}, x.dims,
                       {{"axis", std::int64_t{1}}}, x.dtype));
}

void Squeeze(Layer& layer) {
  constexpr std::string_view kNames = "whdc";
  const std::array<bool, 4> flags = {layer.Int(0, 0) != 0, layer.Int(1, 0) != 0,
                                     layer.Int(11, 0) != 0, layer.Int(2, 0) != 0};
  const std::vector<int> written = layer.Ints(3);
  const NcnnBlob x = layer.In(0);
  std::vector<int> axes;
  // Of axes that are named one by one those that are not known count as 1; flags often name all.
  for (int axis : written) {
    axis = layer.Axis(axis, x.rank());
    const std::int64_t length = x.dims[static_cast<std::size_t>(axis)];
    if (length == 1 || length < 0) axes.push_back(axis);
  }
  for (std::size_t i = 0; written.empty() && i < kNames.size(); ++i) {
    const int axis = NcnnAxis(kNames[i], x.rank());
    if (flags[i] && axis >= 0 && x.dims[static_cast<std::size_t>(axis)] == 1) axes.push_back(axis);
  }
  std::ranges::sort(axes);
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  // A blob has an axis at least.
  if (static_cast<int>(axes.size()) == x.rank()) axes.pop_back();
  layer.Out(layer.Squeeze(x, axes));
}

constexpr NcnnLayerDef kLayers[] = {
    {"Concat", 1, -1, 1, 1, Concat},
    {"DeepCopy", 1, 1, 1, 1, Same},
    {"ExpandDims", 1, 1, 1, 1, ExpandDims},
    {"Flatten", 1, 1, 1, 1, Flatten},
    {"MemoryData", 0, 0, 1, 1, MemoryData},
    {"Noop", 1, -1, 0, -1, Same},
    {"Permute", 1, 1, 1, 1, Permute},
    {"PixelShuffle", 1, 1, 1, 1, PixelShuffle},
    {"Reorg", 1, 1, 1, 1, Reorg},
    {"Reshape", 1, -1, 1, 1, Reshape},
    {"ShuffleChannel", 1, 1, 1, 1, ShuffleChannel},
    {"Split", 1, 1, 1, -1, Same},
    {"Squeeze", 1, 1, 1, 1, Squeeze},
};

}  // namespace

std::span<const NcnnLayerDef> NcnnShapeLayers() { return kLayers; }

}  // namespace tessera
