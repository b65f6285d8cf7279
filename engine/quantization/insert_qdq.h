// The quantised network as a standard graph.
#pragma once

#include <map>

#include "engine/graph.h"
#include "engine/quantization/placement.h"
#include "engine/quantization/weights.h"
#include "ops/quantized/quantized_conv.h"

namespace tessera {

// Scale and zero point of each 8-bit value of a placement.
using ActivationParameters = std::map<ValueId, Quantization>;

// By the histograms of the calibration. What enters the network keeps its whole range: pictures are
// 8-bit already, in steps that it then meets exactly.
ActivationParameters ChooseParameters(const Graph& graph, const Placement& placement,
                                      const Calibration& calibration, RangeMethod method,
                                      double percentile, double clip_cost);

// `graph` with QuantizeLinear and DequantizeLinear after its 8-bit values, and DequantizeLinear of
// these int8 weights and int32 biases before its quantised convolutions. A Mul by a positive factor
// for each channel whose result is 8-bit becomes the scales of a QuantizeLinear along the channels;
// the DequantizeLinear behind it has one scale, that of the product. Other nodes and their names
// stay. `shapes` is the graph with its shapes.
Graph InsertQdq(const Graph& graph, const Graph& shapes, const Placement& placement,
                const ActivationParameters& parameters, const WeightsByLayer& weights);

// DequantizeLinear -> Conv -> [Relu or Clip] -> QuantizeLinear of such a graph as QLinearConv,
// where the bounds of 8 bits do what Relu and Clip would. Returns how many.
int UseQLinearConv(Graph& graph);

}  // namespace tessera
