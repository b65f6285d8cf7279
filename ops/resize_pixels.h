// Resize by mode "nearest" of bytes in Layout::kChannelsLast, along height and width.
#pragma once

#include <memory>

#include "ops/op.h"
#include "ops/resize_axis.h"

namespace tessera {

// `in` and `out` are NCHW; no element of the tables is outside.
std::unique_ptr<Kernel> MakeNearestPixels(const TapTable& rows, const TapTable& columns,
                                          const Shape& in, const Shape& out);

}  // namespace tessera
