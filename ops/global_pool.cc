// GlobalAveragePool, GlobalLpPool and GlobalMaxPool.
// https://onnx.ai/onnx/operators/onnx__GlobalAveragePool.html
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/elements.h"
#include "ops/lp_norm.h"
#include "ops/op.h"
#include "ops/pool_rows.h"

namespace tessera {
namespace {

enum class Pool : std::uint8_t { kAverage, kLp, kMax };

void InferGlobalPool(const InferContext& context) {
  const TensorInfo& x = context.Input(0);
  RequireType(x.dtype, FloatTypes());
  if (context.node.type == "GlobalLpPool") ReadNormOrder(context.node);
  Require(x.shape.rank() >= 2, "X has shape ", x.shape, " instead of [N, C, spatial...]");
  Shape out = x.shape;
  for (int d = 2; d < out.rank(); ++d) out[d] = 1;
  Require(out.NumElements() == 0 || x.shape.NumElements() > 0, "no elements to pool in ", x.shape);
  context.SetOutput(0, x.dtype, out);
}

template <typename T, Pool pool>
class PlanarGlobalPool final : public Kernel {
 public:
  PlanarGlobalPool(const Shape& x, const OpNode& node)
      : planes_(x.NumElements(0, 2)),
        plane_(x.NumElements(2, x.rank())),
        order_(pool == Pool::kLp ? ReadNormOrder(node) : 1) {}
  std::string_view name() const override {
    return pool == Pool::kMax  ? "global_max_pool"
           : pool == Pool::kLp ? "global_lp_pool"
                               : "global_average_pool";
  }
  void Run(const RunContext& context) const override {
    const T* in = context.inputs[0].data<const T>();
    T* out = context.outputs[0].data<T>();
    context.parallel.For(planes_, [&](std::int64_t p, int) {
      const T* x = in + p * plane_;
      using C = ComputeType<T>;
      if constexpr (pool == Pool::kMax) {
        C value = static_cast<C>(x[0]);
        for (std::int64_t i = 1; i < plane_ && !std::isnan(value); ++i) {
          const C next = static_cast<C>(x[i]);
          if (!(next <= value)) value = next;  // or NaN
        }
        out[p] = static_cast<T>(value);
      } else {
        // Independent sums, which the compiler can keep in vectors.
        constexpr std::int64_t kSums = 8;
        double sums[kSums] = {};
        std::int64_t i = 0;
        for (; i + kSums <= plane_; i += kSums) {
          for (std::int64_t k = 0; k < kSums; ++k) {
            sums[k] += Term(x[i + k]);
          }
        }
        for (; i < plane_; ++i) sums[0] += Term(x[i]);
        double total = 0;
        for (double sum : sums) total += sum;
        out[p] = static_cast<T>(static_cast<C>(
            pool == Pool::kLp ? RootOfSum(total, order_) : total / static_cast<double>(plane_)));
      }
    });
  }

 private:
  double Term(T x) const {
    const auto value = static_cast<double>(static_cast<ComputeType<T>>(x));
    return pool == Pool::kLp ? PowerOfMagnitude(value, order_) : value;
  }

  std::int64_t planes_, plane_, order_;
};

template <Pool pool>
class BlockedGlobalPool final : public Kernel {
 public:
  BlockedGlobalPool(const Shape& in, const Shape& out) : in_(in), out_(out) {}
  std::string_view name() const override {
    return pool == Pool::kMax ? "global_max_pool_blocked" : "global_average_pool_blocked";
  }
  void Run(const RunContext& context) const override {
    const float* in = context.inputs[0].data<const float>();
    float* out = context.outputs[0].data<float>();
    context.parallel.For(in_.images * in_.blocks, [&](std::int64_t p, int) {
      const std::int64_t image = p / in_.blocks, block = p % in_.blocks;
      const float* x = in + image * in_.image_stride + block * in_.plane_stride;
      float* y = out + image * out_.image_stride + block * out_.plane_stride;
      if constexpr (pool == Pool::kMax) {
        MaxPlane(x, in_.row_stride, in_.height, in_.width, y);
      } else {
        AveragePlane(x, in_.row_stride, in_.height, in_.width, y);
      }
    });
  }

 private:
  BlockedLayout in_, out_;
};

template <Pool pool>
std::unique_ptr<Kernel> PrepareGlobalPool(const PrepareContext& context) {
  const TensorInfo& x = context.inputs[0];
  if constexpr (pool != Pool::kLp) {
    if (x.layout == Layout::kBlocked) {
      return std::make_unique<BlockedGlobalPool<pool>>(x.shape, context.outputs[0].shape);
    }
  }
  return Dispatch(x.dtype, FloatTypes(), [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<PlanarGlobalPool<typename decltype(tag)::type, pool>>(x.shape,
                                                                                  context.node);
  });
}

template <Pool pool>
constexpr OpDef GlobalPoolOp(std::string_view type) {
  return {
      .type = type,
      .min_inputs = 1,
      .max_inputs = 1,
      .infer = InferGlobalPool,
      .prepare = PrepareGlobalPool<pool>,
      .layouts = pool == Pool::kLp ? nullptr : FollowInput0,
  };
}

}  // namespace

extern const OpDef kGlobalAveragePoolOp, kGlobalLpPoolOp, kGlobalMaxPoolOp;
const OpDef kGlobalAveragePoolOp = GlobalPoolOp<Pool::kAverage>("GlobalAveragePool");
const OpDef kGlobalLpPoolOp = GlobalPoolOp<Pool::kLp>("GlobalLpPool");
const OpDef kGlobalMaxPoolOp = GlobalPoolOp<Pool::kMax>("GlobalMaxPool");

}  // namespace tessera
