// QuantizeLinear and DequantizeLinear of images that are uint8 in Layout::kChannelsLast on the
// quantised side, with one scale and zero point.
#pragma once

#include <memory>

#include "ops/op.h"

namespace tessera {

// Inputs and output are those of the operators, x of shape `nchw`; the float32 side is in
// `float_layout`, row-major or blocked.
std::unique_ptr<Kernel> MakeImageQuantizer(const Shape& nchw, Layout float_layout);
std::unique_ptr<Kernel> MakeImageDequantizer(const Shape& nchw, Layout float_layout);

}  // namespace tessera
