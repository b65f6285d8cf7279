#include "ops/window.h"

#include <algorithm>
#include <string>

namespace tessera {
namespace {

// Keeps products of two attributes, and of one with a size, far from overflow.
constexpr std::int64_t kMaxAttribute = std::int64_t{1} << 30;

// Pads of SAME_UPPER and SAME_LOWER: ceil(in / stride) outputs; an odd pad goes to the end or to
// the beginning.
void PadSame(bool upper, WindowAxis& axis) {
  const std::int64_t out = (axis.in + axis.stride - 1) / axis.stride;
  const std::int64_t total =
      std::max<std::int64_t>(0, (out - 1) * axis.stride + axis.extent() - axis.in);
  axis.pad_begin = upper ? total / 2 : total - total / 2;
  axis.pad_end = total - axis.pad_begin;
}

}  // namespace

std::vector<std::int64_t> AxisInts(const OpNode& node, const char* name, int count,
                                   std::int64_t fallback, std::int64_t lowest) {
  std::vector<std::int64_t> values = node.attributes.Ints(name);
  if (values.empty()) values.assign(static_cast<std::size_t>(count), fallback);
  Require(values.size() == static_cast<std::size_t>(count), "attribute '", name, "' has ",
          values.size(), " values, ", count, " are needed");
  for (const std::int64_t v : values) {
    Require(v >= lowest && v <= kMaxAttribute, "attribute '", name, "' has the value ", v);
  }
  return values;
}

AutoPad ReadAutoPad(const OpNode& node) {
  const std::string name = node.attributes.String("auto_pad", "NOTSET");
  if (name == "NOTSET") return AutoPad::kNotSet;
  const std::vector<std::int64_t> pads = node.attributes.Ints("pads");
  Require(std::all_of(pads.begin(), pads.end(), [](std::int64_t p) { return p == 0; }),
          "pads together with auto_pad ", name);
  if (name == "VALID") return AutoPad::kValid;
  if (name == "SAME_UPPER") return AutoPad::kSameUpper;
  Require(name == "SAME_LOWER", "unknown auto_pad '", name, "'");
  return AutoPad::kSameLower;
}

std::int64_t TapsBefore(std::int64_t end, std::int64_t first, const WindowAxis& axis) {
  if (first >= end) return 0;
  return std::min(axis.kernel, (end - first + axis.dilation - 1) / axis.dilation);
}

void RequireKernelShape(const OpNode& node, std::span<const std::int64_t> kernel) {
  const std::vector<std::int64_t> declared = node.attributes.Ints("kernel_shape");
  Require(declared.empty() ||
              std::equal(declared.begin(), declared.end(), kernel.begin(), kernel.end()),
          "kernel_shape differs from the weights' shape");
}

std::vector<WindowAxis> ReadWindows(const OpNode& node, const Shape& x,
                                    std::span<const std::int64_t> kernel) {
  const int axes = x.rank() - 2;
  Require(kernel.size() == static_cast<std::size_t>(axes), "a kernel of ", kernel.size(),
          " dimensions on X ", x);
  const std::vector<std::int64_t> strides = AxisInts(node, "strides", axes, 1, 1);
  const std::vector<std::int64_t> dilations = AxisInts(node, "dilations", axes, 1, 1);
  const std::vector<std::int64_t> pads = AxisInts(node, "pads", 2 * axes, 0, 0);
  const AutoPad auto_pad = ReadAutoPad(node);
  const bool same = auto_pad == AutoPad::kSameUpper || auto_pad == AutoPad::kSameLower;
  const bool ceil = node.attributes.Int("ceil_mode", 0) != 0 && !same;

  std::vector<WindowAxis> result;
  for (int i = 0; i < axes; ++i) {
    const auto u = static_cast<std::size_t>(i);
    WindowAxis axis{x[i + 2],   kernel[u],
                    strides[u], dilations[u],
                    pads[u],    pads[u + static_cast<std::size_t>(axes)],
                    0};
    Require(axis.kernel >= 1 && axis.kernel <= kMaxAttribute, "a kernel of size ", axis.kernel);
    if (same) PadSame(auto_pad == AutoPad::kSameUpper, axis);
    const std::int64_t padded = axis.in + axis.pad_begin + axis.pad_end;
    Require(padded >= axis.extent(), "a kernel that spans ", axis.extent(), " does not fit into ",
            padded, " (with pads), X ", x);
    axis.out = (padded - axis.extent() + (ceil ? axis.stride - 1 : 0)) / axis.stride + 1;
    // A window that would start in the end's padding is left out.
    if (ceil && axis.First(axis.out - 1) >= axis.in) --axis.out;
    result.push_back(axis);
  }
  return result;
}

bool PadsFollowAttributes(const OpNode& node, std::int64_t stride) {
  if (stride == 1) return true;
  const AutoPad auto_pad = ReadAutoPad(node);
  return auto_pad == AutoPad::kNotSet || auto_pad == AutoPad::kValid;
}

std::optional<SpatialField> WindowField(const OpNode& node, std::span<const WindowAxis> axes) {
  SpatialField field;
  for (std::size_t i = 0; i < field.size(); ++i) {
    const WindowAxis& axis = axes[i];
    if (!PadsFollowAttributes(node, axis.stride)) return std::nullopt;
    field[i] = {1, axis.stride, static_cast<double>(-axis.pad_begin),
                static_cast<double>(axis.extent() - 1 - axis.pad_begin)};
  }
  return field;
}

}  // namespace tessera
