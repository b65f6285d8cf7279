// Which convolutions and which values of a network become 8-bit.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/graph.h"
#include "engine/quantization/calibrate.h"
#include "engine/quantization/quantizer.h"

namespace tessera {

// By the indices of nodes and values of the float graph.
struct Placement {
  std::vector<bool> quantized;  // convolutions with 8-bit input and weights
  std::vector<bool> eight_bit;  // values that pass through uint8: QuantizeLinear, DequantizeLinear
  // What values are read as their parameters: their own id, or that of another value, where an
  // operator that only moves elements makes one of the other.
  std::vector<ValueId> parameters_of;
};

// Convolutions that can be quantised: constant weights, two-dimensional maps of more than one
// pixel. `shapes` is the graph with its shapes.
std::vector<bool> FindLayers(const Graph& graph, const Graph& shapes);

// `layers` become 8-bit, and what it pays to have in 8 bits between them:
// - a convolution's input, and its output where the next needs that, after its activation;
// - operands of additions of maps and of gates whose results are needed in 8 bits; but not the
//   result of a convolution that an addition alone reads;
// - what operators that only move elements or apply one function to each turn into such values.
Placement Place(const Graph& graph, const Graph& shapes, const std::vector<bool>& layers,
                const Calibration& calibration, QuantizedFormat format);

}  // namespace tessera
