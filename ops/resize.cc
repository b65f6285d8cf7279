// Resize (opset 10, 11, 13, 18, 19) and its forerunner Upsample (7, 9).
// https://onnx.ai/onnx/operators/onnx__Resize.html
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "ops/elements.h"
#include "ops/op.h"
#include "ops/resize_axis.h"
#include "ops/resize_pixels.h"
#include "ops/resize_rows.h"
#include "simd/aligned_buffer.h"

namespace tessera {
namespace {

void InferResize(const InferContext& context) {
  const TensorInfo& x = context.Input(0);
  RequireType(x.dtype, AllTypes());
  const ResizePlan plan = ReadResize(context.node, context.inputs);
  Require(plan.filter.interpolation == Interpolation::kNearest || x.dtype != DType::kBool,
          "bool can only be resized by mode 'nearest'");
  context.SetOutput(0, x.dtype, plan.OutputShape());
}

std::vector<TapTable> MakeTables(const ResizePlan& plan) {
  std::vector<TapTable> tables;
  for (const ResizeAxis& axis : plan.axes) tables.emplace_back(plan.filter, axis);
  return tables;
}

// Saturates: cubic overshoots the range of integers.
template <typename T>
T FromDouble(double value) {
  if constexpr (std::is_integral_v<T>) {
    // Fractions are cut off, but the weights are floats and may sum up to a little less than 1.
    const double whole = std::nearbyint(value);
    if (std::abs(value - whole) <= 1e-6 * std::max(1.0, std::abs(whole))) value = whole;
  }
  return static_cast<T>(ConvertElement<ComputeType<T>>(value));
}

// Any type, rank, mode and axes: for each output element the sum over the taps of all axes.
template <typename T>
class ReferenceResize final : public Kernel {
 public:
  ReferenceResize(const Shape& in, const Shape& out, const ResizePlan& plan)
      : tables_(MakeTables(plan)),
        in_strides_(RowMajorStrides(in)),
        out_strides_(RowMajorStrides(out)),
        extrapolation_(plan.filter.extrapolation_value) {}

  std::string_view name() const override { return "resize_reference"; }
  void Run(const RunContext& context) const override {
    const T* in = context.inputs[0].data<const T>();
    T* out = context.outputs[0].data<T>();
    const std::int64_t n = context.outputs[0].size();
    constexpr std::int64_t kGrain = 1024;
    context.parallel.For((n + kGrain - 1) / kGrain, [&](std::int64_t task, int) {
      const std::int64_t end = std::min(n, (task + 1) * kGrain);
      for (std::int64_t i = task * kGrain; i < end; ++i) out[i] = Element(in, i);
    });
  }

 private:
  T Element(const T* in, std::int64_t index) const {
    std::array<std::int64_t, Shape::kMaxRank> at{};
    for (std::size_t d = 0; d < tables_.size(); ++d) {
      at[d] = index / out_strides_[d] % tables_[d].out;
      if (tables_[d].outside[static_cast<std::size_t>(at[d])]) {
        return FromDouble<T>(static_cast<double>(extrapolation_));
      }
    }
    if constexpr (std::is_same_v<T, bool>) {
      return in[Nearest(at)];
    } else if constexpr (sizeof(T) == 8 && std::is_integral_v<T>) {
      // Wider than double: nearest must not round.
      if (std::all_of(tables_.begin(), tables_.end(), [](auto& t) { return t.count == 1; })) {
        return in[Nearest(at)];
      }
    }
    return FromDouble<T>(Sum(in, at, 0));
  }

  std::int64_t Source(std::size_t d, std::int64_t at, int k) const {
    const TapTable& table = tables_[d];
    const std::int64_t tap = table.first[static_cast<std::size_t>(at)] + k;
    return std::clamp<std::int64_t>(tap, 0, table.in - 1) * in_strides_[d];
  }

  std::int64_t Nearest(const std::array<std::int64_t, Shape::kMaxRank>& at) const {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < tables_.size(); ++d) offset += Source(d, at[d], 0);
    return offset;
  }

  double Sum(const T* in, const std::array<std::int64_t, Shape::kMaxRank>& at,
             std::size_t d) const {
    if (d == tables_.size()) return static_cast<double>(static_cast<ComputeType<T>>(*in));
    double sum = 0;
    for (int k = 0; k < tables_[d].count; ++k) {
      const std::int64_t i = static_cast<std::int64_t>(k) * tables_[d].out + at[d];
      const auto weight = static_cast<double>(tables_[d].weights[static_cast<std::size_t>(i)]);
      if (weight != 0) sum += weight * Sum(in + Source(d, at[d], k), at, d + 1);
    }
    return sum;
  }

  std::vector<TapTable> tables_;
  std::array<std::int64_t, Shape::kMaxRank> in_strides_, out_strides_;
  float extrapolation_;
};

std::unique_ptr<Kernel> MakeReferenceResize(DType dtype, const Shape& in, const Shape& out,
                                            const ResizePlan& plan) {
  return Dispatch(dtype, AllTypes(), [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<ReferenceResize<typename decltype(tag)::type>>(in, out, plan);
  });
}

// Where the input `roi` is computed at run time, all that depends on it is.
class RoiResize final : public Kernel {
 public:
  explicit RoiResize(ResizePlan plan) : plan_(std::move(plan)) {}
  std::string_view name() const override { return "resize_roi"; }
  void Run(const RunContext& context) const override {
    ResizePlan plan = plan_;
    plan.SetRoi(ToFloats(context.inputs[1]));
    const TensorView& x = context.inputs[0];
    MakeReferenceResize(x.dtype, x.shape, context.outputs[0].shape, plan)->Run(context);
  }

 private:
  ResizePlan plan_;
};

// The last two axes of a tensor, all others taken together.
struct Planes {
  explicit Planes(const Shape& s)
      : count(s.NumElements(0, std::max(0, s.rank() - 2))),
        height(s.rank() >= 2 ? s[s.rank() - 2] : 1),
        width(s.rank() >= 1 ? s[s.rank() - 1] : 1) {}
  std::int64_t count, height, width;
};

template <int kFactor, typename T>
void Repeat(const T* in, T* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    for (int k = 0; k < kFactor; ++k) out[i * kFactor + k] = in[i];
  }
}

// A pixel of kLanes floats of a blocked tensor.
template <int kLanes>
struct Pixel {
  float values[kLanes];
};

// Nearest along the last two axes. T is the size of an element, or a blocked pixel.
template <typename T>
class NearestResize final : public Kernel {
 public:
  // Strides in T.
  struct Side {
    std::int64_t plane_stride, row_stride;
  };
  NearestResize(const TapTable& rows, const TapTable& columns, std::int64_t planes, Side in,
                Side out)
      : rows_(rows.NearestIndices()),
        columns_(columns.NearestIndices()),
        factor_(columns.RepeatFactor()),
        in_width_(columns.in),
        planes_(planes),
        in_(in),
        out_(out) {}

  std::string_view name() const override {
    return factor_ > 0 ? "resize_nearest_repeat" : "resize_nearest";
  }
  void Run(const RunContext& context) const override {
    const T* in = context.inputs[0].data<const T>();
    T* out = context.outputs[0].data<T>();
    const auto height = static_cast<std::int64_t>(rows_.size());
    const auto width = static_cast<std::int64_t>(columns_.size());
    const std::int64_t rows_per_task =
        std::clamp<std::int64_t>(kGrain / std::max<std::int64_t>(1, width), 1, height + 1);
    const std::int64_t tasks = (height + rows_per_task - 1) / rows_per_task;
    context.parallel.For(planes_ * tasks, [&](std::int64_t task, int) {
      const std::int64_t plane = task / tasks, begin = task % tasks * rows_per_task;
      const std::int64_t end = std::min(height, begin + rows_per_task);
      const T* from = in + plane * in_.plane_stride;
      T* to = out + plane * out_.plane_stride;
      for (std::int64_t y = begin; y < end; ++y) {
        const std::int32_t source = rows_[static_cast<std::size_t>(y)];
        T* row = to + y * out_.row_stride;
        if (y > begin && source == rows_[static_cast<std::size_t>(y - 1)]) {
          std::memcpy(row, row - out_.row_stride, static_cast<std::size_t>(width) * sizeof(T));
        } else {
          RunRow(from + source * in_.row_stride, row);
        }
      }
    });
  }

 private:
  static constexpr std::int64_t kGrain = 16384 * 4 / sizeof(T);

  void RunRow(const T* in, T* out) const {
    switch (factor_) {
      case 1:
        std::memcpy(out, in, columns_.size() * sizeof(T));
        return;
      case 2:
        return Repeat<2>(in, out, in_width_);
      case 3:
        return Repeat<3>(in, out, in_width_);
      case 4:
        return Repeat<4>(in, out, in_width_);
      default:
        for (std::size_t x = 0; x < columns_.size(); ++x) out[x] = in[columns_[x]];
    }
  }

  std::vector<std::int32_t> rows_, columns_;
  int factor_;
  std::int64_t in_width_, planes_;
  Side in_, out_;
};

// Linear and cubic along the last two axes, float32: each output row is blended from input rows
// into a scratch row, which is then blended along itself.
class SeparableResize final : public Kernel {
 public:
  SeparableResize(const TapTable& rows, const TapTable& columns, std::int64_t planes,
                  float extrapolation)
      : rows_(rows),
        planes_(planes),
        in_width_(columns.in),
        width_(columns.out),
        column_count_(columns.count),
        extrapolation_(columns.HasOutside() || rows.HasOutside() ? extrapolation : 0),
        keeps_columns_(columns.IsIdentity()),
        column_weights_(columns.weights),
        column_outside_(columns.HasOutside() ? columns.outside : std::vector<char>()) {
    std::int64_t last = in_width_ - 1;
    for (std::int64_t first : columns.first) {
      pad_left_ = std::max(pad_left_, -first);
      last = std::max(last, first + column_count_ - 1);
    }
    pad_right_ = last - (in_width_ - 1);
    for (std::int64_t first : columns.first) {
      column_first_.push_back(static_cast<std::int32_t>(first + pad_left_));
      const auto distance = 2 * static_cast<std::int32_t>(column_first_.size() - 1);
      halves_ = halves_ && column_first_.back() == column_first_[0] + distance;
    }
    halves_ = halves_ && !column_first_.empty();
    for (std::int64_t y = 0; y < rows_.out; ++y) {
      for (int k = 0; k < rows_.count; ++k) {
        row_weights_.push_back(rows_.weights[static_cast<std::size_t>(k * rows_.out + y)]);
      }
    }
  }

  std::string_view name() const override { return "resize_separable"; }
  std::size_t ScratchBytesPerThread() const override {
    // BlendHalvedColumns may read one element more.
    const auto row =
        static_cast<std::size_t>(pad_left_ + in_width_ + pad_right_ + 1) * sizeof(float);
    return PointerBytes() + RoundUp(row, kAlignment);
  }
  void Run(const RunContext& context) const override {
    const float* in = context.inputs[0].data<const float>();
    float* out = context.outputs[0].data<float>();
    const std::int64_t rows_per_task =
        std::clamp<std::int64_t>(kGrain / std::max<std::int64_t>(1, width_), 1, rows_.out + 1);
    const std::int64_t tasks = (rows_.out + rows_per_task - 1) / rows_per_task;
    context.parallel.For(planes_ * tasks, [&](std::int64_t task, int thread) {
      const std::int64_t plane = task / tasks, begin = task % tasks * rows_per_task;
      const std::int64_t end = std::min(rows_.out, begin + rows_per_task);
      auto* scratch = context.Scratch<std::byte>(thread);
      for (std::int64_t y = begin; y < end; ++y) {
        RunRow(in + plane * rows_.in * in_width_, y, out + (plane * rows_.out + y) * width_,
               reinterpret_cast<const float**>(scratch),
               reinterpret_cast<float*>(scratch + PointerBytes()));
      }
    });
  }

 private:
  static constexpr std::int64_t kGrain = 8192;  // output elements that are worth a task

  std::size_t PointerBytes() const {
    return RoundUp(static_cast<std::size_t>(rows_.count) * sizeof(const float*), kAlignment);
  }

  void RunRow(const float* plane, std::int64_t y, float* out, const float** sources,
              float* padded) const {
    if (rows_.outside[static_cast<std::size_t>(y)]) {
      std::fill_n(out, width_, extrapolation_);
      return;
    }
    const std::int64_t first = rows_.first[static_cast<std::size_t>(y)];
    for (int k = 0; k < rows_.count; ++k) {
      sources[k] = plane + std::clamp<std::int64_t>(first + k, 0, rows_.in - 1) * in_width_;
    }
    const float* weights = row_weights_.data() + y * rows_.count;
    if (keeps_columns_) {
      BlendRows(sources, weights, rows_.count, out, width_);
      return;
    }
    float* row = padded + pad_left_;
    BlendRows(sources, weights, rows_.count, row, in_width_);
    std::fill_n(padded, pad_left_, row[0]);
    std::fill_n(row + in_width_, pad_right_, row[in_width_ - 1]);
    if (halves_) {
      const float* from = padded + column_first_[0];
      BlendHalvedColumns(from, column_weights_.data(), column_count_, out, width_);
    } else {
      BlendColumns(padded, column_first_.data(), column_weights_.data(), column_count_, out,
                   width_);
    }
    for (std::size_t x = 0; x < column_outside_.size(); ++x) {
      if (column_outside_[x]) out[x] = extrapolation_;
    }
  }

  TapTable rows_;
  std::int64_t planes_, in_width_, width_;
  int column_count_;
  float extrapolation_;
  bool keeps_columns_;
  std::int64_t pad_left_ = 0, pad_right_ = 0;  // columns that taps reach over the edges
  std::vector<std::int32_t> column_first_;     // into the padded row
  bool halves_ = true;                         // whether they are two apart
  std::vector<float> column_weights_;          // [tap][column]
  std::vector<float> row_weights_;             // [row][tap]
  std::vector<char> column_outside_;
};

template <int kLanes>
std::unique_ptr<Kernel> MakeBlockedNearest(const TapTable& rows, const TapTable& columns,
                                           const BlockedLayout& in, const BlockedLayout& out) {
  using Kernel = NearestResize<Pixel<kLanes>>;
  const auto side = [](const BlockedLayout& b) {
    return typename Kernel::Side{b.plane_stride / kLanes, b.row_stride / kLanes};
  };
  return std::make_unique<Kernel>(rows, columns, in.images * in.blocks, side(in), side(out));
}

std::unique_ptr<Kernel> PrepareResize(const PrepareContext& context) {
  const TensorInfo& x = context.inputs[0];
  const ResizePlan plan = ReadResize(context.node, context.inputs);
  if (!plan.knows_roi) return std::make_unique<RoiResize>(plan);
  const int rank = x.shape.rank();
  const Planes in(x.shape), out(context.outputs[0].shape);
  const bool nearest = plan.filter.interpolation == Interpolation::kNearest;

  bool planar = !context.reference && rank > 0 && (nearest || x.dtype == DType::kFloat32);
  for (int d = 0; d + 2 < rank && planar; ++d) {
    planar = TapTable(plan.filter, plan.axes[static_cast<std::size_t>(d)]).IsIdentity();
  }
  const auto table = [&](int from_end) {
    return rank >= from_end
               ? TapTable(plan.filter, plan.axes[static_cast<std::size_t>(rank - from_end)])
               : TapTable(ResizeFilter(), ResizeAxis());
  };
  if (planar) {
    const TapTable rows = table(2), columns = table(1);
    if (!nearest) {
      return std::make_unique<SeparableResize>(rows, columns, in.count,
                                               plan.filter.extrapolation_value);
    }
    if (x.layout == Layout::kChannelsLast) {
      return MakeNearestPixels(rows, columns, x.shape, context.outputs[0].shape);
    }
    if (x.layout == Layout::kBlocked) {
      const BlockedLayout from(x.shape), to(context.outputs[0].shape);
      switch (from.lanes) {
        case 1:
          return MakeBlockedNearest<1>(rows, columns, from, to);
        case 4:
          return MakeBlockedNearest<4>(rows, columns, from, to);
        case 8:
          return MakeBlockedNearest<8>(rows, columns, from, to);
        default:
          return MakeBlockedNearest<16>(rows, columns, from, to);
      }
    }
    if (!rows.HasOutside() && !columns.HasOutside()) {
      return DispatchSize(x.dtype, [&](auto tag) -> std::unique_ptr<Kernel> {
        using T = typename decltype(tag)::type;
        using Side = typename NearestResize<T>::Side;
        return std::make_unique<NearestResize<T>>(rows, columns, in.count,
                                                  Side{in.height * in.width, in.width},
                                                  Side{out.height * out.width, out.width});
      });
    }
  }
  return MakeReferenceResize(x.dtype, x.shape, context.outputs[0].shape, plan);
}

// Blocked stays blocked, and channels-last too, where whole pixels are repeated.
LayoutChoice ResizeLayouts(const LayoutContext& context) {
  const Layout layout = context.inputs[0].layout;
  if (layout == Layout::kRowMajor) return {};
  const ResizePlan plan = ReadResize(context.node, context.inputs);
  if (plan.filter.interpolation != Interpolation::kNearest || !plan.knows_roi) return {};
  for (std::size_t d = 0; d < 4; ++d) {
    const TapTable table(plan.filter, plan.axes[d]);
    if (table.HasOutside() || (d < 2 && !table.IsIdentity())) return {};
  }
  return {{layout}, {layout}};
}

// Taps relative to p / scale repeat after scale.num output elements.
std::optional<AxisField> FieldOfAxis(const ResizeFilter& filter, const ResizeAxis& axis) {
  constexpr std::int64_t kMaxPeriod = 4096;
  if (axis.scale.den == 0 || axis.scale.num > kMaxPeriod) return std::nullopt;
  switch (filter.coordinates) {
    case Coordinates::kHalfPixel:
    case Coordinates::kAsymmetric:
    case Coordinates::kTfHalfPixelForNn:
      break;
    case Coordinates::kPytorchHalfPixel:
      if (axis.out > 1) break;
      return std::nullopt;
    default:
      return std::nullopt;
  }
  ResizeFilter inner = filter;
  inner.exclude_outside = false;  // what is outside depends on the size
  AxisField field{axis.scale.num, axis.scale.den, 1e9, -1e9};
  for (std::int64_t p = 0; p < axis.scale.num; ++p) {
    const Taps taps = TapsAt(inner, axis, p);
    const double centre = axis.scale.Unscale(static_cast<double>(p));
    for (std::size_t k = 0; k < taps.weights.size(); ++k) {
      if (taps.weights[k] == 0) continue;
      const double offset = static_cast<double>(taps.first) + static_cast<double>(k) - centre;
      field.lo = std::min(field.lo, offset);
      field.hi = std::max(field.hi, offset);
    }
  }
  return field;
}

std::optional<SpatialField> ResizeField(const FieldContext& context, std::size_t i) {
  if (i != 0 || context.inputs[0].shape.rank() != 4) return std::nullopt;
  const ResizePlan plan = ReadResize(context.node, context.inputs);
  const auto height = FieldOfAxis(plan.filter, plan.axes[2]);
  const auto width = FieldOfAxis(plan.filter, plan.axes[3]);
  if (!height || !width) return std::nullopt;
  return SpatialField{*height, *width};
}

}  // namespace

extern const OpDef kResizeOp, kUpsampleOp;
const OpDef kResizeOp = {
    .type = "Resize",
    .min_inputs = 1,
    .max_inputs = 4,
    .infer = InferResize,
    .prepare = PrepareResize,
    .layouts = ResizeLayouts,
    .field = ResizeField,
    .first_opset = 10,
};
const OpDef kUpsampleOp = {
    .type = "Upsample",
    .min_inputs = 1,
    .max_inputs = 2,
    .infer = InferResize,
    .prepare = PrepareResize,
    .layouts = ResizeLayouts,
    .field = ResizeField,
    .last_opset = 9,
};

}  // namespace tessera
