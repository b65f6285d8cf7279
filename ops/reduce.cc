// ReduceMean over any axes.
// https://onnx.ai/onnx/operators/onnx__ReduceMean.html
#include <algorithm>
#include <array>
#include <vector>

#include "ops/elements.h"
#include "ops/op.h"

namespace tessera {
namespace {

using ReduceTypes =
    TypeList<float, double, Half, std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>;

// Marks the axes that are reduced: an attribute before opset 18, input 1 since. None given: all,
// or with noop_with_empty_axes none.
std::vector<bool> ReducedAxes(const OpNode& node, std::span<const TensorInfo> inputs) {
  const int rank = inputs[0].shape.rank();
  std::vector<std::int64_t> axes;
  bool noop = false;
  if (node.opset < 18) {
    axes = node.attributes.Ints("axes");
  } else {
    if (inputs.size() > 1 && inputs[1].present) {
      Require(inputs[1].constant != nullptr,
              "input 'axes' has to be a constant (or computed from shapes alone)");
      axes = ToInt64s(inputs[1].constant->view());
    }
    noop = node.attributes.Int("noop_with_empty_axes", 0) != 0;
  }
  std::vector<bool> reduced(static_cast<std::size_t>(rank), axes.empty() && !noop);
  for (const std::int64_t axis : axes) {
    reduced[static_cast<std::size_t>(NormalizeAxis(axis, rank))] = true;
  }
  return reduced;
}

void InferReduce(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  RequireType(in.dtype, ReduceTypes());
  const std::vector<bool> reduced = ReducedAxes(context.node, context.inputs);
  const bool keep = context.node.attributes.Int("keepdims", 1) != 0;
  Shape out;
  for (int d = 0; d < in.shape.rank(); ++d) {
    const bool drop = reduced[static_cast<std::size_t>(d)];
    if (!drop || keep) out.PushBack(drop ? 1 : in.shape[d]);
  }
  Require(out.NumElements() == 0 || in.shape.NumElements() > 0, "no elements to reduce in ",
          in.shape);
  context.SetOutput(0, in.dtype, out);
}

// Dimensions and strides of some of the axes, neighbours merged.
struct AxisGroup {
  std::vector<std::int64_t> dims, strides;

  void Add(std::int64_t dim, std::int64_t stride) {
    if (!dims.empty() && strides.back() == dim * stride) {
      dims.back() *= dim;
      strides.back() = stride;
    } else if (dim != 1) {
      dims.push_back(dim);
      strides.push_back(stride);
    }
  }
  std::int64_t Count() const {
    std::int64_t n = 1;
    for (const std::int64_t d : dims) n *= d;
    return n;
  }
  std::int64_t Offset(std::int64_t index) const {
    std::int64_t offset = 0;
    for (std::size_t d = dims.size(); d-- > 0; index /= dims[d]) {
      offset += index % dims[d] * strides[d];
    }
    return offset;
  }
};

template <typename T>
class ReduceMeanKernel final : public Kernel {
 public:
  explicit ReduceMeanKernel(const PrepareContext& context) {
    const Shape& in = context.inputs[0].shape;
    const std::vector<bool> reduced = ReducedAxes(context.node, context.inputs);
    const auto strides = RowMajorStrides(in);
    for (int d = 0; d < in.rank(); ++d) {
      const auto u = static_cast<std::size_t>(d);
      (reduced[u] ? reduced_ : kept_).Add(in[d], strides[u]);
    }
    count_ = reduced_.Count();
    // The innermost reduced dimension is the inner loop.
    if (!reduced_.dims.empty()) {
      row_ = reduced_.dims.back();
      row_stride_ = reduced_.strides.back();
      reduced_.dims.pop_back();
      reduced_.strides.pop_back();
    }
  }
  std::string_view name() const override { return "reduce_mean"; }
  void Run(const RunContext& context) const override {
    const T* in = context.inputs[0].data<const T>();
    T* out = context.outputs[0].data<T>();
    const std::int64_t n = context.outputs[0].size();
    const std::int64_t grain =
        std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, count_));
    context.parallel.For((n + grain - 1) / grain, [&](std::int64_t task, int) {
      const std::int64_t end = std::min(n, (task + 1) * grain);
      for (std::int64_t i = task * grain; i < end; ++i) out[i] = Mean(in + kept_.Offset(i));
    });
  }

 private:
  static constexpr std::int64_t kGrain = 16384;  // elements that are worth a task
  // Integer sums are exact; they wrap around rather than overflow.
  using Sum = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;

  T Mean(const T* in) const {
    const std::int64_t rows = count_ / row_;
    Sum total{};
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* row = in + reduced_.Offset(r);
      Sum sums[4] = {};  // independent, so that additions overlap
      std::int64_t i = 0;
      for (; i + 4 <= row_; i += 4) {
        for (std::int64_t k = 0; k < 4; ++k) sums[k] += At(row, i + k);
      }
      for (; i < row_; ++i) sums[0] += At(row, i);
      total += (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
    if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_signed_v<T>) {
        return static_cast<T>(static_cast<std::int64_t>(total) / count_);
      } else {
        return static_cast<T>(total / static_cast<std::uint64_t>(count_));
      }
    } else {
      return static_cast<T>(static_cast<ComputeType<T>>(total / static_cast<double>(count_)));
    }
  }

  Sum At(const T* row, std::int64_t i) const {
    return static_cast<Sum>(static_cast<ComputeType<T>>(row[i * row_stride_]));
  }

  AxisGroup kept_, reduced_;
  std::int64_t count_ = 1, row_ = 1, row_stride_ = 1;
};

std::unique_ptr<Kernel> PrepareReduceMean(const PrepareContext& context) {
  return Dispatch(context.inputs[0].dtype, ReduceTypes(), [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<ReduceMeanKernel<typename decltype(tag)::type>>(context);
  });
}

}  // namespace

extern const OpDef kReduceMeanOp;
const OpDef kReduceMeanOp = {
    .type = "ReduceMean",
    .min_inputs = 1,
    .max_inputs = 2,
    .infer = InferReduce,
    .prepare = PrepareReduceMean,
};

}  // namespace tessera
