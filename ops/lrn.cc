// LRN, local response normalisation: x / (bias + alpha / size * squares)^beta, with the sum of the
// squares of `size` neighbouring channels.
// https://onnx.ai/onnx/operators/onnx__LRN.html
#include <algorithm>
#include <cmath>

#include "ops/axis_view.h"
#include "ops/elements.h"
#include "ops/op.h"

namespace tessera {
namespace {

void InferLrn(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  RequireType(in.dtype, FloatTypes());
  Require(in.shape.rank() >= 2, "X has shape ", in.shape, " instead of [N, C, ...]");
  const std::int64_t size = context.node.attributes.Int("size", 0);
  Require(size >= 1, "size is ", size);
  InferSameAsInput0(context);
}

template <typename T>
class LrnKernel final : public Kernel {
 public:
  explicit LrnKernel(const PrepareContext& context) : view_(context.inputs[0].shape, 1) {
    const Attributes& attributes = context.node.attributes;
    const std::int64_t size = attributes.Int("size", 1);
    before_ = std::min(view_.count, (size - 1) / 2);
    after_ = std::min(view_.count, size / 2);
    factor_ = static_cast<double>(attributes.Float("alpha", 1e-4f)) / static_cast<double>(size);
    beta_ = static_cast<double>(attributes.Float("beta", 0.75f));
    bias_ = static_cast<double>(attributes.Float("bias", 1.f));
  }
  std::string_view name() const override { return "lrn"; }
  void Run(const RunContext& context) const override {
    view_.ForLines(context.parallel, [&](std::int64_t o, std::int64_t column, std::int64_t n, int) {
      const std::int64_t offset = view_.Offset(o, column);
      Columns(context.inputs[0].data<const T>() + offset, context.outputs[0].data<T>() + offset, n);
    });
  }

 private:
  using C = ComputeType<T>;

  void Columns(const T* in, T* out, std::int64_t n) const {
    for (std::int64_t c = 0; c < view_.count; ++c) {
      double squares[AxisView::kMaxColumns] = {};
      const std::int64_t first = std::max<std::int64_t>(0, c - before_);
      const std::int64_t last = std::min(view_.count - 1, c + after_);
      for (std::int64_t i = first; i <= last; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          const auto x = static_cast<double>(static_cast<C>(in[i * view_.inner + j]));
          squares[j] += x * x;
        }
      }
      for (std::int64_t j = 0; j < n; ++j) {
        const auto x = static_cast<double>(static_cast<C>(in[c * view_.inner + j]));
        const double y = x / std::pow(bias_ + factor_ * squares[j], beta_);
        out[c * view_.inner + j] = static_cast<T>(static_cast<C>(y));
      }
    }
  }

  AxisView view_;                // along channels
  std::int64_t before_, after_;  // neighbours of a channel
  double factor_, beta_, bias_;
};

std::unique_ptr<Kernel> PrepareLrn(const PrepareContext& context) {
  return Dispatch(context.inputs[0].dtype, FloatTypes(), [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<LrnKernel<typename decltype(tag)::type>>(context);
  });
}

}  // namespace

extern const OpDef kLrnOp;
const OpDef kLrnOp = {
    .type = "LRN",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferLrn,
    .prepare = PrepareLrn,
    .field = PointwiseField,
};

}  // namespace tessera
