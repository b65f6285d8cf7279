// The networks that the project is built and measured on, by name.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "models/graph_builder.h"
#include "models/weights.h"

namespace tessera {

struct NetworkDef {
  std::string_view name;
  std::string_view description;
  int opset;
  void (*define)(GraphBuilder& graph);
};

std::span<const NetworkDef> Networks();

// Null if there is none of that name.
const NetworkDef* FindNetwork(std::string_view name);

// Number of weights, those of batch normalisation included.
std::int64_t CountParameters(const NetworkDef& network);

// The network as a model with the next weights of `weights`. Throws Error if they are too few, or
// too large for their storage.
onnx::ModelProto BuildNetwork(const NetworkDef& network, WeightSource& weights,
                              WeightStorage storage = WeightStorage::kFloat32);

}  // namespace tessera
