// Reductions over any axes: ReduceL1, ReduceL2, ReduceLogSum, ReduceLogSumExp, ReduceMax,
// ReduceMean, ReduceMin, ReduceProd, ReduceSum, ReduceSumSquare.
// https://onnx.ai/onnx/operators/ : the same names
//
// Integers are summed and multiplied modulo 2^64; floats are summed in double precision.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "ops/axis_group.h"
#include "ops/elements.h"
#include "ops/op.h"
#include "ops/row_sums.h"
#include "simd/cpu_target.h"

namespace tessera {
namespace {

enum class Reduction : std::uint8_t {
  kL1,
  kL2,
  kLogSum,
  kLogSumExp,
  kMax,
  kMean,
  kMin,
  kProd,
  kSum,
  kSumSquare,
};

constexpr bool IsExtreme(Reduction fn) { return fn == Reduction::kMax || fn == Reduction::kMin; }

using SumTypes =
    TypeList<float, double, Half, std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>;
using ExtremeTypes = TypeList<float, double, Half, std::int32_t, std::int64_t, std::uint32_t,
                              std::uint64_t, std::int8_t, std::uint8_t>;
using ExtremeTypesWithBool =
    TypeList<float, double, Half, std::int32_t, std::int64_t, std::uint32_t, std::uint64_t,
             std::int8_t, std::uint8_t, bool>;
template <Reduction fn>
using ReduceTypes = std::conditional_t<IsExtreme(fn), ExtremeTypesWithBool, SumTypes>;

// Marks the axes that are reduced: an attribute at first, input 1 since opset 18 (of ReduceSum:
// 13). None given: all, or with noop_with_empty_axes none.
std::vector<bool> ReducedAxes(const OpNode& node, std::span<const TensorInfo> inputs) {
  const int rank = inputs[0].shape.rank();
  std::vector<std::int64_t> axes;
  bool noop = false;
  if (node.opset < (node.type == "ReduceSum" ? 13 : 18)) {
    Require(inputs.size() == 1, "input 'axes' is of later opsets");
    axes = node.attributes.Ints("axes");
  } else {
    Require(!node.attributes.Has("axes"), "attribute 'axes' is of earlier opsets");
    if (inputs.size() > 1 && inputs[1].present) {
      RequireType(inputs[1].dtype, TypeList<std::int64_t>());
      Require(inputs[1].shape.rank() <= 1, "axes have shape ", inputs[1].shape);
      if (inputs[1].constant == nullptr) throw NeedsValue(1);
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

bool KeepsDims(const OpNode& node) { return node.attributes.Int("keepdims", 1) != 0; }

template <Reduction fn>
void InferReduce(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  if (IsExtreme(fn)) {
    RequireType(in.dtype, context.node.opset, ExtremeTypes(), 20, ExtremeTypesWithBool());
    RequireType(in.dtype, context.node.opset, SumTypes(), 12, ExtremeTypesWithBool());
  } else {
    RequireType(in.dtype, SumTypes());
  }
  const std::vector<bool> reduced = ReducedAxes(context.node, context.inputs);
  const bool keep = KeepsDims(context.node);
  Shape out;
  for (int d = 0; d < in.shape.rank(); ++d) {
    const bool drop = reduced[static_cast<std::size_t>(d)];
    if (!drop || keep) out.PushBack(drop ? 1 : in.shape[d]);
  }
  Require(fn != Reduction::kMean || out.NumElements() == 0 || in.shape.NumElements() > 0,
          "no elements to reduce in ", in.shape);
  context.SetOutput(0, in.dtype, out);
}

// log(sum of e^x), kept as the sum of e^(x - highest) so that it does not overflow.
struct LogSumExp {
  double highest = -std::numeric_limits<double>::infinity(), sum = 0;

  void Add(const LogSumExp& other) {
    if (other.sum == 0) return;
    if (sum == 0) {
      *this = other;
    } else if (other.highest <= highest) {
      sum += other.sum * Scale(other.highest - highest, other.highest == highest);
    } else {
      sum = sum * std::exp(highest - other.highest) + other.sum;
      highest = other.highest;
    }
  }
  // Infinities cancel to NaN.
  static double Scale(double difference, bool equal) { return equal ? 1 : std::exp(difference); }
  double Value() const { return highest + std::log(sum); }
};

// How elements of T are reduced: acc starts as None(), takes each element, then gives a T.
template <typename T, Reduction fn>
struct Reducer {
  using C = ComputeType<T>;
  static constexpr bool kInteger = std::is_integral_v<T>;
  static constexpr bool kExact = kInteger && fn != Reduction::kL2 && fn != Reduction::kLogSum;
  using Acc =
      std::conditional_t<fn == Reduction::kLogSumExp, LogSumExp,
                         std::conditional_t<IsExtreme(fn), std::conditional_t<kInteger, C, double>,
                                            std::conditional_t<kExact, std::uint64_t, double>>>;

  static Acc None() {
    if constexpr (IsExtreme(fn)) {
      using Limits = std::numeric_limits<Acc>;
      if (fn == Reduction::kMin) return kInteger ? Limits::max() : Limits::infinity();
      return kInteger ? Limits::lowest() : -Limits::infinity();
    } else if constexpr (fn == Reduction::kProd) {
      return Acc{1};
    } else {
      return Acc{};
    }
  }

  static void Add(Acc& acc, T element) {
    const C x = static_cast<C>(element);
    if constexpr (fn == Reduction::kLogSumExp) {
      const auto value = static_cast<double>(x);
      if (value != -std::numeric_limits<double>::infinity()) acc.Add({value, 1});
    } else if constexpr (IsExtreme(fn)) {
      Merge(acc, static_cast<Acc>(x));
    } else {
      const Acc value = static_cast<Acc>(x);
      switch (fn) {
        case Reduction::kL1:
          acc += x < C{} ? Acc{} - value : value;
          break;
        case Reduction::kL2:
        case Reduction::kSumSquare:
          acc += value * value;
          break;
        case Reduction::kProd:
          acc *= value;
          break;
        default:
          Merge(acc, value);
      }
    }
  }

  template <typename V>
  static bool IsNan(const V& value) {
    if constexpr (std::is_floating_point_v<V>) return std::isnan(value);
    return false;
  }

  // A maximum or minimum is NaN if any value is.
  static void Merge(Acc& acc, const Acc& other) {
    if constexpr (fn == Reduction::kLogSumExp) {
      acc.Add(other);
    } else if constexpr (fn == Reduction::kMax) {
      if (other > acc || IsNan(other)) acc = other;
    } else if constexpr (fn == Reduction::kMin) {
      if (other < acc || IsNan(other)) acc = other;
    } else if constexpr (fn == Reduction::kProd) {
      acc *= other;
    } else {
      acc += other;
    }
  }

  static T Finish(const Acc& acc, std::int64_t count) {
    if constexpr (fn == Reduction::kMean && kInteger) {
      if constexpr (std::is_signed_v<T>) {
        return static_cast<T>(static_cast<std::int64_t>(acc) / count);
      } else {
        return static_cast<T>(acc / static_cast<std::uint64_t>(count));
      }
    } else if constexpr (kInteger && !std::is_same_v<Acc, double> && fn != Reduction::kLogSumExp) {
      return static_cast<T>(acc);
    } else {
      return static_cast<T>(ConvertElement<C>(Real(acc, count)));
    }
  }
  static double Real(const Acc& acc, std::int64_t count) {
    if constexpr (fn == Reduction::kLogSumExp) return acc.Value();
    if constexpr (fn == Reduction::kMean) return acc / static_cast<double>(count);
    if constexpr (fn == Reduction::kL2) return std::sqrt(acc);
    if constexpr (fn == Reduction::kLogSum) return std::log(acc);
    if constexpr (fn != Reduction::kLogSumExp) return static_cast<double>(acc);
  }
};

// The part of a reduction that vector kernels do.
constexpr std::optional<RowSum> VectorSum(Reduction fn) {
  switch (fn) {
    case Reduction::kL1:
      return RowSum::kSumAbs;
    case Reduction::kL2:
    case Reduction::kSumSquare:
      return RowSum::kSumSquare;
    case Reduction::kLogSum:
    case Reduction::kMean:
    case Reduction::kSum:
      return RowSum::kSum;
    case Reduction::kMax:
      return RowSum::kMax;
    case Reduction::kMin:
      return RowSum::kMin;
    default:
      return std::nullopt;
  }
}

template <typename T, Reduction fn>
class ReduceKernel final : public Kernel {
 public:
  explicit ReduceKernel(const PrepareContext& context) {
    const Shape& in = context.inputs[0].shape;
    const std::vector<bool> reduced = ReducedAxes(context.node, context.inputs);
    const auto strides = RowMajorStrides(in);
    for (int d = 0; d < in.rank(); ++d) {
      const auto u = static_cast<std::size_t>(d);
      (reduced[u] ? reduced_ : kept_).Add(in[d], strides[u]);
    }
    count_ = reduced_.Count();
    vector_ = std::is_same_v<T, float> && VectorSum(fn).has_value() && !context.reference;
    if (!kept_.dims.empty() && kept_.strides.back() == 1 && kept_.dims.back() >= kMinColumns) {
      columns_ = kept_.dims.back();
      kept_.dims.pop_back();
      kept_.strides.pop_back();
    } else if (!reduced_.dims.empty()) {
      // The innermost reduced dimension is the inner loop.
      row_ = reduced_.dims.back();
      row_stride_ = reduced_.strides.back();
      reduced_.dims.pop_back();
      reduced_.strides.pop_back();
    }
  }
  std::string_view name() const override { return columns_ > 0 ? "reduce_columns" : "reduce_rows"; }
  void Run(const RunContext& context) const override {
    const T* in = context.inputs[0].data<const T>();
    T* out = context.outputs[0].data<T>();
    const std::int64_t n = context.outputs[0].size();
    if (count_ == 0) {
      // A mean of nothing has been refused.
      if constexpr (fn != Reduction::kMean) std::fill_n(out, n, R::Finish(R::None(), 0));
      return;
    }
    // A unit is one output, or a group of neighbours.
    const std::int64_t groups = columns_ > 0 ? (columns_ + kGroup - 1) / kGroup : 1;
    const std::int64_t units = columns_ > 0 ? kept_.Count() * groups : n;
    const std::int64_t work = count_ * (columns_ > 0 ? std::min(columns_, kGroup) : 1);
    const std::int64_t grain = std::max<std::int64_t>(1, kGrain / work);
    context.parallel.For((units + grain - 1) / grain, [&](std::int64_t task, int) {
      const std::int64_t begin = task * grain, end = std::min(units, begin + grain);
      if (columns_ == 0) {
        T* to = out + begin;
        kept_.ForEach(begin, end, [&](std::int64_t offset) { *to++ = Row(in + offset); });
        return;
      }
      for (std::int64_t unit = begin; unit < end; ++unit) {
        const std::int64_t line = unit / groups, first = unit % groups * kGroup;
        Columns(in + kept_.Offset(line) + first, out + line * columns_ + first,
                std::min(kGroup, columns_ - first));
      }
    });
  }

 private:
  static constexpr std::int64_t kGrain = 16384;  // elements that are worth a task
  static constexpr std::int64_t kMinColumns = 8, kGroup = 256;
  using R = Reducer<T, fn>;
  using Acc = typename R::Acc;

  T Row(const T* in) const {
    Acc total = R::None();
    reduced_.ForEach([&](std::int64_t offset) {
      const T* row = in + offset;
      if constexpr (std::is_same_v<T, float> && VectorSum(fn).has_value()) {
        if (vector_ && row_stride_ == 1)
          return R::Merge(total, ReduceRow(*VectorSum(fn), row, row_));
      }
      Acc sums[4] = {R::None(), R::None(), R::None(), R::None()};  // so that additions overlap
      std::int64_t i = 0;
      for (; i + 4 <= row_; i += 4) {
        for (std::int64_t k = 0; k < 4; ++k) R::Add(sums[k], row[(i + k) * row_stride_]);
      }
      for (; i < row_; ++i) R::Add(sums[0], row[i * row_stride_]);
      R::Merge(sums[0], sums[1]);
      R::Merge(sums[2], sums[3]);
      R::Merge(sums[0], sums[2]);
      R::Merge(total, sums[0]);
    });
    return R::Finish(total, count_);
  }

  // n neighbours, which are contiguous in the input too.
  void Columns(const T* in, T* out, std::int64_t n) const {
    Acc sums[kGroup];
    for (std::int64_t j = 0; j < n; ++j) sums[j] = R::None();
    reduced_.ForEach([&](std::int64_t offset) {
      if constexpr (std::is_same_v<T, float> && VectorSum(fn).has_value()) {
        if (vector_) return AccumulateRow(*VectorSum(fn), in + offset, sums, n);
      }
      for (std::int64_t j = 0; j < n; ++j) R::Add(sums[j], in[offset + j]);
    });
    for (std::int64_t j = 0; j < n; ++j) out[j] = R::Finish(sums[j], count_);
  }

  AxisGroup kept_, reduced_;  // without the columns or rows below
  std::int64_t count_ = 1;
  bool vector_;
  std::int64_t columns_ = 0;               // > 0: contiguous outputs that are reduced side by side
  std::int64_t row_ = 1, row_stride_ = 1;  // else each output reduces rows like this
};

// The operator that does the same to planes in Layout::kBlocked, or null.
constexpr const char* PlaneOperator(Reduction fn) {
  return fn == Reduction::kMean  ? "GlobalAveragePool"
         : fn == Reduction::kMax ? "GlobalMaxPool"
                                 : nullptr;
}

template <Reduction fn>
LayoutChoice ReduceLayouts(const LayoutContext& context) {
  const TensorInfo& in = context.inputs[0];
  if (PlaneOperator(fn) == nullptr || in.layout != Layout::kBlocked || in.shape.NumElements() == 0)
    return {};
  if (ReducedAxes(context.node, context.inputs) != std::vector<bool>{false, false, true, true})
    return {};
  if (KeepsDims(context.node)) return {{Layout::kBlocked}, {Layout::kBlocked}};
  // [N, C] lies in memory as blocked [N, C, 1, 1] does if no channels pad the last block.
  if (in.shape[1] % FloatLanes() != 0) return {};
  return {{Layout::kBlocked}, {Layout::kRowMajor}};
}

template <Reduction fn>
std::unique_ptr<Kernel> PrepareReduce(const PrepareContext& context) {
  const TensorInfo& in = context.inputs[0];
  if constexpr (PlaneOperator(fn) != nullptr) {
    if (in.layout == Layout::kBlocked) {
      TensorInfo out = context.outputs[0];
      out.shape = {in.shape[0], in.shape[1], 1, 1};
      out.layout = Layout::kBlocked;
      return FindOp(PlaneOperator(fn))
          ->prepare({context.node, context.inputs.first(1), {&out, 1}, context.packs, false});
    }
  }
  return Dispatch(in.dtype, ReduceTypes<fn>(), [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<ReduceKernel<typename decltype(tag)::type, fn>>(context);
  });
}

// Pointwise in space as long as only channels or images are reduced.
std::optional<SpatialField> ReduceField(const FieldContext& context, std::size_t) {
  const std::vector<bool> reduced = ReducedAxes(context.node, context.inputs);
  if (reduced.size() != 4 || reduced[2] || reduced[3] || !KeepsDims(context.node))
    return std::nullopt;
  return SpatialField{};
}

template <Reduction fn>
constexpr OpDef ReduceOp(std::string_view type) {
  return {
      .type = type,
      .min_inputs = 1,
      .max_inputs = 2,
      .infer = InferReduce<fn>,
      .prepare = PrepareReduce<fn>,
      .layouts = ReduceLayouts<fn>,
      .field = ReduceField,
  };
}

}  // namespace

extern const OpDef kReduceL1Op, kReduceL2Op, kReduceLogSumExpOp, kReduceLogSumOp, kReduceMaxOp,
    kReduceMeanOp, kReduceMinOp, kReduceProdOp, kReduceSumOp, kReduceSumSquareOp;
const OpDef kReduceL1Op = ReduceOp<Reduction::kL1>("ReduceL1");
const OpDef kReduceL2Op = ReduceOp<Reduction::kL2>("ReduceL2");
const OpDef kReduceLogSumExpOp = ReduceOp<Reduction::kLogSumExp>("ReduceLogSumExp");
const OpDef kReduceLogSumOp = ReduceOp<Reduction::kLogSum>("ReduceLogSum");
const OpDef kReduceMaxOp = ReduceOp<Reduction::kMax>("ReduceMax");
const OpDef kReduceMeanOp = ReduceOp<Reduction::kMean>("ReduceMean");
const OpDef kReduceMinOp = ReduceOp<Reduction::kMin>("ReduceMin");
const OpDef kReduceProdOp = ReduceOp<Reduction::kProd>("ReduceProd");
const OpDef kReduceSumOp = ReduceOp<Reduction::kSum>("ReduceSum");
const OpDef kReduceSumSquareOp = ReduceOp<Reduction::kSumSquare>("ReduceSumSquare");

}  // namespace tessera
