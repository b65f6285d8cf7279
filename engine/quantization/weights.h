// Weights of a convolution as integers.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "ops/tensor.h"

namespace tessera {

// int8 from -127 to 127 with a scale for each output channel, and the bias that goes with them.
struct LayerWeights {
  Tensor values;             // int8, in the shape of the weights
  Tensor scales;             // float32 [M]
  std::vector<double> bias;  // [M], real; empty if there is none
};
// By the names of convolutions.
using WeightsByLayer = std::map<std::string, LayerWeights, std::less<>>;

// The scale of one channel's weights: with `clip` that with the least squared error, which may cut
// off the largest; else these are 127. At least `least`, and never 0.
float ChooseWeightScale(std::span<const float> weights, bool clip, double least);

// The nearest int8 from -127 to 127.
double QuantizeWeight(double w, double scale);

// The least scale with which a bias stays far from overflow, given the scale of what is convolved.
double LeastWeightScale(double bias, float x_scale);

// To the nearest integers. `weights` float32 [M, ...], `bias` float32 [M] or null.
LayerWeights RoundWeights(const Tensor& weights, const Tensor* bias, float x_scale, bool clip);

// What the values stand for, float32.
Tensor RealWeights(const LayerWeights& weights);

// int32, of scale x_scale * scales[m] (a float product); limited to +-2^30, so that what a
// convolution adds cannot overflow.
Tensor IntegerBias(const LayerWeights& weights, float x_scale);

}  // namespace tessera
