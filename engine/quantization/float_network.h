// A float network with all that its quantised forms are made from.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/graph.h"
#include "engine/quantization/calibrate.h"
#include "engine/quantization/quantizer.h"

namespace tessera {

struct FloatNetwork {
  Graph graph;               // prepared, channels equalised
  Graph shapes;              // with the shapes that the first sample gives it
  std::vector<bool> layers;  // nodes that can be quantised, and are not excluded by name
  Calibration calibration;
};

// Options: excluded, equalize.
FloatNetwork MakeFloatNetwork(const Graph& imported, std::span<const Sample> samples,
                              const QuantizerOptions& options, Parallel& parallel);

// `layers` in 8 bits.
Graph QuantizeLayers(const FloatNetwork& network, const std::vector<bool>& layers,
                     std::span<const Sample> samples, const QuantizerOptions& options,
                     Parallel& parallel);

// What is known of each convolution that can be quantised without measuring it, with
// `quantized` ones as such; excluded ones among them. In order of execution.
std::vector<LayerReport> DescribeLayers(const FloatNetwork& network,
                                        const std::vector<bool>& quantized);

}  // namespace tessera
