// ReverseSequence: of each entry of a batch, the first so many time steps in reverse order.
// https://onnx.ai/onnx/operators/onnx__ReverseSequence.html
#include "ops/indexing.h"
#include "ops/op.h"

namespace tessera {
namespace {

// Throws Error unless time and batch are axes 0 and 1, either way. True: time is axis 0.
bool IsTimeFirst(const OpNode& node) {
  const std::int64_t time = node.attributes.Int("time_axis", 0);
  const std::int64_t batch = node.attributes.Int("batch_axis", 1);
  Require((time == 0 && batch == 1) || (time == 1 && batch == 0), "time_axis ", time,
          " and batch_axis ", batch, " are not 0 and 1");
  return time == 0;
}

void InferReverseSequence(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  const TensorInfo& lengths = context.Input(1);
  const bool time_first = IsTimeFirst(context.node);
  Require(in.shape.rank() >= 2, "shape ", in.shape, " has no time and batch");
  Require(lengths.dtype == DType::kInt64 && lengths.shape == Shape{in.shape[time_first ? 1 : 0]},
          "sequence_lens of ", lengths.dtype, " ", lengths.shape, " for ", in.shape);
  InferSameAsInput0(context);
}

class ReverseSequenceKernel final : public Kernel {
 public:
  explicit ReverseSequenceKernel(const PrepareContext& context)
      : time_first_(IsTimeFirst(context.node)) {}
  std::string_view name() const override { return "reverse_sequence"; }
  // Throws Error for a length that is negative or greater than there are time steps.
  void Run(const RunContext& context) const override {
    const TensorView& x = context.inputs[0];
    const AxisSlices slices(x.dtype, x.shape, 1);
    const std::int64_t steps = x.shape[time_first_ ? 0 : 1], batch = context.inputs[1].size();
    const auto* lengths = context.inputs[1].data<const std::int64_t>();
    for (std::int64_t b = 0; b < batch; ++b) {
      Require(lengths[b] >= 0 && lengths[b] <= steps, "a sequence of ", lengths[b], " of ", steps,
              " steps");
    }
    const auto* in = x.data<const std::byte>();
    CopySlices(slices.outer, slices.dim, slices.slice_bytes, context.outputs[0].bytes,
               context.parallel, [&](std::int64_t o, std::int64_t i) {
                 const std::int64_t time = time_first_ ? o : i;
                 const std::int64_t length = lengths[time_first_ ? i : o];
                 const std::int64_t source = time < length ? length - 1 - time : time;
                 return in + (time_first_ ? slices.Offset(source, i) : slices.Offset(o, source));
               });
  }

 private:
  bool time_first_;
};

}  // namespace

extern const OpDef kReverseSequenceOp;
const OpDef kReverseSequenceOp = {
    .type = "ReverseSequence",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = InferReverseSequence,
    .prepare = PrepareKernel<ReverseSequenceKernel>,
    .first_opset = 10,
};

}  // namespace tessera
