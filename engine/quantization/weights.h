// Weights and biases of a convolution as integers.
#pragma once

#include "ops/tensor.h"

namespace tessera {

struct IntegerWeights {
  Tensor values;  // int8, -127 to 127, in the shape of the weights
  Tensor scales;  // float32 [M], one for each output channel
  Tensor bias;    // int32 [M], of scale x_scale * scales[m]
};

// `weights` float32 [M, ...], `bias` float32 [M] or null. With `clip` each channel's scale is the
// one with the least squared error, which may cut off the largest weights; else these are 127.
// Scales are at least as large as the bias needs to be far from overflow.
IntegerWeights QuantizeWeights(const Tensor& weights, const Tensor* bias, float x_scale, bool clip);

}  // namespace tessera
