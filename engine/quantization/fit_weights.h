// Integer weights whose rounding errors cancel out on real inputs.
//
// Rounding each weight for itself leaves an error E * x for weights that are wrong by E. Real
// inputs x are far from white: neighbouring pixels are alike, and channels depend on each other. So
// weights are rounded one after the other, and what one rounding does to the convolution's result
// is made up for, as far as the correlations of x allow, by those that are still to come:
//   E. Frantar, D. Alistarh, Optimal Brain Compression, NeurIPS 2022, arXiv:2208.11580;
//   E. Frantar et al., GPTQ, ICLR 2023, arXiv:2210.17323.
// Before that the weights are moved to where they give, on the inputs that the quantised network
// has, the results of the float network with the least squared error; so a layer also makes up for
// what the layers before it did.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/graph.h"
#include "engine/quantization/quantizer.h"
#include "engine/quantization/weights.h"

namespace tessera {

// A pixel of a convolution's output.
struct OutputPixel {
  std::size_t sample;
  std::int64_t image, y, x;
};

// Up to `count` different ones, spread evenly over outputs of these shapes (NCHW, one a sample);
// always the same for the same arguments.
std::vector<OutputPixel> ChoosePixels(std::span<const Shape> shapes, std::size_t count);

// All channels of the pixels of output 0, [pixels, channels].
Tensor ReadPixels(std::span<const Outputs> outputs, std::span<const OutputPixel> pixels);

// Changes `weights.values` and `weights.scales` of the convolution `conv`: `weights` float32 is
// where they come from, `inputs` what the quantised network gives the convolution on each sample,
// `targets` [pixels, M] what the float network's convolution gives. Convolutions that sum more than
// 2304 products are left alone.
void FitWeights(const Node& conv, const Tensor& weights, std::span<const Tensor* const> inputs,
                std::span<const OutputPixel> pixels, const Tensor& targets, float x_scale,
                bool clip, Parallel& parallel, LayerWeights& out);

}  // namespace tessera
