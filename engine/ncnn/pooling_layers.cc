// Pooling.
#include <algorithm>
#include <string>

#include "engine/ncnn/layers.h"

namespace tessera {
namespace {

using Layer = NcnnLayerContext;

// How the window of ncnn's pad_mode goes beyond the input.
enum PadMode { kFull, kValid, kSameUpper, kSameLower };

// Output i of n takes the inputs in [floor(i * length / n), ceil((i + 1) * length / n)).
NcnnBlob AdaptiveAxis(Layer& layer, const NcnnBlob& x, int axis, std::int64_t n, bool max) {
  const std::int64_t length = x.dims[static_cast<std::size_t>(axis)];
  layer.Check(length > 0, "adaptive pooling needs an input of known size");
  constexpr std::int64_t kMost = 4096;  // a node for each
  layer.Check(n <= kMost, "cannot make an output of ", n, " windows of different sizes");
  std::vector<NcnnBlob> parts;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t start = i * length / n, end = ((i + 1) * length + n - 1) / n;
    const NcnnBlob part = layer.Slice(x, axis, start, end);
    std::vector<std::int64_t> dims = part.dims;
    dims[static_cast<std::size_t>(axis)] = 1;
    parts.push_back(
        layer.Node(max ? "ReduceMax" : "ReduceMean", {part.value}, dims,
                   {{"axes", std::vector<std::int64_t>{axis + 1}}, {"keepdims", std::int64_t{1}}}));
  }
  return layer.Concat(parts, axis);
}

NcnnBlob Global(Layer& layer, const NcnnBlob& x, bool max) {
  return layer.Node(max ? "GlobalMaxPool" : "GlobalAveragePool", {x.value}, {x.dims[0], 1, 1});
}

NcnnBlob Adaptive(Layer& layer, const NcnnBlob& x, const int (&size)[2], bool max) {
  if (size[0] == 1 && size[1] == 1) return Global(layer, x, max);
  std::int64_t kernel[2];
  bool even = true;
  for (int i : {0, 1}) {
    layer.Check(size[i] > 0 || size[i] == kNcnnAuto, "cannot make an output of ", size[i]);
    const std::int64_t length = x.dims[static_cast<std::size_t>(i + 1)];
    kernel[i] = size[i] == kNcnnAuto ? 1 : length / size[i];
    even = even && (size[i] == kNcnnAuto || (length > 0 && length % size[i] == 0));
  }
  if (even) {
    std::vector<std::int64_t> dims = x.dims, window = {kernel[0], kernel[1]};
    for (int i : {0, 1}) {
      if (size[i] != kNcnnAuto) dims[static_cast<std::size_t>(i + 1)] = size[i];
    }
    return layer.Node(max ? "MaxPool" : "AveragePool", {x.value}, dims,
                      {{"kernel_shape", window}, {"strides", window}});
  }
  // The windows have different sizes. They are products of ranges, so that one axis after the other
  // gives the same.
  NcnnBlob y = x;
  for (int i : {0, 1}) {
    if (size[i] != kNcnnAuto) y = AdaptiveAxis(layer, y, i + 1, size[i], max);
  }
  return y;
}

void Pooling(Layer& layer) {
  const int type = layer.Int(0, 0);
  std::vector<std::int64_t> kernel(2), stride(2);
  std::int64_t before[2], after[2];
  kernel[1] = layer.Int(1, 0);
  kernel[0] = layer.Int(11, static_cast<int>(kernel[1]));
  stride[1] = layer.Int(2, 1);
  stride[0] = layer.Int(12, static_cast<int>(stride[1]));
  before[1] = layer.Int(3, 0);
  after[1] = layer.Int(14, static_cast<int>(before[1]));
  before[0] = layer.Int(13, static_cast<int>(before[1]));
  after[0] = layer.Int(15, static_cast<int>(before[0]));
  const bool global = layer.Int(4, 0) != 0;
  const int mode = layer.Int(5, 0);
  const bool count_pads = layer.Int(6, 0) != 0;
  const bool adaptive = layer.Int(7, 0) != 0;
  int size[2];
  size[1] = layer.Int(8, 0);
  size[0] = layer.Int(18, size[1]);

  NcnnBlob x = layer.ToFloat(layer.In(0));
  layer.Check(type == 0 || type == 1, "type ", type, " is not known");
  layer.Check(x.rank() == 3, "its input has ", x.rank(), " axes instead of 3");
  const bool max = type == 0;
  if (global) return layer.Out(layer.Flatten(Global(layer, x, max)));
  if (adaptive) return layer.Out(Adaptive(layer, x, size, max));

  layer.Check(mode >= kFull && mode <= kSameLower, "pad mode ", mode, " is not known");
  const bool same = mode >= kSameUpper;
  std::vector<Layer::Attribute> attributes = {{"kernel_shape", kernel}, {"strides", stride}};
  std::vector<std::int64_t> dims = x.dims;
  bool ceil = false;
  for (std::size_t i : {0u, 1u}) {
    layer.Check(kernel[i] > 0 && stride[i] > 0 && before[i] >= 0 && after[i] >= 0, "a window of ",
                kernel[i], ", stride ", stride[i], ", pads ", before[i], " and ", after[i]);
    ceil = ceil || (mode == kFull && stride[i] > 1);
    std::int64_t& length = dims[i + 1];
    if (length < 0) continue;
    if (same) {
      length = (length - 1) / stride[i] + 1;
    } else {
      const std::int64_t room = length + before[i] + after[i] - kernel[i];
      layer.Check(room >= 0, "its window is larger than its input");
      length = (room + (mode == kFull ? stride[i] - 1 : 0)) / stride[i] + 1;
    }
  }
  std::vector<std::int64_t> pads = {before[0], before[1], after[0], after[1]};
  if (same) {
    attributes.emplace_back("auto_pad",
                            std::string(mode == kSameLower ? "SAME_LOWER" : "SAME_UPPER"));
  } else if (!max && count_pads && ceil) {
    // ncnn counts what is added to complete the last window, too. A stride less one is enough for
    // that at any size, and too little for another window.
    x = layer.Pad(x, {0, pads[0], pads[1]}, {0, pads[2] + stride[0] - 1, pads[3] + stride[1] - 1},
                  "constant", 0);
  } else {
    attributes.emplace_back("pads", pads);
    if (ceil) attributes.emplace_back("ceil_mode", std::int64_t{1});
  }
  // Of pads that follow from the size, ncnn's average counts all.
  if (!max) attributes.emplace_back("count_include_pad", std::int64_t{same || count_pads});
  layer.Out(layer.Node(max ? "MaxPool" : "AveragePool", {x.value}, dims, attributes));
}

constexpr NcnnLayerDef kLayers[] = {{"Pooling", 1, 1, 1, 1, Pooling}};

}  // namespace

std::span<const NcnnLayerDef> NcnnPoolingLayers() { return kLayers; }

}  // namespace tessera
