// A graph that is being rewritten from front to back, with the view that the integer passes have of
// it: which float values are dequantised bytes, which are results of convolutions of bytes. Nodes
// of the old graph are taken one by one; new ones are appended to those of the rewritten graph.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/graph.h"
#include "engine/passes/quantized/quantization_nodes.h"

namespace tessera {

// A uint8 value that stands for real numbers.
struct QuantizedValue {
  ValueId bytes = kNoValue;
  Quantization q;
};

class QuantizedGraph {
 public:
  // Takes the nodes of `graph`, which Finish() gives back rewritten.
  explicit QuantizedGraph(Graph& graph);

  Graph& graph() { return graph_; }
  const std::vector<Node>& old_nodes() const { return old_nodes_; }

  // What nodes read in place of an old value.
  ValueId Resolve(ValueId value) const;
  // The old node that makes a value, or null.
  const Node* Producer(ValueId value) const;
  // Whether exactly one old node reads a value, once, and it is no output of the graph.
  bool HasOneReader(ValueId value) const;
  // For the declared shapes of the inputs, or an example of them; null where that is unknown.
  const Shape* FindShape(ValueId value) const;
  // Whether two values have one shape; whether `gate` has an element for each channel of images
  // `x`. Not only in the example, but also where an input is of size 1, which may be broadcast.
  // False where that is unknown.
  bool HaveSameShape(ValueId a, ValueId b) const;
  bool IsChannelGate(ValueId gate, ValueId x) const;
  // A float32 constant, also one that a DequantizeLinear makes; null for all others.
  const Tensor* RealConstant(ValueId value);

  ValueId AddValue(std::string name) { return graph_.AddValue(std::move(name)); }
  void Append(Node node);
  // Appends an old node, reading what its inputs have become.
  void Keep(const Node& node);
  // Appends a node that is a result of the pass, and returns its output.
  ValueId AppendInteger(Node node);
  // Old readers of `value` will read `other`.
  void Replace(ValueId value, ValueId other);

  // DequantizeLinear of bytes gave this old float value.
  void SetDequantized(ValueId real, QuantizedValue source) { quantized_[real] = source; }
  std::optional<QuantizedValue> FindQuantized(ValueId real) const;

  // The uint8 twin (n + 128) of an int8 value, if there is one.
  ValueId FindUnsigned(ValueId value) const;
  ValueId Unsigned(ValueId value);                          // the twin, made if need be
  void SetUnsigned(ValueId value, ValueId unsigned_value);  // and makes `value` for other readers

  // A QuantizedConv with float32 output made this old float value.
  void SetConv(ValueId real, Node conv) { convs_.insert_or_assign(real, std::move(conv)); }
  const Node* FindConv(ValueId real) const;

  // Gives the graph its nodes; returns how many of those of AppendInteger are needed.
  int Finish();

 private:
  using Shapes = std::vector<std::optional<Shape>>;  // by value

  void InferExampleShapes();
  // For these sizes of the inputs; false if the network does not take them.
  bool InferExample(const std::vector<Shape>& inputs);
  // Whether both shapes are known and `fit` in every example that knows them.
  bool Fit(ValueId a, ValueId b, bool (*fit)(const Shape&, const Shape&)) const;

  Graph& graph_;
  std::vector<Node> old_nodes_;
  std::vector<int> producers_;
  std::vector<std::vector<int>> consumers_;
  std::vector<Shapes> examples_;
  std::map<ValueId, ValueId> replaced_;
  std::map<ValueId, QuantizedValue> quantized_;
  std::map<ValueId, ValueId> unsigned_;
  std::map<ValueId, Node> convs_;
  std::map<ValueId, Tensor> real_constants_;
  std::set<ValueId> integer_values_;
};

}  // namespace tessera
