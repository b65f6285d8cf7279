// Functions of one quantised value: chains of operators that compute each element from the same
// element of a uint8 tensor, as DequantizeLinear -> HardSwish or x -> x * sigmoid(x). They have 256
// values, which the plain operators give.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "engine/passes/quantized/quantized_graph.h"

namespace tessera {

struct ByteFunction {
  ValueId bytes = kNoValue;         // its argument
  std::array<float, 256> values{};  // by byte
};

class ByteFunctions {
 public:
  explicit ByteFunctions(QuantizedGraph& graph) : graph_(graph) {}

  // An old float value as a function of a quantised value; null if it is none.
  const ByteFunction* Find(ValueId value);

 private:
  std::optional<ByteFunction> Make(ValueId value);
  std::optional<ByteFunction> Evaluate(const Node& node);

  QuantizedGraph& graph_;
  std::map<ValueId, std::optional<ByteFunction>> known_;
};

// The table of a function whose values are quantised as QuantizeLinear does it.
Tensor QuantizedTable(const ByteFunction& function, Quantization q);

}  // namespace tessera
