// Operands of elementwise operators: how they lie beside an output in either layout.
#pragma once

#include <span>
#include <vector>

#include "ops/element_loops.h"
#include "ops/elementwise.h"
#include "ops/op.h"

namespace tessera {

// Blocked throughout where an input of the output's shape is blocked and all others are of that
// shape too, or one number, or one a channel. Row-major otherwise. For float32.
LayoutChoice BroadcastLayouts(const LayoutContext& context);

// Inputs that are broadcast onto an output, in the layouts of BroadcastLayouts: operand k + 1 of
// `loops` is input k.
class BroadcastOperands {
 public:
  BroadcastOperands(std::span<const TensorInfo> inputs, const TensorInfo& out);

  const ElementLoops& loops() const { return loops_; }
  RowOperand::Kind kind(std::size_t k) const { return operands_[k].kind; }
  // Where input k starts: `bytes`, or a copy of it in the order that rows need.
  const std::byte* Start(std::size_t k, const std::byte* bytes) const;

 private:
  struct Operand {
    RowOperand::Kind kind;
    std::vector<float> packed;  // constants of channels, padded to whole vectors
  };
  ElementLoops loops_;
  std::vector<Operand> operands_;
};

}  // namespace tessera
