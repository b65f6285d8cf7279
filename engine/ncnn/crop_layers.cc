// Crop, Padding and Slice.
#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "engine/ncnn/expression.h"
#include "engine/ncnn/layers.h"

namespace tessera {
namespace {

using Layer = NcnnLayerContext;

// "To the end" for Slice.
constexpr std::int64_t kEnd = std::numeric_limits<std::int32_t>::max();

// An axis is cut twice: to what is left by the offsets, and to a length.
NcnnBlob CropAxis(Layer& layer, const NcnnBlob& x, int axis, int offset, int end_offset,
                  int length) {
  layer.Check(offset >= 0 && end_offset >= 0, "has offsets of ", offset, " and ", end_offset);
  layer.Check(length > 0 || length == kNcnnAuto, "cannot cut a length of ", length);
  NcnnBlob y = x;
  if (end_offset != 0) y = layer.Slice(y, axis, 0, -end_offset);
  if (offset != 0 || length != kNcnnAuto) {
    y = layer.Slice(y, axis, offset, length == kNcnnAuto ? kEnd : std::int64_t{offset} + length);
  }
  return y;
}

// Lists of starts and ends as in numpy, but that an end of 0 is the end of the axis.
void CropByLists(Layer& layer, const std::vector<NcnnSize>& starts,
                 const std::vector<NcnnSize>& ends, const std::vector<NcnnSize>& axes) {
  NcnnBlob x = layer.In(0);
  const std::size_t n = axes.empty() ? x.dims.size() : axes.size();
  layer.Check(starts.size() == n && ends.size() == n, "has ", starts.size(), " starts and ",
              ends.size(), " ends for ", n, " axes");
  for (std::size_t i = 0; i < n; ++i) {
    layer.Check(axes.empty() || axes[i].known, "computes which axes it cuts");
    const int axis =
        axes.empty() ? static_cast<int>(i) : layer.Axis(static_cast<int>(*axes[i].known), x.rank());
    NcnnSize start = starts[i], end = ends[i];
    if (start.known == kNcnnAuto) start.known = 0;
    if (end.known == kNcnnAuto || end.known == 0) end.known = kEnd;
    if (start.known && end.known) {
      if (*start.known != 0 || *end.known != kEnd) {
        x = layer.Slice(x, axis, *start.known, *end.known);
      }
      continue;
    }
    std::vector<std::int64_t> dims = x.dims;
    dims[static_cast<std::size_t>(axis)] = -1;
    x = layer.Node("Slice",
                   {x.value, JoinNcnnSizes(layer, {start}), JoinNcnnSizes(layer, {end}),
                    layer.Int64s({axis + 1})},
                   dims, {}, x.dtype);
  }
  layer.Out(x);
}

std::vector<NcnnSize> Sizes(const std::vector<int>& values) {
  std::vector<NcnnSize> sizes;
  for (int v : values) sizes.push_back({v, kNoValue});
  return sizes;
}

// In the order of parameters.
constexpr std::string_view kAxisNames = "whcd";

// To the size of another blob; channels too if that has as many axes.
void CropLikeBlob(Layer& layer, const std::array<int, 4>& offsets) {
  const NcnnBlob x = layer.In(0), like = layer.In(1);
  std::vector<std::int64_t> starts, tensor_axes, dims = x.dims;
  std::vector<NcnnSize> ends;
  for (std::size_t i = 0; i < kAxisNames.size(); ++i) {
    const int axis = NcnnAxis(kAxisNames[i], x.rank());
    if (axis < 0 || (kAxisNames[i] == 'c' && like.rank() != x.rank())) continue;
    const int like_axis = NcnnAxis(kAxisNames[i], like.rank());
    layer.Check(offsets[i] >= 0, "has an offset of ", offsets[i]);
    std::int64_t& dim = dims[static_cast<std::size_t>(axis)];
    dim = like_axis < 0 ? 1 : like.dims[static_cast<std::size_t>(like_axis)];
    starts.push_back(offsets[i]);
    tensor_axes.push_back(axis + 1);
    if (dim >= 0) {
      ends.push_back({dim + offsets[i], kNoValue});
    } else if (offsets[i] == 0) {
      ends.push_back({{}, layer.DimOf(like, like_axis)});
    } else {
      ends.push_back(
          {{},
           layer.MultiNode("Add", {layer.DimOf(like, like_axis), layer.Int64s({offsets[i]})}, 1,
                           {})[0]});
    }
  }
  layer.Out(layer.Node(
      "Slice",
      {x.value, layer.Int64s(starts), JoinNcnnSizes(layer, ends), layer.Int64s(tensor_axes)}, dims,
      {}, x.dtype));
}

void Crop(Layer& layer) {
  // In the order of the names: w, h, c, d.
  const std::array<int, 4> offsets = {layer.Int(0, 0), layer.Int(1, 0), layer.Int(2, 0),
                                      layer.Int(13, 0)};
  const std::array<int, 4> lengths = {layer.Int(3, 0), layer.Int(4, 0), layer.Int(5, 0),
                                      layer.Int(14, 0)};
  const std::array<int, 4> end_offsets = {layer.Int(6, 0), layer.Int(7, 0), layer.Int(8, 0),
                                          layer.Int(15, 0)};
  const std::vector<int> starts = layer.Ints(9), ends = layer.Ints(10), axes = layer.Ints(11);
  const std::string start_text = layer.Text(19), end_text = layer.Text(20),
                    axis_text = layer.Text(21);
  if (!start_text.empty() && !end_text.empty()) {
    std::vector<NcnnSize> axis_list;
    if (!axis_text.empty()) axis_list = EvaluateNcnnSizes(layer, axis_text);
    return CropByLists(layer, EvaluateNcnnSizes(layer, start_text),
                       EvaluateNcnnSizes(layer, end_text), axis_list);
  }
  if (!starts.empty() && !ends.empty()) {
    return CropByLists(layer, Sizes(starts), Sizes(ends), Sizes(axes));
  }
  const auto nothing = [](const std::array<int, 4>& list) {
    return std::ranges::all_of(list, [](int n) { return n == 0; });
  };
  if (nothing(lengths) && nothing(end_offsets)) {
    layer.Check(layer.num_bottoms() == 2, "needs a size or a second input");
    layer.Check(offsets[0] != kNcnnAuto,
                "takes numbers from its second input, which is not "
                "supported");
    return CropLikeBlob(layer, offsets);
  }
  NcnnBlob x = layer.In(0);
  for (std::size_t i = 0; i < kAxisNames.size(); ++i) {
    const int axis = NcnnAxis(kAxisNames[i], x.rank());
    if (axis >= 0) x = CropAxis(layer, x, axis, offsets[i], end_offsets[i], lengths[i]);
  }
  layer.Out(x);
}

void Padding(Layer& layer) {
  constexpr std::array<const char*, 3> kModes = {"constant", "edge", "reflect"};
  const int top = layer.Int(0, 0), bottom = layer.Int(1, 0), left = layer.Int(2, 0),
            right = layer.Int(3, 0), type = layer.Int(4, 0);
  const float value = layer.Float(5, 0);
  const int per_channel = layer.Int(6, 0), front = layer.Int(7, 0), behind = layer.Int(8, 0);
  layer.Check(type >= 0 && type < static_cast<int>(kModes.size()), "type ", type, " is not known");
  layer.Check(std::min({top, bottom, left, right, front, behind}) >= 0, "pads are negative");
  std::vector<float> values;
  if (per_channel != 0) values = layer.FloatWeights(per_channel);
  const NcnnBlob x = layer.In(0);
  std::vector<std::int64_t> before = {left}, after = {right};
  if (x.rank() >= 2) {
    before.insert(before.begin(), top);
    after.insert(after.begin(), bottom);
  }
  if (x.rank() >= 3) {  // of channels, or of the depth if there is one
    before.insert(before.begin(), front);
    after.insert(after.begin(), behind);
  }
  if (x.rank() == 4) {
    before.insert(before.begin(), 0);
    after.insert(after.begin(), 0);
  }
  const bool constant = type == 0;
  if (!constant || values.empty()) {
    return layer.Out(layer.Pad(x, before, after, kModes[static_cast<std::size_t>(type)], value));
  }
  layer.Check(x.rank() >= 3, "pads channels of a blob that has none");
  // Where the padding is: a picture of ones, padded with zeros.
  const ValueId shape = layer.MultiNode("Shape", {x.value}, 1, {})[0];
  const NcnnBlob ones =
      layer.Node("ConstantOfShape", {shape}, x.dims,
                 {{"value", std::make_shared<const Tensor>(Tensor::FromVector<float>({1}, {1}))}});
  const NcnnBlob inside = layer.Cast(layer.Pad(ones, before, after, "constant", 0), DType::kBool);
  const NcnnBlob padded = layer.Pad(layer.ToFloat(x), before, after, "constant", 0);
  layer.Out(layer.Node("Where", {inside.value, padded.value, layer.PerChannel(values, x.rank())},
                       padded.dims));
}

void Slice(Layer& layer) {
  std::vector<int> lengths = layer.Ints(0);
  const NcnnBlob x = layer.In(0);
  const int axis = layer.Axis(layer.Int(1, 0), x.rank());
  const std::vector<int> indices = layer.Ints(2);
  const std::size_t n = layer.num_tops();
  const std::int64_t all = x.dims[static_cast<std::size_t>(axis)];
  if (!indices.empty()) {
    layer.Check(indices.size() + 1 >= n, "has ", indices.size(), " places to cut for ", n,
                " outputs");
    for (std::size_t i = 0; i < n; ++i) {
      layer.Out(i, layer.Slice(x, axis, i == 0 ? 0 : indices[i - 1],
                               i + 1 == n ? kEnd : std::int64_t{indices[i]}));
    }
    return;
  }
  layer.Check(lengths.size() >= n, "has ", lengths.size(), " lengths for ", n, " outputs");
  lengths.resize(n);
  if (all < 0 && std::ranges::all_of(lengths, [](int k) { return k == kNcnnAuto; })) {
    const std::vector<ValueId> parts =
        layer.MultiNode("Split", {x.value}, n, {{"axis", std::int64_t{axis + 1}}});
    for (std::size_t i = 0; i < n; ++i) layer.Out(i, {parts[i], x.dims, x.dtype});
    return;
  }
  std::int64_t start = 0;
  for (std::size_t i = 0; i < n; ++i) {
    std::int64_t end = start + lengths[i];
    if (lengths[i] == kNcnnAuto) {  // its share of the rest
      const auto sharers = static_cast<std::int64_t>(n - i);
      layer.Check(all >= 0 || sharers == 1, "a length is left open of an axis of unknown length");
      end = sharers == 1 ? kEnd : start + (all - start) / sharers;
    } else {
      layer.Check(lengths[i] > 0, "has a length of ", lengths[i]);
    }
    layer.Out(i, layer.Slice(x, axis, start, end));
    start = end;
  }
}

constexpr NcnnLayerDef kLayers[] = {
    {"Crop", 1, -1, 1, 1, Crop},
    {"Padding", 1, 1, 1, 1, Padding},
    {"Slice", 1, 1, 1, -1, Slice},
};

}  // namespace

std::span<const NcnnLayerDef> NcnnCropLayers() { return kLayers; }

}  // namespace tessera
