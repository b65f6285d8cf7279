// Weights and biases that fit what the quantised network really computes.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/graph.h"
#include "engine/quantization/fit_weights.h"
#include "engine/quantization/quantizer.h"
#include "engine/quantization/weights.h"

namespace tessera {

// Goes through the quantised graph (in QDQ form, its weights those of `weights`) in order, so that
// each convolution sees what the ones before it, adapted already, make of the samples. Changes
// - the integer weights, if `fit_weights` (see FitWeights), and
// - the biases, so that each channel's mean is that in `means`, those of the float network
//   (M. Nagel et al., 2019, arXiv:1906.04721, section 4.2, the variant with data).
// `network` is the float graph that it was made from.
void AdaptLayers(const Graph& network, const Graph& qdq, std::span<const Sample> samples,
                 const std::map<std::string, std::vector<double>, std::less<>>& means,
                 const std::map<std::string, float, std::less<>>& x_scales, bool fit_weights,
                 bool clip_weights, Parallel& parallel, WeightsByLayer& weights);

}  // namespace tessera
