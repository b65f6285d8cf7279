// Dropout at inference: the output is the input, the mask keeps everything. So it is in training
// mode with a ratio of 0; any other ratio of it is refused.
// https://onnx.ai/onnx/operators/onnx__Dropout.html
#include <algorithm>
#include <cstring>

#include "ops/elements.h"
#include "ops/op.h"

namespace tessera {
namespace {

constexpr std::size_t kRatio = 1, kTrainingMode = 2;  // inputs since opset 12

// Whether elements would be dropped at random. Both values may be absent (null).
bool DropsElements(const TensorView& ratio, const TensorView& training_mode) {
  if (!training_mode.present() || !*training_mode.data<const bool>()) return false;
  return !ratio.present() || ToFloats(ratio)[0] != 0;
}

void RequireInference(const TensorView& ratio, const TensorView& training_mode) {
  Require(!DropsElements(ratio, training_mode),
          "training mode is not supported, unless the ratio is 0");
}

void InferDropout(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  const int opset = context.node.opset;
  RequireType(in.dtype, FloatTypes());
  Require(opset >= 12 || context.inputs.size() == 1, context.inputs.size(), " inputs");
  const auto check = [&](std::size_t i, const char* name, auto types) {
    if (!context.HasInput(i)) return;
    RequireType(context.Input(i).dtype, types);
    Require(context.Input(i).shape.NumElements() == 1, name, " has shape ", context.Input(i).shape,
            " instead of one element");
  };
  check(kRatio, "ratio", FloatTypes());
  check(kTrainingMode, "training_mode", TypeList<bool>());
  // What is known already is refused at once.
  const auto value = [&](std::size_t i) {
    return context.HasInput(i) && context.inputs[i].constant ? context.inputs[i].constant->view()
                                                             : TensorView{};
  };
  const bool ratio_is_open = context.HasInput(kRatio) && !context.inputs[kRatio].constant;
  if (!ratio_is_open) RequireInference(value(kRatio), value(kTrainingMode));

  InferSameAsInput0(context);
  if (context.outputs.size() > 1) {
    context.SetOutput(1, opset < 10 ? in.dtype : DType::kBool, in.shape);
  }
}

class DropoutKernel final : public Kernel {
 public:
  std::string_view name() const override { return "dropout"; }
  bool CanOverwriteInput(std::size_t i) const override { return i == 0; }
  // Throws Error in training mode.
  void Run(const RunContext& context) const override {
    const auto input = [&](std::size_t i) {
      return i < context.inputs.size() ? context.inputs[i] : TensorView{};
    };
    RequireInference(input(kRatio), input(kTrainingMode));
    const TensorView& in = context.inputs[0];
    const TensorView& out = context.outputs[0];
    if (out.present() && out.bytes != in.bytes) {
      std::memcpy(out.bytes, in.bytes, StorageBytes(in.dtype, in.shape, in.layout));
    }
    if (!context.HasOutput(1)) return;
    const TensorView& mask = context.outputs[1];
    Dispatch(mask.dtype, AllTypes(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::fill_n(mask.data<T>(), mask.size(), static_cast<T>(ComputeType<T>{1}));
    });
  }
};

std::unique_ptr<Kernel> PrepareDropout(const PrepareContext&) {
  return std::make_unique<DropoutKernel>();
}

}  // namespace

extern const OpDef kDropoutOp;
const OpDef kDropoutOp = {
    .type = "Dropout",
    .min_inputs = 1,
    .max_inputs = 3,
    .infer = InferDropout,
    .prepare = PrepareDropout,
    .layouts = FollowInput0,
    .field = PointwiseField,
};

}  // namespace tessera
