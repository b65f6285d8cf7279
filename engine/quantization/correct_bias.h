// Biases that make up for what quantisation does to the means.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/graph.h"
#include "engine/quantization/quantizer.h"

namespace tessera {

// For each convolution of the quantised graph (in QDQ form) that is in `means`, by the name of its
// node: what to add to its bias, channel by channel, for its mean over the samples to be that in
// `means`, those of the float network. Later convolutions see the earlier ones corrected.
// (M. Nagel et al., 2019, arXiv:1906.04721, section 4.2, the variant with data.)
std::map<std::string, std::vector<double>> BiasCorrections(
    const Graph& qdq, std::span<const Sample> samples,
    const std::map<std::string, std::vector<double>>& means, Parallel& parallel);

}  // namespace tessera
