// What the samples make of a float network's values.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "engine/graph.h"
#include "engine/quantization/histogram.h"
#include "engine/quantization/quantizer.h"

namespace tessera {

// From the lowest to the highest value of each channel of NCHW, and 0.
using ChannelRanges = std::map<ValueId, std::vector<ValueRange>>;

// By the ids of a graph's values; those of float32 tensors alone.
struct Calibration {
  // Channels count as much as the convolutions that read them make of their errors: by the norm
  // of their weights.
  std::map<ValueId, Histogram> histograms;
  // Of rank-4 values: for each channel of NCHW the mean, and the lowest and highest value.
  std::map<ValueId, std::vector<double>> means;
  ChannelRanges ranges;
};

// `graph` as PrepareForQuantizing leaves it.
Calibration Calibrate(const Graph& graph, std::span<const Sample> samples, Parallel& parallel);

// Its ranges of channels alone, in less time.
ChannelRanges FindChannelRanges(const Graph& graph, std::span<const Sample> samples,
                                Parallel& parallel);

// The mean of each channel over the first outputs of all samples, rank 4.
std::vector<double> ChannelMeans(std::span<const Outputs> outputs);

}  // namespace tessera
