// The window that slides along one spatial axis: what convolutions and pools share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/op.h"

namespace tessera {

struct WindowAxis {
  std::int64_t in, kernel, stride, dilation, pad_begin, pad_end, out;

  std::int64_t extent() const { return (kernel - 1) * dilation + 1; }
  // Input element that tap 0 of output element `at` lies on; may be outside.
  std::int64_t First(std::int64_t at) const { return at * stride - pad_begin; }
};

// The attribute `name` with a value for each of `count` axes, all `fallback` where the node has
// none. Throws Error for another number of values and for values below `lowest` (or above 2^30:
// products of two of them, and of one with a size, stay far from overflow).
std::vector<std::int64_t> AxisInts(const OpNode& node, const char* name, int count,
                                   std::int64_t fallback, std::int64_t lowest);

// The attribute auto_pad, which has to be NOTSET, VALID, SAME_UPPER or SAME_LOWER; then the node
// has no pads of its own unless it is NOTSET.
enum class AutoPad : std::uint8_t { kNotSet, kValid, kSameUpper, kSameLower };
AutoPad ReadAutoPad(const OpNode& node);

// Throws Error if the attribute kernel_shape is there and differs from `kernel`, the weights'
// shape.
void RequireKernelShape(const OpNode& node, std::span<const std::int64_t> kernel);

// Reads strides, dilations, pads, auto_pad and ceil_mode (whichever the node has) for the axes of
// `x` [N, C, spatial...]; `kernel` has a size for each of them. Throws Error for invalid
// combinations, and for windows that do not fit.
std::vector<WindowAxis> ReadWindows(const OpNode& node, const Shape& x,
                                    std::span<const std::int64_t> kernel);

// How many of the taps first, first + dilation, ... of an axis lie before input element `end`.
std::int64_t TapsBefore(std::int64_t end, std::int64_t first, const WindowAxis& axis);

// Whether the pads along an axis of this stride are the same for every input size, and with them
// the receptive field. (Those of auto_pad SAME depend on the size unless the stride is 1.)
bool PadsFollowAttributes(const OpNode& node, std::int64_t stride);

}  // namespace tessera
