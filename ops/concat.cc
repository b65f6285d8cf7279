// Concat along any axis, of any type.
// https://onnx.ai/onnx/operators/onnx__Concat.html
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "ops/op.h"
#include "simd/cpu_target.h"

namespace tessera {
namespace {

void InferConcat(const InferContext& context) {
  const TensorInfo& first = context.Input(0);
  Require(context.node.attributes.Has("axis"), "attribute 'axis' is missing");
  const int axis = NormalizeAxis(context.node.attributes.Int("axis", 0), first.shape.rank());
  Shape out = first.shape;
  for (std::size_t i = 1; i < context.inputs.size(); ++i) {
    const TensorInfo& in = context.Input(i);
    Require(in.dtype == first.dtype, "inputs of types ", first.dtype, " and ", in.dtype);
    Shape expected = first.shape;
    if (in.shape.rank() == expected.rank()) expected[axis] = in.shape[axis];
    Require(in.shape == expected, "shapes ", first.shape, " and ", in.shape,
            " differ outside of axis ", axis);
    out[axis] += in.shape[axis];
  }
  context.SetOutput(0, first.dtype, out);
}

// Channels-last if half of the inputs come so.
LayoutChoice ConcatByteLayouts(const LayoutContext& context) {
  const std::size_t n = context.inputs.size();
  const auto last = static_cast<std::size_t>(
      std::count_if(context.inputs.begin(), context.inputs.end(),
                    [](const TensorInfo& in) { return in.layout == Layout::kChannelsLast; }));
  if (2 * last < n || last == 0) return {};
  return {std::vector<Layout>(n, Layout::kChannelsLast), {Layout::kChannelsLast}};
}

// Blocked inputs can be put together whole when every seam lies between two channel blocks.
LayoutChoice ConcatLayouts(const LayoutContext& context) {
  const std::size_t n = context.inputs.size();
  if (SizeOf(context.inputs[0].dtype) == 1) return ConcatByteLayouts(context);
  if (context.inputs[0].shape.rank() != 4 || context.inputs[0].dtype != DType::kFloat32) return {};
  if (NormalizeAxis(context.node.attributes.Int("axis", 0), 4) != 1) return {};
  std::size_t blocked = 0;
  for (std::size_t i = 0; i < n; ++i) {
    blocked += context.inputs[i].layout == Layout::kBlocked ? 1 : 0;
    if (i + 1 < n && context.inputs[i].shape[1] % FloatLanes() != 0) return {};
  }
  if (2 * blocked < n || blocked == 0) return {};
  return {std::vector<Layout>(n, Layout::kBlocked), {Layout::kBlocked}};
}

// For each index before the axis, each input gives one row of bytes to the output.
class ConcatKernel final : public Kernel {
 public:
  explicit ConcatKernel(const PrepareContext& context) {
    const Shape& out = context.outputs[0].shape;
    const int axis = NormalizeAxis(context.node.attributes.Int("axis", 0), out.rank());
    const std::int64_t rows = Rows(out, axis, context.outputs[0].layout);
    std::vector<std::int64_t> row_bytes;
    for (const TensorInfo& in : context.inputs) {
      const auto bytes =
          static_cast<std::int64_t>(StorageBytes(in.dtype, in.shape, context.outputs[0].layout));
      row_bytes.push_back(bytes / std::max<std::int64_t>(1, rows));
      out_row_bytes_ += row_bytes.back();
    }
    std::int64_t at = 0;
    for (std::size_t i = 0; i < row_bytes.size(); at += row_bytes[i++]) {
      if (row_bytes[i] == 0) continue;
      const std::int64_t group = std::max<std::int64_t>(1, kTaskBytes / row_bytes[i]);
      const std::int64_t piece = std::min(row_bytes[i], kTaskBytes);
      for (std::int64_t r = 0; r < rows; r += group) {
        for (std::int64_t b = 0; b < row_bytes[i]; b += piece) {
          tasks_.push_back({i, r, std::min(rows, r + group), row_bytes[i], b, at + b,
                            std::min(piece, row_bytes[i] - b)});
        }
      }
    }
  }

  std::string_view name() const override { return "concat"; }
  void Run(const RunContext& context) const override {
    auto* out = context.outputs[0].data<std::byte>();
    context.parallel.For(static_cast<std::int64_t>(tasks_.size()), [&](std::int64_t i, int) {
      const Task& t = tasks_[static_cast<std::size_t>(i)];
      const auto* in = context.inputs[t.input].data<const std::byte>();
      for (std::int64_t r = t.row_begin; r < t.row_end; ++r) {
        std::memcpy(out + r * out_row_bytes_ + t.out_begin, in + r * t.in_row_bytes + t.in_begin,
                    static_cast<std::size_t>(t.bytes));
      }
    });
  }

 private:
  // Of the output, before `axis` (not the channels, if they are last).
  static std::int64_t Rows(const Shape& out, int axis, Layout layout) {
    if (layout == Layout::kChannelsLast && axis > 1) return out[0] * out.NumElements(2, axis);
    return out.NumElements(0, axis);
  }

  static constexpr std::int64_t kTaskBytes = 256 * 1024;
  struct Task {
    std::size_t input;
    std::int64_t row_begin, row_end, in_row_bytes, in_begin, out_begin, bytes;
  };
  std::int64_t out_row_bytes_ = 0;
  std::vector<Task> tasks_;
};

// The channels of a pixel. Sizes that are known make moves of what would be calls.
void CopyBytes(const std::uint8_t* from, std::int64_t n, std::uint8_t* to) {
  std::int64_t i = 0;
  const auto copy = [&](auto size) {
    std::memcpy(to + i, from + i, size);
    i += static_cast<std::int64_t>(size());
  };
  while (i + 16 <= n) copy(std::integral_constant<std::size_t, 16>());
  if (n & 8) copy(std::integral_constant<std::size_t, 8>());
  if (n & 4) copy(std::integral_constant<std::size_t, 4>());
  while (i < n) copy(std::integral_constant<std::size_t, 1>());
}

// Of channels that are last: pixel by pixel.
class ConcatPixelsKernel final : public Kernel {
 public:
  explicit ConcatPixelsKernel(const PrepareContext& context) : out_(context.outputs[0].shape) {
    for (const TensorInfo& in : context.inputs) inputs_.emplace_back(in.shape);
  }

  std::string_view name() const override { return "concat_pixels"; }
  void Run(const RunContext& context) const override {
    const std::int64_t pixels = out_.images * out_.height * out_.width;
    constexpr std::int64_t kPixelsPerTask = 2048;
    const std::int64_t tasks = (pixels + kPixelsPerTask - 1) / kPixelsPerTask;
    context.parallel.For(tasks, [&](std::int64_t task, int) {
      const std::int64_t first = task * kPixelsPerTask;
      const std::int64_t count = std::min(kPixelsPerTask, pixels - first);
      auto* out = context.outputs[0].data<std::uint8_t>() + first * out_.pixel_stride;
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        const ChannelsLastLayout& in = inputs_[i];
        const auto* from = context.inputs[i].data<const std::uint8_t>() + first * in.pixel_stride;
        for (std::int64_t x = 0; x < count; ++x) {
          CopyBytes(from + x * in.pixel_stride, in.channels, out + x * out_.pixel_stride);
        }
        out += in.channels;
      }
    });
  }

 private:
  ChannelsLastLayout out_;
  std::vector<ChannelsLastLayout> inputs_;
};

std::unique_ptr<Kernel> PrepareConcat(const PrepareContext& context) {
  const TensorInfo& out = context.outputs[0];
  if (out.layout == Layout::kChannelsLast &&
      NormalizeAxis(context.node.attributes.Int("axis", 0), 4) == 1) {
    return std::make_unique<ConcatPixelsKernel>(context);
  }
  return std::make_unique<ConcatKernel>(context);
}

std::optional<SpatialField> ConcatField(const FieldContext& context, std::size_t) {
  const int rank = context.outputs[0].shape.rank();
  const int axis = NormalizeAxis(context.node.attributes.Int("axis", 0), rank);
  if (axis >= rank - 2) return std::nullopt;
  for (const TensorInfo& in : context.inputs) {
    if (in.constant) return std::nullopt;  // its pixels are tied to their places
  }
  return SpatialField{};
}

}  // namespace

extern const OpDef kConcatOp;
const OpDef kConcatOp = {
    .type = "Concat",
    .min_inputs = 1,
    .max_inputs = -1,
    .infer = InferConcat,
    .prepare = PrepareConcat,
    .layouts = ConcatLayouts,
    .field = ConcatField,
};

}  // namespace tessera
