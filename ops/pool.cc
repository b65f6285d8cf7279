// AveragePool and MaxPool over one or two spatial axes.
// https://onnx.ai/onnx/operators/onnx__AveragePool.html
// https://onnx.ai/onnx/operators/onnx__MaxPool.html
#include <algorithm>
#include <limits>
#include <vector>

#include "ops/elements.h"
#include "ops/op.h"
#include "ops/pool_rows.h"
#include "ops/window.h"

namespace tessera {
namespace {

enum class Pool : std::uint8_t { kAverage, kMax };

using MaxPoolTypes = TypeList<float, double, Half, std::int8_t, std::uint8_t>;

// Height and width; a 1-D pool has height 1.
std::vector<WindowAxis> ReadPoolAxes(const OpNode& node, const Shape& x) {
  Require(x.rank() == 3 || x.rank() == 4, "pools over ", x.rank() - 2,
          " spatial axes are not supported (X ", x, ")");
  Require(node.attributes.Has("kernel_shape"), "attribute 'kernel_shape' is missing");
  std::vector<WindowAxis> axes = ReadWindows(node, x, node.attributes.Ints("kernel_shape"));
  if (axes.size() == 1) axes.insert(axes.begin(), WindowAxis{1, 1, 1, 1, 0, 0, 1});
  return axes;
}

void InferPoolShape(const InferContext& context) {
  const TensorInfo& x = context.Input(0);
  const std::vector<WindowAxis> axes = ReadPoolAxes(context.node, x.shape);
  Shape out = x.shape;
  out[out.rank() - 1] = axes[1].out;
  if (out.rank() == 4) out[2] = axes[0].out;
  context.SetOutput(0, x.dtype, out);
}

void InferAveragePool(const InferContext& context) {
  RequireType(context.Input(0).dtype, FloatTypes());
  InferPoolShape(context);
}

void InferMaxPool(const InferContext& context) {
  RequireType(context.Input(0).dtype, MaxPoolTypes());
  Require(context.outputs.size() == 1, "the output 'Indices' is not supported");
  InferPoolShape(context);
}

// How many of the taps first, first + dilation, ... lie before `end`.
std::int64_t TapsBefore(std::int64_t end, std::int64_t first, const WindowAxis& axis) {
  if (first >= end) return 0;
  return std::min(axis.kernel, (end - first + axis.dilation - 1) / axis.dilation);
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
  PoolGeometry(const OpNode& node, const Shape& x) {
    const std::vector<WindowAxis> axes = ReadPoolAxes(node, x);
    const bool count_pads = node.attributes.Int("count_include_pad", 0) != 0;
    planes = x[0] * x[1];
    height = axes[0].in;
    width = axes[1].in;
    rows = MakeTaps(axes[0], count_pads);
    columns = MakeTaps(axes[1], count_pads);
    row_dilation = axes[0].dilation;
    column_dilation = axes[1].dilation;
  }
  std::int64_t out_height() const { return static_cast<std::int64_t>(rows.size()); }
  std::int64_t out_width() const { return static_cast<std::int64_t>(columns.size()); }

  std::int64_t planes, height, width;  // of the input
  std::vector<PoolTaps> rows, columns;
  std::int64_t row_dilation, column_dilation;
};

// Row-major, any type; also the reference.
template <typename T, Pool pool>
class PlanarPool final : public Kernel {
 public:
  explicit PlanarPool(PoolGeometry geometry) : g_(std::move(geometry)) {}
  std::string_view name() const override {
    return pool == Pool::kMax ? "max_pool" : "average_pool";
  }
  void Run(const RunContext& context) const override {
    const T* in = context.inputs[0].data<const T>();
    T* out = context.outputs[0].data<T>();
    const std::int64_t height = g_.out_height(), width = g_.out_width();
    context.parallel.For(g_.planes * height, [&](std::int64_t task, int) {
      const PoolTaps& rows = g_.rows[static_cast<std::size_t>(task % height)];
      const T* plane = in + task / height * g_.height * g_.width;
      T* to = out + task * width;
      for (std::int64_t x = 0; x < width; ++x) {
        to[x] = Window(plane, rows, g_.columns[static_cast<std::size_t>(x)]);
      }
    });
  }

 private:
  T Window(const T* plane, const PoolTaps& rows, const PoolTaps& columns) const {
    using C = ComputeType<T>;
    C value = pool == Pool::kMax ? std::numeric_limits<C>::lowest() : C{0};
    for (std::int64_t i = 0; i < rows.count; ++i) {
      const T* row = plane + (rows.first + i * g_.row_dilation) * g_.width + columns.first;
      for (std::int64_t j = 0; j < columns.count; ++j) {
        const C v = static_cast<C>(row[j * g_.column_dilation]);
        value = pool == Pool::kMax ? std::max(value, v) : static_cast<C>(value + v);
      }
    }
    if constexpr (pool == Pool::kAverage) {
      value /= static_cast<C>(rows.divisor * columns.divisor);
    }
    return static_cast<T>(value);
  }

  PoolGeometry g_;
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
          g_.rows[static_cast<std::size_t>(y)],
          g_.row_dilation,
          g_.columns.data(),
          g_.column_dilation,
          out_.width,
          out + image * out_.image_stride + block * out_.plane_stride + y * out_.row_stride};
      pool == Pool::kMax ? MaxPoolRow(row) : AveragePoolRow(row);
    });
  }

 private:
  PoolGeometry g_;
  BlockedLayout in_, out_;
};

template <Pool pool>
std::unique_ptr<Kernel> PreparePool(const PrepareContext& context) {
  const TensorInfo& x = context.inputs[0];
  PoolGeometry geometry(context.node, x.shape);
  if (x.layout == Layout::kBlocked) {
    return std::make_unique<BlockedPool<pool>>(std::move(geometry), BlockedLayout(x.shape),
                                               BlockedLayout(context.outputs[0].shape));
  }
  return Dispatch(x.dtype, MaxPoolTypes(), [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<PlanarPool<typename decltype(tag)::type, pool>>(std::move(geometry));
  });
}

std::optional<SpatialField> PoolField(const FieldContext& context, std::size_t) {
  const Shape& x = context.inputs[0].shape;
  if (x.rank() != 4) return std::nullopt;
  const std::vector<WindowAxis> axes = ReadPoolAxes(context.node, x);
  SpatialField field;
  for (std::size_t i = 0; i < 2; ++i) {
    const WindowAxis& axis = axes[i];
    if (!PadsFollowAttributes(context.node, axis.stride)) return std::nullopt;
    field[i] = {1, axis.stride, static_cast<double>(-axis.pad_begin),
                static_cast<double>(axis.extent() - 1 - axis.pad_begin)};
  }
  return field;
}

}  // namespace

extern const OpDef kAveragePoolOp, kMaxPoolOp;
const OpDef kAveragePoolOp = {
    .type = "AveragePool",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferAveragePool,
    .prepare = PreparePool<Pool::kAverage>,
    .layouts = FollowInput0,
    .field = PoolField,
};
const OpDef kMaxPoolOp = {
    .type = "MaxPool",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferMaxPool,
    .prepare = PreparePool<Pool::kMax>,
    .layouts = FollowInput0,
    .field = PoolField,
};

}  // namespace tessera
