// Scales of the channels that convolutions read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/graph.h"
#include "engine/quantization/histogram.h"

namespace tessera {

// A convolution with HasFloatWeights that reads all channels of a value as its own channels from
// `first` on: others are before and behind them where a Concat lies between.
struct ChannelReader {
  Node* conv;
  std::int64_t first = 0;
};

// What channels with these ranges should be divided by, so that they can share the range of 8 bits;
// the highest value that remains is about 1. Not all of the difference goes: what a channel is
// divided by its readers' weights are multiplied with, and they share a range as well.
std::vector<double> ChooseScales(const Graph& graph, std::span<const ValueRange> ranges,
                                 std::span<const ChannelReader> readers);

// Multiplies the weights that read each channel with its scale.
void ScaleWeights(Graph& graph, const ChannelReader& reader, std::span<const double> scales);

// Of conv -> prelu -> readers: gives channels that are rather negative the other sign, so that all
// can share a range that is mostly positive. With a slope a > 0 for negative values, prelu(x) is
// -p(-a x), where p has the slope 1 / a. `ranges` are those of prelu's result. The slope is
// float32, one for each channel.
void TurnChannels(Graph& graph, Node& conv, Node& prelu, std::span<const ChannelReader> readers,
                  std::span<ValueRange> ranges);

}  // namespace tessera
