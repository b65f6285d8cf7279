// Dropout at inference: the output is the input, the mask keeps everything.
// https://onnx.ai/onnx/operators/onnx__Dropout.html
#include <algorithm>
#include <cstring>
#include <vector>

#include "ops/elements.h"
#include "ops/op.h"

namespace tessera {
namespace {

void InferDropout(const InferContext& context) {
  InferSameAsInput0(context);
  const TensorInfo& in = context.Input(0);
  if (context.node.opset >= 12 && context.HasInput(2)) {
    Require(ToInt64s(context.Constant(2).view()) == std::vector<std::int64_t>{0},
            "training mode is not supported");
  }
  if (context.outputs.size() > 1) {
    context.SetOutput(1, context.node.opset < 10 ? in.dtype : DType::kBool, in.shape);
  }
}

class DropoutKernel final : public Kernel {
 public:
  std::string_view name() const override { return "dropout"; }
  bool CanOverwriteInput(std::size_t i) const override { return i == 0; }
  void Run(const RunContext& context) const override {
    const TensorView& in = context.inputs[0];
    const TensorView& out = context.outputs[0];
    if (out.present() && out.bytes != in.bytes) {
      std::memcpy(out.bytes, in.bytes, StorageBytes(in.dtype, in.shape, in.layout));
    }
    if (context.outputs.size() < 2 || !context.outputs[1].present()) return;
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
