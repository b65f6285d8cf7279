// MaxUnpool: puts each element at its index in a tensor of zeros.
// https://onnx.ai/onnx/operators/onnx__MaxUnpool.html
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "ops/checked_math.h"
#include "ops/elements.h"
#include "ops/op.h"
#include "ops/window.h"

namespace tessera {
namespace {

constexpr std::size_t kIndices = 1, kOutputShape = 2;

// The shape that kernel, strides and pads give: the one that the indices refer to.
Shape PooledFromShape(const OpNode& node, const Shape& x) {
  const int axes = x.rank() - 2;
  Require(axes >= 1, "X has shape ", x, " instead of [N, C, spatial...]");
  Require(node.attributes.Has("kernel_shape"), "attribute 'kernel_shape' is missing");
  const std::vector<std::int64_t> kernel = AxisInts(node, "kernel_shape", axes, 1, 1);
  const std::vector<std::int64_t> strides = AxisInts(node, "strides", axes, 1, 1);
  const std::vector<std::int64_t> pads = AxisInts(node, "pads", 2 * axes, 0, 0);
  Shape out = x;
  for (int a = 0; a < axes; ++a) {
    const auto i = static_cast<std::size_t>(a);
    out[a + 2] = CheckedAdd(CheckedMul(x[a + 2] - 1, strides[i]), kernel[i]) - pads[i] -
                 pads[i + static_cast<std::size_t>(axes)];
    Require(out[a + 2] >= 0, "the pads are larger than all that ", x, " is unpooled to");
  }
  return out;
}

void InferMaxUnpool(const InferContext& context) {
  const TensorInfo &x = context.Input(0), &indices = context.Input(kIndices);
  RequireType(x.dtype, FloatTypes());
  Require(indices.dtype == DType::kInt64, "indices of type ", indices.dtype);
  Require(indices.shape == x.shape, "X has shape ", x.shape, ", the indices ", indices.shape);
  Shape out = PooledFromShape(context.node, x.shape);
  if (context.HasInput(kOutputShape)) {
    const Shape wanted(ToInt64s(context.Constant(kOutputShape).view()));
    Require(wanted.rank() == out.rank() &&
                std::equal(wanted.begin(), wanted.end(), out.begin(),
                           [](std::int64_t a, std::int64_t b) { return a >= b; }),
            "output_shape ", wanted, " does not hold ", out);
    out = wanted;
  }
  context.SetOutput(0, x.dtype, out);
}

class MaxUnpoolKernel final : public Kernel {
 public:
  explicit MaxUnpoolKernel(const PrepareContext& context)
      : from_(PooledFromShape(context.node, context.inputs[0].shape)),
        out_(context.outputs[0].shape) {}
  std::string_view name() const override { return "max_unpool"; }
  void Run(const RunContext& context) const override {
    DispatchSize(context.inputs[0].dtype,
                 [&](auto tag) { RunTyped<typename decltype(tag)::type>(context); });
  }

 private:
  template <typename T>
  void RunTyped(const RunContext& context) const {
    const T* in = context.inputs[0].data<const T>();
    const std::int64_t* indices = context.inputs[kIndices].data<const std::int64_t>();
    T* out = context.outputs[0].data<T>();
    std::memset(out, 0, static_cast<std::size_t>(out_.NumElements()) * sizeof(T));
    const std::int64_t limit = from_.NumElements(), n = context.inputs[0].size();
    const bool same = from_ == out_;
    const auto strides = RowMajorStrides(from_), out_strides = RowMajorStrides(out_);
    // In order: where indices repeat, the last one counts.
    for (std::int64_t i = 0; i < n; ++i) {
      std::int64_t rest = indices[i], at = rest;
      Require(rest >= 0 && rest < limit, "index ", rest, " is outside of ", from_);
      if (!same) {
        at = 0;
        for (std::size_t d = 0; d < static_cast<std::size_t>(from_.rank()); ++d) {
          at += rest / strides[d] * out_strides[d];
          rest %= strides[d];
        }
      }
      out[at] = in[i];
    }
  }

  Shape from_, out_;
};

}  // namespace

extern const OpDef kMaxUnpoolOp;
const OpDef kMaxUnpoolOp = {
    .type = "MaxUnpool",
    .min_inputs = 2,
    .max_inputs = 3,
    .infer = InferMaxUnpool,
    .prepare = PrepareKernel<MaxUnpoolKernel>,
    .first_opset = 9,
};

}  // namespace tessera
