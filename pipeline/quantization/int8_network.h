// Networks that are quantised when they are needed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "engine/graph.h"
#include "engine/quantization/quantizer.h"
#include "engine/session.h"
#include "pipeline/quantization/model_cache.h"

namespace tessera {

// Told what is done and what went wrong without harm, a sentence each.
using Int8Note = std::function<void(const std::string&)>;

// Whether a network computes with 8-bit integers, in part at least: it has nodes that quantise what
// it computes. (Weights alone may be stored as integers.)
bool IsQuantized(const Graph& network);

// Throws Error, which names the network and the weight, if there is one that is no finite number.
void RequireFiniteWeights(const Graph& network);

// A network for which there may be one of 8-bit integers.
class Int8Network {
 public:
  // As it was imported. `made_for` tells apart what is quantised of one network for several uses.
  // Without a cache nothing is kept.
  Int8Network(Graph graph, std::optional<ModelCache> cache, std::string_view made_for = {});

  const Graph& graph() const { return graph_; }
  const std::string& name() const { return graph_.file; }
  const std::string& onnx() const { return onnx_; }  // the network as it is

  // The network as it is.
  std::shared_ptr<Session> LoadFloat() const;
  // The network itself if it is quantised, or what was made of it in an earlier run; null if it
  // still has to be made.
  std::shared_ptr<Session> Find() const;
  // What was made of it, which is kept. That it could not be is only worth a note.
  std::shared_ptr<Session> Keep(const Graph& quantized, const Int8Note& note) const;

 private:
  Graph graph_;
  std::string onnx_, key_;
  std::optional<ModelCache> cache_;
  bool quantized_;
};

// "34 of 36 convolutions with 8-bit integers".
std::string CountText(const QuantizedModel& model);

}  // namespace tessera
