// AveragePool, LpPool and MaxPool over any number of spatial axes.
// https://onnx.ai/onnx/operators/onnx__AveragePool.html
// https://onnx.ai/onnx/operators/onnx__LpPool.html
// https://onnx.ai/onnx/operators/onnx__MaxPool.html
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "ops/elements.h"
#include "ops/lp_norm.h"
#include "ops/op.h"
#include "ops/pool_pixels.h"
#include "ops/pool_rows.h"
#include "ops/window.h"

namespace tessera {
namespace {

enum class Pool : std::uint8_t { kAverage, kLp, kMax };

using MaxPoolTypes = TypeList<float, double, Half, std::int8_t, std::uint8_t>;

constexpr std::size_t kIndices = 1;  // the second output of MaxPool

// Two axes at least: a 1-D pool has a height of 1.
std::vector<WindowAxis> ReadPoolAxes(const OpNode& node, const Shape& x) {
  Require(x.rank() >= 3, "X has shape ", x, " instead of [N, C, spatial...]");
  Require(node.attributes.Has("kernel_shape"), "attribute 'kernel_shape' is missing");
  std::vector<WindowAxis> axes = ReadWindows(node, x, node.attributes.Ints("kernel_shape"));
  if (axes.size() == 1) axes.insert(axes.begin(), WindowAxis{1, 1, 1, 1, 0, 0, 1});
  return axes;
}

Shape PoolShape(const InferContext& context) {
  Shape out = context.Input(0).shape;
  const std::vector<WindowAxis> axes = ReadPoolAxes(context.node, out);
  int d = out.rank();
  for (auto axis = axes.rbegin(); axis != axes.rend() && d > 2; ++axis) out[--d] = axis->out;
  return out;
}

void InferAveragePool(const InferContext& context) {
  RequireType(context.Input(0).dtype, FloatTypes());
  context.SetOutput(0, context.Input(0).dtype, PoolShape(context));
}

void InferLpPool(const InferContext& context) {
  ReadNormOrder(context.node);
  InferAveragePool(context);
}

void InferMaxPool(const InferContext& context) {
  const DType dtype = context.Input(0).dtype;
  RequireType(dtype, context.node.opset, FloatTypes(), 12, MaxPoolTypes());
  const Shape out = PoolShape(context);
  context.SetOutput(0, dtype, out);
  const std::int64_t order = context.node.attributes.Int("storage_order", 0);
  Require(order == 0 || order == 1, "storage_order ", order, " is neither 0 nor 1");
  if (context.outputs.size() > kIndices) {
    Require(context.node.opset >= 8, "the output 'Indices' exists since opset 8");
    context.SetOutput(kIndices, DType::kInt64, out);
  }
}

// The taps of every output element of an axis.
std::vector<PoolTaps> MakeTaps(const WindowAxis& axis, bool count_pads) {
  std::vector<PoolTaps> taps;
  for (std::int64_t i = 0; i < axis.out; ++i) {
    const std::int64_t first = axis.First(i);
    const std::int64_t skipped = TapsBefore(0, first, axis);
    const std::int64_t inside = TapsBefore(axis.in, first, axis) - skipped;
    // ceil_mode lets windows reach beyond the padding; that part is never counted.
    const std::int64_t counted =
        count_pads ? TapsBefore(axis.in + axis.pad_end, first, axis) : inside;
    taps.push_back({static_cast<std::int32_t>(inside > 0 ? first + skipped * axis.dilation : 0),
                    static_cast<std::int32_t>(inside),
                    static_cast<float>(std::max<std::int64_t>(1, counted))});
  }
  return taps;
}

struct PoolGeometry {
  struct Axis {
    std::int64_t in, dilation;
    std::int64_t stride;         // elements from one input element of the axis to the next
    std::vector<PoolTaps> taps;  // of each output element
  };

  PoolGeometry(const OpNode& node, const Shape& x) : planes(x[0] * x[1]) {
    const bool count_pads = node.attributes.Int("count_include_pad", 0) != 0;
    for (const WindowAxis& axis : ReadPoolAxes(node, x)) {
      axes.push_back({axis.in, axis.dilation, 1, MakeTaps(axis, count_pads)});
    }
    for (std::size_t a = axes.size() - 1; a-- > 0;) {
      axes[a].stride = axes[a + 1].stride * axes[a + 1].in;
    }
  }
  std::int64_t in_plane() const { return axes[0].in * axes[0].stride; }
  std::int64_t out_width() const { return static_cast<std::int64_t>(axes.back().taps.size()); }
  // Rows of the output in a plane.
  std::int64_t out_rows() const {
    std::int64_t rows = 1;
    for (std::size_t a = 0; a + 1 < axes.size(); ++a) {
      rows *= static_cast<std::int64_t>(axes[a].taps.size());
    }
    return rows;
  }

  std::int64_t planes;
  std::vector<Axis> axes;
};

// Row-major, any type and rank; also the reference. Rows of the input are folded one by one into a
// row of the output.
template <typename T, Pool pool>
class PlanarPool final : public Kernel {
 public:
  PlanarPool(PoolGeometry geometry, const OpNode& node)
      : g_(std::move(geometry)),
        order_(pool == Pool::kLp ? ReadNormOrder(node) : 1),
        column_major_(node.attributes.Int("storage_order", 0) != 0) {}
  std::string_view name() const override {
    return pool == Pool::kMax ? "max_pool" : pool == Pool::kLp ? "lp_pool" : "average_pool";
  }
  std::size_t ScratchBytesPerThread() const override {
    return static_cast<std::size_t>(g_.out_width()) * sizeof(C);
  }
  void Run(const RunContext& context) const override {
    const T* in = context.inputs[0].data<const T>();
    T* out = context.outputs[0].data<T>();
    const bool wants_indices = context.HasOutput(kIndices);
    const std::int64_t width = g_.out_width(), rows = g_.out_rows();
    context.parallel.For(g_.planes * rows, [&](std::int64_t task, int thread) {
      Row row{.plane = in + task / rows * g_.in_plane(),
              .values = context.Scratch<C>(thread),
              .indices = nullptr,
              .window = {}};
      double divisor = 1;
      std::int64_t rest = task % rows;
      for (std::size_t a = g_.axes.size() - 1; a-- > 0;) {
        const auto out_size = static_cast<std::int64_t>(g_.axes[a].taps.size());
        row.window[a] = &g_.axes[a].taps[static_cast<std::size_t>(rest % out_size)];
        divisor *= static_cast<double>(row.window[a]->divisor);
        rest /= out_size;
      }
      std::fill_n(row.values, width, Start());
      if (wants_indices) {
        row.indices = context.outputs[kIndices].data<std::int64_t>() + task * width;
        std::fill_n(row.indices, width, -1);
      }
      Fold(row, 0, 0);
      for (std::int64_t x = 0; x < width; ++x) out[task * width + x] = Finish(row, x, divisor);
      if (wants_indices) FinishIndices(row.indices, task / rows);
    });
  }

 private:
  using C = ComputeType<T>;

  struct Row {
    const T* plane;
    C* values;              // [out_width]
    std::int64_t* indices;  // of the highest values within the plane; null if nobody asks
    std::array<const PoolTaps*, Shape::kMaxRank> window;  // of the axes before the last
  };

  static C Start() {
    if constexpr (pool != Pool::kMax) return C{0};
    if constexpr (std::is_floating_point_v<C>) return -std::numeric_limits<C>::infinity();
    return std::numeric_limits<C>::lowest();
  }

  // The part of the window that lies at `offset` of the plane and at all taps of axes from `a` on.
  void Fold(const Row& row, std::size_t a, std::int64_t offset) const {
    if (a + 1 == g_.axes.size()) return FoldColumns(row, offset);
    const PoolTaps& taps = *row.window[a];
    for (std::int64_t i = 0; i < taps.count; ++i) {
      Fold(row, a + 1, offset + (taps.first + i * g_.axes[a].dilation) * g_.axes[a].stride);
    }
  }

  void FoldColumns(const Row& row, std::int64_t offset) const {
    const std::vector<PoolTaps>& columns = g_.axes.back().taps;
    const std::int64_t step = g_.axes.back().dilation;
    const T* in = row.plane + offset;
    for (std::size_t x = 0; x < columns.size(); ++x) {
      C value = row.values[x];
      for (std::int64_t i = 0, at = columns[x].first; i < columns[x].count; ++i, at += step) {
        const C v = static_cast<C>(in[at]);
        if constexpr (pool == Pool::kMax) {
          // The first element counts even if it is as low as can be.
          if (row.indices != nullptr && (row.indices[x] < 0 || v > value)) {
            row.indices[x] = offset + at;
          }
          value = std::max(value, v);
        } else if constexpr (pool == Pool::kLp) {
          value += PowerOfMagnitude(v, order_);
        } else {
          value += v;
        }
      }
      row.values[x] = value;
    }
  }

  T Finish(const Row& row, std::int64_t x, double divisor) const {
    const C value = row.values[x];
    if constexpr (pool == Pool::kLp) return static_cast<T>(RootOfSum(value, order_));
    if constexpr (pool == Pool::kAverage) {
      const auto columns =
          static_cast<double>(g_.axes.back().taps[static_cast<std::size_t>(x)].divisor);
      return static_cast<T>(value / static_cast<C>(divisor * columns));
    }
    return static_cast<T>(value);
  }

  // From places in the plane to those in the tensor. A column-major tensor has its first spatial
  // axis innermost. A window that lies in the pads alone keeps -1.
  void FinishIndices(std::int64_t* indices, std::int64_t plane) const {
    for (std::int64_t x = 0; x < g_.out_width(); ++x) {
      std::int64_t rest = indices[x];
      if (rest < 0) continue;
      if (column_major_) {
        std::int64_t index = 0, stride = 1;
        for (const PoolGeometry::Axis& axis : g_.axes) {
          index += rest / axis.stride * stride;
          rest %= axis.stride;
          stride *= axis.in;
        }
        rest = index;
      }
      indices[x] = plane * g_.in_plane() + rest;
    }
  }

  PoolGeometry g_;
  std::int64_t order_;
  bool column_major_;
};

template <Pool pool>
class BlockedPool final : public Kernel {
 public:
  BlockedPool(PoolGeometry geometry, const BlockedLayout& in, const BlockedLayout& out)
      : g_(std::move(geometry)), in_(in), out_(out) {}
  std::string_view name() const override {
    return pool == Pool::kMax ? "max_pool_blocked" : "average_pool_blocked";
  }
  void Run(const RunContext& context) const override {
    const float* in = context.inputs[0].data<const float>();
    float* out = context.outputs[0].data<float>();
    context.parallel.For(out_.images * out_.blocks * out_.height, [&](std::int64_t task, int) {
      const std::int64_t y = task % out_.height, plane = task / out_.height;
      const std::int64_t image = plane / out_.blocks, block = plane % out_.blocks;
      const BlockedPoolRow row{
          in + image * in_.image_stride + block * in_.plane_stride,
          in_.row_stride,
          g_.axes[0].taps[static_cast<std::size_t>(y)],
          g_.axes[0].dilation,
          g_.axes[1].taps.data(),
          g_.axes[1].dilation,
          out_.width,
          out + image * out_.image_stride + block * out_.plane_stride + y * out_.row_stride};
      pool == Pool::kMax ? MaxPoolRow(row) : AveragePoolRow(row);
    });
  }

 private:
  PoolGeometry g_;
  BlockedLayout in_, out_;
};

// MaxPool of uint8, channels-last.
class PixelMaxPool final : public Kernel {
 public:
  PixelMaxPool(PoolGeometry geometry, const Shape& in, const Shape& out)
      : g_(std::move(geometry)), in_(in), out_(out) {}
  std::string_view name() const override { return "max_pool_pixels"; }
  void Run(const RunContext& context) const override {
    const auto* in = context.inputs[0].data<const std::uint8_t>();
    auto* out = context.outputs[0].data<std::uint8_t>();
    context.parallel.For(out_.images * out_.height, [&](std::int64_t task, int) {
      const std::int64_t image = task / out_.height, y = task % out_.height;
      MaxPoolPixels({in + image * in_.image_stride, in_.row_stride, in_.pixel_stride,
                     g_.axes[0].taps[static_cast<std::size_t>(y)], g_.axes[0].dilation,
                     g_.axes[1].taps.data(), g_.axes[1].dilation, out_.width,
                     out + task * out_.row_stride});
    });
  }

 private:
  PoolGeometry g_;
  ChannelsLastLayout in_, out_;
};

template <Pool pool>
std::unique_ptr<Kernel> PreparePool(const PrepareContext& context) {
  const TensorInfo& x = context.inputs[0];
  PoolGeometry geometry(context.node, x.shape);
  if constexpr (pool != Pool::kLp) {
    if (x.layout == Layout::kBlocked) {
      return std::make_unique<BlockedPool<pool>>(std::move(geometry), BlockedLayout(x.shape),
                                                 BlockedLayout(context.outputs[0].shape));
    }
  }
  if (pool == Pool::kMax && x.layout == Layout::kChannelsLast) {
    return std::make_unique<PixelMaxPool>(std::move(geometry), x.shape, context.outputs[0].shape);
  }
  using Types = std::conditional_t<pool == Pool::kMax, MaxPoolTypes, FloatTypes>;
  return Dispatch(x.dtype, Types(), [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<PlanarPool<typename decltype(tag)::type, pool>>(std::move(geometry),
                                                                            context.node);
  });
}

LayoutChoice MaxPoolLayouts(const LayoutContext& context) {
  if (context.outputs.size() > kIndices) return {};
  const TensorInfo& x = context.inputs[0];
  if (x.layout == Layout::kChannelsLast && x.dtype == DType::kUint8) {
    return {{Layout::kChannelsLast}, {Layout::kChannelsLast}};
  }
  return FollowInput0(context);
}

std::optional<SpatialField> PoolField(const FieldContext& context, std::size_t) {
  const Shape& x = context.inputs[0].shape;
  if (x.rank() != 4) return std::nullopt;
  return WindowField(context.node, ReadPoolAxes(context.node, x));
}

}  // namespace

extern const OpDef kAveragePoolOp, kLpPoolOp, kMaxPoolOp;
const OpDef kAveragePoolOp = {
    .type = "AveragePool",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferAveragePool,
    .prepare = PreparePool<Pool::kAverage>,
    .layouts = FollowInput0,
    .field = PoolField,
};
const OpDef kLpPoolOp = {
    .type = "LpPool",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferLpPool,
    .prepare = PreparePool<Pool::kLp>,
    .field = PoolField,
};
const OpDef kMaxPoolOp = {
    .type = "MaxPool",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferMaxPool,
    .prepare = PreparePool<Pool::kMax>,
    .layouts = MaxPoolLayouts,
    .field = PoolField,
};

}  // namespace tessera
