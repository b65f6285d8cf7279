// MulAdd: x * scale + shift in one pass, for float32 x of the output's shape and operands that are
// broadcast to it. Made by the pass fuse-mul-add.
#include <array>
#include <string_view>

#include "ops/broadcast.h"
#include "ops/op.h"

namespace tessera {
namespace {

constexpr std::size_t kScale = 1, kShift = 2;

void InferMulAdd(const InferContext& context) {
  const TensorInfo& x = context.Input(0);
  Shape out = x.shape;
  for (const std::size_t i : {kScale, kShift}) {
    Require(context.Input(i).dtype == DType::kFloat32, "operand of type ", context.Input(i).dtype);
    out = BroadcastShapes(out, context.Input(i).shape);
  }
  Require(x.dtype == DType::kFloat32 && out == x.shape, "operands broadcast ", x.dtype, " ",
          x.shape, " to ", out);
  context.SetOutput(0, x.dtype, x.shape);
}

using RowFunction = void (*)(const float* x, RowOperand scale, RowOperand shift, float* out,
                             std::int64_t n);

void PlainRow(const float* x, RowOperand scale, RowOperand shift, float* out, std::int64_t n) {
  const auto at = [](const RowOperand& o, std::int64_t i) {
    return o.values[o.kind == RowOperand::kStream ? i : 0];  // reference kernels see no kLanes
  };
  for (std::int64_t i = 0; i < n; ++i) out[i] = x[i] * at(scale, i) + at(shift, i);
}

class MulAddKernel final : public Kernel {
 public:
  explicit MulAddKernel(const PrepareContext& context)
      : row_(context.reference ? PlainRow : ApplyScaleShift),
        operands_(context.inputs, context.outputs[0]) {
    const TensorInfo& out = context.outputs[0];
    for (std::size_t i = 0; i < overwritable_.size(); ++i) {
      const TensorInfo& in = context.inputs[i];
      overwritable_[i] = in.shape == out.shape && in.layout == out.layout;
    }
  }

  std::string_view name() const override {
    return row_ == PlainRow ? "mul_add_plain" : "mul_add_vector";
  }
  bool CanOverwriteInput(std::size_t i) const override { return overwritable_[i]; }
  void Run(const RunContext& context) const override {
    std::array<const float*, 3> in{};
    for (std::size_t i = 0; i < in.size(); ++i) {
      in[i] = reinterpret_cast<const float*>(
          operands_.Start(i, context.inputs[i].data<const std::byte>()));
    }
    float* out = context.outputs[0].data<float>();
    operands_.loops().Run(context.parallel, [&](const ElementLoops::Offsets& at, std::int64_t n) {
      row_(in[0] + at[1], {in[kScale] + at[2], operands_.kind(kScale)},
           {in[kShift] + at[3], operands_.kind(kShift)}, out + at[0], n);
    });
  }

 private:
  RowFunction row_;
  BroadcastOperands operands_;
  std::array<bool, 3> overwritable_{};
};

}  // namespace

extern const OpDef kMulAddOp;
const OpDef kMulAddOp = {
    .type = "MulAdd",
    .min_inputs = 3,
    .max_inputs = 3,
    .infer = InferMulAdd,
    .prepare = PrepareKernel<MulAddKernel>,
    .layouts = BroadcastLayouts,
    .field = BroadcastField,
    .internal = true,
};

}  // namespace tessera
