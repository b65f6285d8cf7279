// Between row-major NCHW and the blocked layout.
#pragma once

#include <memory>

#include "ops/op.h"

namespace tessera {

// A kernel that copies a float32 tensor of this shape from one layout to the other.
std::unique_ptr<Kernel> MakeReorder(const Shape& nchw, Layout from, Layout to);

}  // namespace tessera
