// Softmax, LogSoftmax and Hardmax: over one axis since opset 13, over everything from an axis on
// before.
// https://onnx.ai/onnx/operators/onnx__Softmax.html, onnx__LogSoftmax.html, onnx__Hardmax.html
#include <algorithm>
#include <cmath>

#include "ops/axis_view.h"
#include "ops/elements.h"
#include "ops/elementwise.h"
#include "ops/op.h"
#include "ops/row_sums.h"

namespace tessera {
namespace {

enum class Maximum : std::uint8_t {
  kSoft,     // e^x / sum of e^x
  kLogSoft,  // x - log(sum of e^x)
  kHard,     // 1 at the first of the highest, else 0
};

bool Flattens(const OpNode& node) { return node.opset < 13; }

int Axis(const OpNode& node, int rank) {
  return NormalizeAxis(node.attributes.Int("axis", Flattens(node) ? 1 : -1), rank);
}

void InferSoftmax(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  RequireType(in.dtype, FloatTypes());
  // A scalar has no axis; the one that older versions default to is then out of range as well.
  Axis(context.node, in.shape.rank());
  InferSameAsInput0(context);
}

template <typename T, Maximum fn>
class SoftmaxKernel final : public Kernel {
 public:
  explicit SoftmaxKernel(const PrepareContext& context)
      : vector_(!context.reference), view_(View(context)) {}
  std::string_view name() const override {
    return fn == Maximum::kSoft ? "softmax" : fn == Maximum::kLogSoft ? "log_softmax" : "hardmax";
  }
  bool CanOverwriteInput(std::size_t) const override { return true; }
  void Run(const RunContext& context) const override {
    const T* in = context.inputs[0].data<const T>();
    T* out = context.outputs[0].data<T>();
    if (view_.count == 0) return;
    view_.ForLines(context.parallel, [&](std::int64_t o, std::int64_t column, std::int64_t n, int) {
      const std::int64_t offset = view_.Offset(o, column);
      if constexpr (std::is_same_v<T, float> && fn != Maximum::kHard) {
        if (vector_ && view_.inner == 1) return VectorRow(in + offset, out + offset);
        if (vector_) return VectorColumns(in + offset, out + offset, n);
      }
      Columns(in + offset, out + offset, n);
    });
  }

 private:
  using C = ComputeType<T>;

  static AxisView View(const PrepareContext& context) {
    const Shape& x = context.inputs[0].shape;
    const int axis = Axis(context.node, x.rank());
    return Flattens(context.node) ? AxisView::Flattened(x, axis) : AxisView(x, axis);
  }

  void VectorRow(const float* in, float* out) const {
    const std::int64_t count = view_.count;
    const float highest = *std::max_element(in, in + count);
    ApplyBinary(BinaryFn::kSub, {in}, {&highest, RowOperand::kScalar}, out, count);
    double sum = 0;
    if constexpr (fn == Maximum::kSoft) {
      ApplyUnary({UnaryFn::kExp}, out, out, count);
      for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(out[i]);
      const auto factor = static_cast<float>(1 / sum);
      ApplyBinary(BinaryFn::kMul, {out}, {&factor, RowOperand::kScalar}, out, count);
    } else {
      constexpr std::int64_t kPiece = 256;
      float powers[kPiece];
      for (std::int64_t i = 0; i < count; i += kPiece) {
        const std::int64_t n = std::min(kPiece, count - i);
        ApplyUnary({UnaryFn::kExp}, out + i, powers, n);
        for (std::int64_t k = 0; k < n; ++k) sum += static_cast<double>(powers[k]);
      }
      const auto log = static_cast<float>(std::log(sum));
      ApplyBinary(BinaryFn::kSub, {out}, {&log, RowOperand::kScalar}, out, count);
    }
  }

  void VectorColumns(const float* in, float* out, std::int64_t n) const {
    const std::int64_t count = view_.count, step = view_.inner;
    float highest[AxisView::kMaxColumns], powers[AxisView::kMaxColumns];
    std::copy_n(in, n, highest);
    for (std::int64_t i = 1; i < count; ++i) {
      ApplyBinary(BinaryFn::kMax, {highest}, {in + i * step}, highest, n);
    }
    double sums[AxisView::kMaxColumns] = {};
    for (std::int64_t i = 0; i < count; ++i) {
      float* row = out + i * step;
      float* to = fn == Maximum::kSoft ? row : powers;
      ApplyBinary(BinaryFn::kSub, {in + i * step}, {highest}, row, n);
      ApplyUnary({UnaryFn::kExp}, row, to, n);
      AccumulateRow(RowSum::kSum, to, sums, n);
    }
    float last[AxisView::kMaxColumns];
    for (std::int64_t j = 0; j < n; ++j) {
      last[j] = static_cast<float>(fn == Maximum::kSoft ? 1 / sums[j] : std::log(sums[j]));
    }
    const BinaryFn finish = fn == Maximum::kSoft ? BinaryFn::kMul : BinaryFn::kSub;
    for (std::int64_t i = 0; i < count; ++i) {
      ApplyBinary(finish, {out + i * step}, {last}, out + i * step, n);
    }
  }

  // n lines side by side, the plain way.
  void Columns(const T* in, T* out, std::int64_t n) const {
    const std::int64_t count = view_.count, step = view_.inner;
    C highest[AxisView::kMaxColumns];
    for (std::int64_t j = 0; j < n; ++j) highest[j] = static_cast<C>(in[j]);
    for (std::int64_t i = 1; i < count; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        highest[j] = std::max(highest[j], static_cast<C>(in[i * step + j]));
      }
    }
    if constexpr (fn == Maximum::kHard) {
      bool found[AxisView::kMaxColumns] = {};
      for (std::int64_t i = 0; i < count; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          const bool first = !found[j] && static_cast<C>(in[i * step + j]) == highest[j];
          found[j] = found[j] || first;
          out[i * step + j] = static_cast<T>(first ? C{1} : C{0});
        }
      }
      return;
    }
    double sums[AxisView::kMaxColumns] = {};
    const auto difference = [&](std::int64_t i, std::int64_t j) {
      return static_cast<double>(static_cast<C>(in[i * step + j]) - highest[j]);
    };
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t j = 0; j < n; ++j) sums[j] += std::exp(difference(i, j));
    }
    if constexpr (fn == Maximum::kLogSoft) {
      for (std::int64_t j = 0; j < n; ++j) sums[j] = std::log(sums[j]);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const double x = difference(i, j);
        const double y = fn == Maximum::kSoft ? std::exp(x) / sums[j] : x - sums[j];
        out[i * step + j] = static_cast<T>(static_cast<C>(y));
      }
    }
  }

  bool vector_;
  AxisView view_;
};

template <Maximum fn>
std::unique_ptr<Kernel> PrepareSoftmax(const PrepareContext& context) {
  return Dispatch(context.inputs[0].dtype, FloatTypes(), [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<SoftmaxKernel<typename decltype(tag)::type, fn>>(context);
  });
}

// Pointwise in space along channels.
std::optional<SpatialField> SoftmaxField(const FieldContext& context, std::size_t) {
  const int rank = context.inputs[0].shape.rank();
  if (Flattens(context.node) || rank != 4 || Axis(context.node, rank) > 1) return std::nullopt;
  return SpatialField{};
}

template <Maximum fn>
constexpr OpDef SoftmaxOp(std::string_view type) {
  return {
      .type = type,
      .min_inputs = 1,
      .max_inputs = 1,
      .infer = InferSoftmax,
      .prepare = PrepareSoftmax<fn>,
      .field = SoftmaxField,
  };
}

}  // namespace

extern const OpDef kHardmaxOp, kLogSoftmaxOp, kSoftmaxOp;
const OpDef kHardmaxOp = SoftmaxOp<Maximum::kHard>("Hardmax");
const OpDef kLogSoftmaxOp = SoftmaxOp<Maximum::kLogSoft>("LogSoftmax");
const OpDef kSoftmaxOp = SoftmaxOp<Maximum::kSoft>("Softmax");

}  // namespace tessera
