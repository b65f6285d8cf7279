#include "ops/broadcast.h"

#include <optional>

#include "simd/cpu_target.h"

namespace tessera {
namespace {

using BlockedOperand = ElementLoops::BlockedOperand;

// How operand `in` lies beside an output of shape `out` in Layout::kBlocked; nullopt if it cannot.
std::optional<BlockedOperand> ClassifyBlocked(const TensorInfo& in, const Shape& out) {
  if (in.shape == out) return BlockedOperand::kSame;
  if (in.shape.NumElements() == 1) return BlockedOperand::kScalar;
  const int rank = in.shape.rank();
  const bool per_channel = rank >= 3 && in.shape[rank - 1] == 1 && in.shape[rank - 2] == 1 &&
                           in.shape[rank - 3] == out[1];
  if (!per_channel) return std::nullopt;
  if (in.constant && (rank == 3 || in.shape[0] == 1)) return BlockedOperand::kChannels;
  if (!in.constant && rank == 4) return BlockedOperand::kPixel;
  return std::nullopt;
}

ElementLoops MakeLoops(std::span<const TensorInfo> inputs, const TensorInfo& out) {
  std::vector<Shape> shapes;
  for (const TensorInfo& in : inputs) shapes.push_back(in.shape);
  if (out.layout != Layout::kBlocked) return ElementLoops::Broadcast(out.shape, shapes);
  std::vector<BlockedOperand> kinds;
  for (const TensorInfo& in : inputs) kinds.push_back(ClassifyBlocked(in, out.shape).value());
  return ElementLoops::Blocked(out.shape, kinds, shapes);
}

}  // namespace

LayoutChoice BroadcastLayouts(const LayoutContext& context) {
  const Shape& out = context.outputs[0].shape;
  bool any_blocked = false;
  std::vector<Layout> layouts;
  for (const TensorInfo& in : context.inputs) {
    any_blocked = any_blocked || (in.layout == Layout::kBlocked && in.shape == out);
  }
  if (!any_blocked) return {};
  for (const TensorInfo& in : context.inputs) {
    const auto kind = ClassifyBlocked(in, out);
    if (!kind || in.dtype != DType::kFloat32) return {};
    const bool blocked = *kind == BlockedOperand::kSame || *kind == BlockedOperand::kPixel;
    layouts.push_back(blocked ? Layout::kBlocked : Layout::kRowMajor);
  }
  return {layouts, {Layout::kBlocked}};
}

BroadcastOperands::BroadcastOperands(std::span<const TensorInfo> inputs, const TensorInfo& out)
    : loops_(MakeLoops(inputs, out)) {
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const TensorInfo& in = inputs[k];
    const bool stays = loops_.IsConstant(static_cast<int>(k) + 1);
    operands_.push_back({stays ? RowOperand::kScalar : RowOperand::kStream, {}});
    if (out.layout != Layout::kBlocked) continue;
    const BlockedOperand kind = ClassifyBlocked(in, out.shape).value();
    if (stays && kind != BlockedOperand::kScalar) operands_.back().kind = RowOperand::kLanes;
    if (kind != BlockedOperand::kChannels) continue;
    const std::span<const float> values = in.constant->values<const float>();
    std::vector<float>& packed = operands_.back().packed;
    packed.assign(values.begin(), values.end());
    // The padding channels are divided by this too: 1 keeps them quiet.
    packed.resize(RoundUp(packed.size(), static_cast<std::size_t>(FloatLanes())), 1.f);
  }
}

const std::byte* BroadcastOperands::Start(std::size_t k, const std::byte* bytes) const {
  const std::vector<float>& packed = operands_[k].packed;
  return packed.empty() ? bytes : reinterpret_cast<const std::byte*>(packed.data());
}

}  // namespace tessera
