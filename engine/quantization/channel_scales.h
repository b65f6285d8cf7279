// Scales of the channels that convolutions read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/graph.h"

namespace tessera {

// A convolution with HasFloatWeights that reads all channels of a value as its own channels from
// `first` on: others are before and behind them where a Concat lies between.
struct ChannelReader {
  Node* conv;
  std::int64_t first = 0;
};

// What channels with these largest magnitudes should be divided by, so that they can share the
// range of 8 bits; the largest that remains is 1. Not all of the difference goes: what a channel is
// divided by its readers' weights are multiplied with, and they share a range as well.
std::vector<double> ChooseScales(const Graph& graph, std::span<const double> magnitudes,
                                 std::span<const ChannelReader> readers);

// Multiplies the weights that read each channel with its scale.
void ScaleWeights(Graph& graph, const ChannelReader& reader, std::span<const double> scales);

}  // namespace tessera
