// GroupNormalization and InstanceNormalization: the elements of a group of channels (of each
// channel) of an image are given mean 0 and variance 1, then each channel a scale and an offset.
// https://onnx.ai/onnx/operators/onnx__GroupNormalization.html, onnx__InstanceNormalization.html
#include <cmath>

#include "ops/elements.h"
#include "ops/moments.h"
#include "ops/op.h"

namespace tessera {
namespace {

// Number of groups of channels: as the attribute says, or each channel on its own.
std::int64_t Groups(const OpNode& node, const Shape& x) {
  return node.type == "GroupNormalization" ? node.attributes.Int("num_groups", 0) : x[1];
}

// Whether scale and bias have an element for each group, rather than for each channel.
bool IsScaledByGroup(const OpNode& node) {
  return node.type == "GroupNormalization" && node.opset < 21;
}

void InferGroupNormalization(const InferContext& context) {
  const TensorInfo& x = context.Input(0);
  RequireType(x.dtype, FloatTypes());
  Require(x.shape.rank() >= 2, "X has shape ", x.shape, " instead of [N, C, ...]");
  const std::int64_t groups = Groups(context.node, x.shape);
  Require(groups >= 1 || x.shape[1] == 0, "num_groups is ", groups);
  Require(groups == 0 || x.shape[1] % groups == 0, x.shape[1], " channels do not make ", groups,
          " groups");
  const std::int64_t stash = context.node.attributes.Int("stash_type", 1);
  Require(stash == 1, "stash_type ", stash, " is not supported");
  const Shape expected{IsScaledByGroup(context.node) ? groups : x.shape[1]};
  for (std::size_t i = 1; i <= 2; ++i) {
    const TensorInfo& in = context.Input(i);
    Require(in.shape == expected, i == 1 ? "scale" : "bias", " has shape ", in.shape,
            " instead of ", expected);
    Require(in.dtype == x.dtype, "operands of types ", x.dtype, " and ", in.dtype);
  }
  InferSameAsInput0(context);
}

template <typename T>
class GroupNormalizationKernel final : public Kernel {
 public:
  explicit GroupNormalizationKernel(const PrepareContext& context)
      : epsilon_(static_cast<double>(context.node.attributes.Float("epsilon", 1e-5f))),
        by_group_(IsScaledByGroup(context.node)),
        vector_(!context.reference) {
    const Shape& x = context.inputs[0].shape;
    images_ = x[0];
    groups_ = Groups(context.node, x);
    channels_ = groups_ == 0 ? 0 : x[1] / groups_;
    plane_ = x.NumElements(2, x.rank());
  }
  std::string_view name() const override { return "group_normalization"; }
  bool CanOverwriteInput(std::size_t i) const override { return i == 0; }
  void Run(const RunContext& context) const override {
    if (channels_ * plane_ == 0) return;
    const T* in = context.inputs[0].data<const T>();
    const T* scale = context.inputs[1].data<const T>();
    const T* bias = context.inputs[2].data<const T>();
    T* out = context.outputs[0].data<T>();
    context.parallel.For(images_ * groups_, [&](std::int64_t index, int) {
      const std::int64_t group = index % groups_, size = channels_ * plane_;
      const Moments moments = RowMoments(in + index * size, size, vector_);
      const double inverse = 1 / std::sqrt(moments.variance + epsilon_);
      for (std::int64_t c = 0; c < channels_; ++c) {
        const std::int64_t at = by_group_ ? group : group * channels_ + c;
        const std::int64_t plane = index * size + c * plane_;
        NormalizeRow(in + plane, 1, moments.mean, Real(scale[at]) * inverse, Real(bias[at]),
                     out + plane, plane_, vector_);
      }
    });
  }

 private:
  static double Real(T x) { return static_cast<double>(static_cast<ComputeType<T>>(x)); }

  double epsilon_;
  bool by_group_, vector_;
  std::int64_t images_, groups_, channels_ /* of a group */, plane_;
};

std::unique_ptr<Kernel> PrepareGroupNormalization(const PrepareContext& context) {
  return Dispatch(context.inputs[0].dtype, FloatTypes(), [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<GroupNormalizationKernel<typename decltype(tag)::type>>(context);
  });
}

constexpr OpDef GroupNormalizationOp(std::string_view type, int first_opset) {
  return {
      .type = type,
      .min_inputs = 3,
      .max_inputs = 3,
      .infer = InferGroupNormalization,
      .prepare = PrepareGroupNormalization,
      .first_opset = first_opset,
  };
}

}  // namespace

extern const OpDef kGroupNormalizationOp, kInstanceNormalizationOp;
const OpDef kGroupNormalizationOp = GroupNormalizationOp("GroupNormalization", 18);
const OpDef kInstanceNormalizationOp = GroupNormalizationOp("InstanceNormalization", 1);

}  // namespace tessera
