// What a QuantizeLinear asks for: a float value's bytes, made without the float value where some
// integer operator can.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "engine/passes/quantized/byte_function.h"
#include "engine/passes/quantized/quantized_graph.h"

namespace tessera {

class IntegerOutputs {
 public:
  explicit IntegerOutputs(QuantizedGraph& view)
      : view_(view), graph_(view.graph()), functions_(view) {}

  // The uint8 value that QuantizeLinear with `q` gives for an old float value. Appends what makes
  // it: integer operators, or the QuantizeLinear itself.
  ValueId Bytes(ValueId real, Quantization q);

  // The result of an old Relu or Clip of dequantised bytes as such bytes itself, with the same
  // parameters; nullopt if they do not hold it exactly.
  std::optional<QuantizedValue> BoundedBytes(const Node& node);

 private:
  ValueId Make(ValueId real, Quantization q);
  // Each gives kNoValue if it does not apply.
  ValueId FromFunction(ValueId real, Quantization q);
  ValueId FromConv(ValueId real, Quantization q);
  ValueId FromAdd(ValueId real, Quantization q);
  ValueId FromBoundedAdd(const Node& bound, Quantization q);
  ValueId FromGate(const Node& mul, Quantization q);
  ValueId FromMatMul(const Node& matmul, Quantization q);
  ValueId FromMover(const Node& mover, ValueId real, Quantization q);

  ValueId NewBytes(ValueId real);

  using Key = std::tuple<ValueId, float, std::int32_t>;
  QuantizedGraph& view_;
  Graph& graph_;
  ByteFunctions functions_;
  std::map<Key, ValueId> made_;
};

}  // namespace tessera
