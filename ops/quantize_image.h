// QuantizeLinear and DequantizeLinear of images that are uint8 in Layout::kChannelsLast on the
// quantised side, with one zero point, and one scale or, where it is quantised, one for each
// channel.
#pragma once

#include <memory>
#include <span>

#include "ops/op.h"

namespace tessera {

// Inputs and output are those of the operators, x of shape `nchw`; the float32 side is in
// `float_layout`, row-major or blocked.
// `channel_scales` is empty, or has a scale for each channel in place of the operator's.
std::unique_ptr<Kernel> MakeImageQuantizer(const Shape& nchw, Layout float_layout,
                                           std::span<const float> channel_scales = {});
std::unique_ptr<Kernel> MakeImageDequantizer(const Shape& nchw, Layout float_layout);

}  // namespace tessera
