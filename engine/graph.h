// A network as a list of nodes in execution order over typed, named values.
#pragma once

#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/session.h"
#include "ops/op.h"
#include "simd/memory_limit.h"

namespace tessera {

using ValueId = int;
inline constexpr ValueId kNoValue = -1;  // an omitted optional input or unused output

// A tensor of the network. `info.present` is false until its type and shape are known;
// `info.constant` is set for weights and for whatever was folded.
struct Value {
  std::string name;
  TensorInfo info;
};

struct Graph;

struct Node {
  OpNode op;
  const OpDef* def = nullptr;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  // Sub-graphs: then and else of an If, the body of a Loop. What a body reads of the graph around
  // it are inputs of the body, after its own, and of the node: those of an If's `then`, then those
  // of its `else`; those of a Loop's body.
  std::vector<std::shared_ptr<const Graph>> bodies = {};
  std::size_t num_own_body_inputs = 0;  // of each body
};

// Nodes are sorted topologically: every node comes after those that make its inputs. A value has
// one producer at most. Passes keep both true.
struct Graph {
  std::string file;  // for messages
  int opset = 0;     // of the default ONNX domain
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<ValueId> inputs, outputs;
  // As the model declares them, in the order of inputs and outputs; none in a sub-graph.
  std::vector<ValueDecl> input_decls, output_decls;

  const Value& value(ValueId id) const { return values[static_cast<std::size_t>(id)]; }
  Value& value(ValueId id) { return values[static_cast<std::size_t>(id)]; }

  ValueId AddValue(std::string name);
  ValueId AddConstant(std::string name, Tensor tensor);

  bool IsOutput(ValueId id) const;
  // The constant of value `id`; null for kNoValue and for values that are computed.
  const Tensor* Constant(ValueId id) const;

  // For each value the indices of the nodes that read it (twice if they read it twice), in order.
  std::vector<std::vector<int>> Consumers() const;
  // For each value the index of the node that makes it, or -1.
  std::vector<int> Producers() const;

  // Everyone who reads `from` (graph outputs too) reads `to` instead.
  void ReplaceUses(ValueId from, ValueId to);
  // Drops nodes whose outputs nobody reads, nodes whose outputs are all constants, and constants
  // that nobody reads.
  void RemoveDeadNodes();
};

// "node 'Conv_0' (Conv)".
std::string Describe(const Node& node);

// The inputs' and outputs' infos of a node, absent ones as not present.
std::vector<TensorInfo> InputInfos(const Graph& graph, const Node& node);
std::vector<TensorInfo> OutputInfos(const Graph& graph, const Node& node);

// An Error about a node: file, node, operator, reason, and its inputs' types and shapes.
[[noreturn]] void FailAtNode(const std::string& file, const Node& node,
                             std::span<const TensorInfo> inputs, std::string_view reason);

// What `work` on a node returns. Its Errors, and lack of memory, become Errors about the node;
// inputs() gives the infos of its inputs for that.
template <typename Inputs, typename Work>
auto AtNode(const std::string& file, const Node& node, Inputs&& inputs, Work&& work) {
  try {
    return work();
  } catch (const Error& e) {
    FailAtNode(file, node, inputs(), e.what());
  } catch (const std::bad_alloc& e) {
    FailAtNode(file, node, inputs(), MemoryMessage(e));
  } catch (const std::length_error&) {  // of a vector that could never be that long
    FailAtNode(file, node, inputs(), "not enough memory");
  }
}

template <typename Work>
auto AtNode(const Graph& graph, const Node& node, Work&& work) {
  return AtNode(
      graph.file, node, [&] { return InputInfos(graph, node); }, work);
}

}  // namespace tessera
