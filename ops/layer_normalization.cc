// LayerNormalization: the elements from an axis on are given mean 0 and variance 1, then a scale
// and an offset each.
// https://onnx.ai/onnx/operators/onnx__LayerNormalization.html
#include <cmath>
#include <type_traits>

#include "ops/elements.h"
#include "ops/moments.h"
#include "ops/op.h"

namespace tessera {
namespace {

constexpr std::size_t kScale = 1, kBias = 2;  // inputs
constexpr std::size_t kMean = 1;              // output; the one after it is 1 / standard deviation

int Axis(const OpNode& node, int rank) {
  return NormalizeAxis(node.attributes.Int("axis", -1), rank);
}

void InferLayerNormalization(const InferContext& context) {
  const TensorInfo& x = context.Input(0);
  RequireType(x.dtype, FloatTypes());
  const int axis = Axis(context.node, x.shape.rank());
  const std::int64_t stash = context.node.attributes.Int("stash_type", 1);
  Require(stash == 1, "stash_type ", stash, " is not supported");
  const std::int64_t size = x.shape.NumElements(axis, x.shape.rank());
  for (std::size_t i = kScale; i <= kBias; ++i) {
    if (i == kBias && !context.HasInput(i)) continue;
    const TensorInfo& in = context.Input(i);
    Require(in.dtype == x.dtype, "operands of types ", x.dtype, " and ", in.dtype);
    const std::int64_t n = in.shape.NumElements();
    Require(n == size || n == 1, i == kScale ? "Scale " : "B ", in.shape, " does not fit X ",
            x.shape, " from axis ", axis, " on");
  }
  InferSameAsInput0(context);
  Shape reduced = x.shape;
  for (int d = axis; d < reduced.rank(); ++d) reduced[d] = 1;
  for (std::size_t i = kMean; i < context.outputs.size(); ++i) {
    context.SetOutput(i, DType::kFloat32, reduced);
  }
}

template <typename T>
class LayerNormalizationKernel final : public Kernel {
 public:
  explicit LayerNormalizationKernel(const PrepareContext& context)
      : epsilon_(static_cast<double>(context.node.attributes.Float("epsilon", 1e-5f))),
        vector_(!context.reference) {
    const Shape& x = context.inputs[0].shape;
    const int axis = Axis(context.node, x.rank());
    rows_ = x.NumElements(0, axis);
    size_ = x.NumElements(axis, x.rank());
    one_scale_ = context.inputs[kScale].shape.NumElements() == 1;
    one_bias_ = context.HasInput(kBias) && context.inputs[kBias].shape.NumElements() == 1;
  }
  std::string_view name() const override { return "layer_normalization"; }
  bool CanOverwriteInput(std::size_t i) const override { return i == 0; }
  void Run(const RunContext& context) const override {
    if (size_ == 0) return Stash(context, 0, rows_, {0, 0});
    constexpr std::int64_t kGrain = 16384;  // elements that are worth a task
    const std::int64_t grain = std::max<std::int64_t>(1, kGrain / size_);
    context.parallel.For((rows_ + grain - 1) / grain, [&](std::int64_t task, int) {
      const std::int64_t end = std::min(rows_, (task + 1) * grain);
      for (std::int64_t row = task * grain; row < end; ++row) Row(context, row);
    });
  }

 private:
  using C = ComputeType<T>;

  double Inverse(const Moments& moments) const {
    return 1 / std::sqrt(moments.variance + epsilon_);
  }

  void Stash(const RunContext& context, std::int64_t begin, std::int64_t end,
             const Moments& moments) const {
    for (std::size_t i = kMean; i < context.outputs.size(); ++i) {
      if (!context.HasOutput(i)) continue;
      const double value = i == kMean ? moments.mean : Inverse(moments);
      std::fill(context.outputs[i].data<float>() + begin, context.outputs[i].data<float>() + end,
                static_cast<float>(value));
    }
  }

  void Row(const RunContext& context, std::int64_t row) const {
    const T* x = context.inputs[0].data<const T>() + row * size_;
    const T* scale = context.inputs[kScale].data<const T>();
    const T* bias = context.inputs.size() > kBias ? context.inputs[kBias].data<const T>() : nullptr;
    const Moments moments = RowMoments(x, size_, vector_);
    const double inverse = Inverse(moments);
    Stash(context, row, row + 1, moments);
    T* out = context.outputs[0].data<T>() + row * size_;
    if constexpr (std::is_same_v<T, float>) {
      if (vector_) {
        NormalizeRow(x, 1, moments.mean, inverse, 0, out, size_, true);
        const RowOperand factor{scale, one_scale_ ? RowOperand::kScalar : RowOperand::kStream};
        const RowOperand offset{bias, one_bias_ ? RowOperand::kScalar : RowOperand::kStream};
        if (bias == nullptr) return ApplyBinary(BinaryFn::kMul, {out}, factor, out, size_);
        return ApplyScaleShift(out, factor, offset, out, size_);
      }
    }
    for (std::int64_t i = 0; i < size_; ++i) {
      const auto value = static_cast<double>(static_cast<C>(x[i]));
      const auto s = static_cast<double>(static_cast<C>(scale[one_scale_ ? 0 : i]));
      const double b =
          bias == nullptr ? 0 : static_cast<double>(static_cast<C>(bias[one_bias_ ? 0 : i]));
      out[i] = static_cast<T>(static_cast<C>((value - moments.mean) * inverse * s + b));
    }
  }

  double epsilon_;
  bool vector_, one_scale_, one_bias_;
  std::int64_t rows_, size_;
};

std::unique_ptr<Kernel> PrepareLayerNormalization(const PrepareContext& context) {
  return Dispatch(context.inputs[0].dtype, FloatTypes(), [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<LayerNormalizationKernel<typename decltype(tag)::type>>(context);
  });
}

}  // namespace

extern const OpDef kLayerNormalizationOp;
const OpDef kLayerNormalizationOp = {
    .type = "LayerNormalization",
    .min_inputs = 2,
    .max_inputs = 3,
    .infer = InferLayerNormalization,
    .prepare = PrepareLayerNormalization,
    .first_opset = 17,
};

}  // namespace tessera
