#include "ops/op.h"

#include <algorithm>

namespace tessera {

NeedsValue::NeedsValue(std::size_t input)
    : Error(StrCat("input ", input, " has to be a constant (or computed from shapes alone)")) {}

const TensorInfo& InferContext::Input(std::size_t i) const {
  Require(HasInput(i), "input ", i, " is missing");
  return inputs[i];
}

const Tensor& InferContext::Constant(std::size_t i) const { return ConstantInput(inputs, i); }

void InferContext::SetOutput(std::size_t i, DType dtype, const Shape& shape) const {
  Require(i < outputs.size(), "the node has no output ", i);
  outputs[i].present = true;
  outputs[i].dtype = dtype;
  outputs[i].shape = shape;
}

const Tensor& ConstantInput(std::span<const TensorInfo> inputs, std::size_t i) {
  Require(i < inputs.size() && inputs[i].present, "input ", i, " is missing");
  if (inputs[i].constant == nullptr) throw NeedsValue(i);
  return *inputs[i].constant;
}

std::vector<std::int64_t> ConstantInt64s(std::span<const TensorInfo> inputs, std::size_t i,
                                         std::initializer_list<DType> types) {
  const Tensor& value = ConstantInput(inputs, i);
  Require(std::find(types.begin(), types.end(), value.dtype()) != types.end(), "input ", i,
          " cannot be of ", value.dtype());
  Require(value.shape().rank() <= 1, "input ", i, " is ", value.shape(), ", not a vector");
  return ToInt64s(value.view());
}

void InferSameAsInput0(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  context.SetOutput(0, in.dtype, in.shape);
}

LayoutChoice FollowInput0(const LayoutContext& context) {
  if (context.inputs[0].layout != Layout::kBlocked) return {};
  return {{Layout::kBlocked}, {Layout::kBlocked}};
}

std::optional<SpatialField> PointwiseField(const FieldContext&, std::size_t) {
  return SpatialField{};
}

std::optional<SpatialField> BroadcastField(const FieldContext& context, std::size_t i) {
  const Shape& out = context.outputs[0].shape;
  const auto extent = [](const Shape& s, int from_end) {
    return s.rank() >= from_end ? s[s.rank() - from_end] : 1;
  };
  for (std::size_t k = 0; k < context.inputs.size(); ++k) {
    const TensorInfo& in = context.inputs[k];
    if (!in.present) continue;
    const bool flat = extent(in.shape, 1) == 1 && extent(in.shape, 2) == 1;
    const bool full =
        extent(in.shape, 1) == extent(out, 1) && extent(in.shape, 2) == extent(out, 2);
    if (in.constant ? !flat : (k == i && !full)) return std::nullopt;
  }
  return SpatialField{};
}

}  // namespace tessera
