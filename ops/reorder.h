// Between the memory layouts of a tensor.
#pragma once

#include <memory>

#include "ops/op.h"

namespace tessera {

// Copies input 0 to output 0, both of shape `nchw` (rank 4), in the layouts `from` and `to`, which
// differ: one is kRowMajor, the other kBlocked, of float32, or kChannelsLast, of elements of one
// byte. Channels that pad the last block, or a pixel, become zero.
std::unique_ptr<Kernel> MakeReorder(const Shape& nchw, Layout from, Layout to);

}  // namespace tessera
