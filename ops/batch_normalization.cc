// BatchNormalization at inference: y = (x - mean) / sqrt(variance + epsilon) * scale + bias.
// https://onnx.ai/onnx/operators/onnx__BatchNormalization.html
#include <array>
#include <cmath>
#include <vector>

#include "ops/element_loops.h"
#include "ops/elements.h"
#include "ops/elementwise.h"
#include "ops/op.h"
#include "simd/cpu_target.h"

namespace tessera {
namespace {

constexpr std::size_t kScale = 1, kBias = 2, kMean = 3, kVariance = 4;

std::int64_t Channels(const Shape& x) { return x.rank() > 1 ? x[1] : 1; }

void InferBatchNormalization(const InferContext& context) {
  const TensorInfo& x = context.Input(0);
  RequireType(x.dtype, FloatTypes());
  Require(x.shape.rank() >= 1, "X has no dimensions");
  Require(context.node.attributes.Int("training_mode", 0) == 0, "training mode is not supported");
  Require(context.node.attributes.Int("spatial", 1) != 0, "spatial = 0 is not supported");
  Require(context.outputs.size() == 1, "outputs of training are not supported");
  const Shape expected{Channels(x.shape)};
  for (std::size_t i = kScale; i <= kVariance; ++i) {
    const TensorInfo& in = context.Input(i);
    Require(in.shape == expected, "input ", i, " has shape ", in.shape, " for ", expected[0],
            " channels");
    Require(in.dtype == x.dtype || context.node.opset >= 14, "input ", i, " has type ", in.dtype,
            " beside ", x.dtype);
    RequireType(in.dtype, FloatTypes());
  }
  context.SetOutput(0, x.dtype, x.shape);
}

double ElementAt(const TensorView& t, std::int64_t i) {
  return Dispatch(t.dtype, FloatTypes(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return static_cast<double>(static_cast<ComputeType<T>>(t.data<const T>()[i]));
  });
}

// y = x * factor + offset of one channel.
struct Affine {
  double factor, offset;
};

class AffineReader {
 public:
  explicit AffineReader(const OpNode& node)
      : epsilon_(static_cast<double>(node.attributes.Float("epsilon", 1e-5f))) {}
  Affine Read(std::span<const TensorView> inputs, std::int64_t channel) const {
    const auto at = [&](std::size_t i) { return ElementAt(inputs[i], channel); };
    const double factor = at(kScale) / std::sqrt(at(kVariance) + epsilon_);
    return {factor, at(kBias) - at(kMean) * factor};
  }

 private:
  double epsilon_;
};

// Row-major; operands need not be constant.
template <typename T>
class PlanarBatchNormalization final : public Kernel {
 public:
  explicit PlanarBatchNormalization(const PrepareContext& context)
      : reader_(context.node), vector_(!context.reference) {
    const Shape& x = context.inputs[0].shape;
    channels_ = Channels(x);
    planes_ = x.rank() > 1 ? x[0] * channels_ : 1;
    plane_ = planes_ == 0 ? 0 : x.NumElements() / planes_;
  }
  std::string_view name() const override { return "batch_normalization"; }
  bool CanOverwriteInput(std::size_t i) const override { return i == 0; }
  void Run(const RunContext& context) const override {
    const T* in = context.inputs[0].data<const T>();
    T* out = context.outputs[0].data<T>();
    context.parallel.For(planes_, [&](std::int64_t plane, int) {
      const Affine a = reader_.Read(context.inputs, plane % channels_);
      const T* x = in + plane * plane_;
      T* y = out + plane * plane_;
      if constexpr (std::is_same_v<T, float>) {
        if (vector_) {
          const auto factor = static_cast<float>(a.factor), offset = static_cast<float>(a.offset);
          ApplyScaleShift(x, {&factor, RowOperand::kScalar}, {&offset, RowOperand::kScalar}, y,
                          plane_);
          return;
        }
      }
      for (std::int64_t i = 0; i < plane_; ++i) {
        const auto value = static_cast<double>(static_cast<ComputeType<T>>(x[i]));
        y[i] = static_cast<T>(static_cast<ComputeType<T>>(value * a.factor + a.offset));
      }
    });
  }

 private:
  AffineReader reader_;
  bool vector_;
  std::int64_t channels_, planes_, plane_;
};

// Blocked, with constant operands.
class BlockedBatchNormalization final : public Kernel {
 public:
  explicit BlockedBatchNormalization(const PrepareContext& context)
      : loops_(ElementLoops::Blocked(context.inputs[0].shape,
                                     std::array{ElementLoops::BlockedOperand::kSame,
                                                ElementLoops::BlockedOperand::kChannels},
                                     std::array{context.inputs[0].shape, Shape()})) {
    const AffineReader reader(context.node);
    std::array<TensorView, 5> views;
    for (std::size_t i = kScale; i <= kVariance; ++i) views[i] = context.inputs[i].constant->view();
    for (std::int64_t c = 0; c < context.inputs[0].shape[1]; ++c) {
      const Affine a = reader.Read(views, c);
      factors_.push_back(static_cast<float>(a.factor));
      offsets_.push_back(static_cast<float>(a.offset));
    }
    const std::size_t padded = RoundUp(factors_.size(), static_cast<std::size_t>(FloatLanes()));
    factors_.resize(padded);
    offsets_.resize(padded);
  }
  std::string_view name() const override { return "batch_normalization_blocked"; }
  bool CanOverwriteInput(std::size_t i) const override { return i == 0; }
  void Run(const RunContext& context) const override {
    const float* in = context.inputs[0].data<const float>();
    float* out = context.outputs[0].data<float>();
    const auto kind = loops_.IsConstant(2) ? RowOperand::kLanes : RowOperand::kStream;
    loops_.Run(context.parallel, [&](const ElementLoops::Offsets& at, std::int64_t n) {
      ApplyScaleShift(in + at[1], {factors_.data() + at[2], kind}, {offsets_.data() + at[2], kind},
                      out + at[0], n);
    });
  }

 private:
  ElementLoops loops_;
  std::vector<float> factors_, offsets_;  // padded to whole vectors
};

LayoutChoice BatchNormalizationLayouts(const LayoutContext& context) {
  for (std::size_t i = kScale; i <= kVariance; ++i) {
    if (context.inputs[i].constant == nullptr) return {};
  }
  return FollowInput0(context);
}

std::unique_ptr<Kernel> PrepareBatchNormalization(const PrepareContext& context) {
  if (context.inputs[0].layout == Layout::kBlocked) {
    return std::make_unique<BlockedBatchNormalization>(context);
  }
  return Dispatch(context.inputs[0].dtype, FloatTypes(), [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<PlanarBatchNormalization<typename decltype(tag)::type>>(context);
  });
}

}  // namespace

extern const OpDef kBatchNormalizationOp;
const OpDef kBatchNormalizationOp = {
    .type = "BatchNormalization",
    .min_inputs = 5,
    .max_inputs = 5,
    .infer = InferBatchNormalization,
    .prepare = PrepareBatchNormalization,
    .layouts = BatchNormalizationLayouts,
    .field = PointwiseField,
};

}  // namespace tessera
