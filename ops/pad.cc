// Pad: constant, reflect, edge and wrap. Negative pads crop an axis before the others fill it up.
// https://onnx.ai/onnx/operators/onnx__Pad.html
#include "ops/pad.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "ops/elements.h"
#include "ops/op.h"

namespace tessera {
namespace {

enum class PadMode : std::uint8_t { kConstant, kReflect, kEdge, kWrap };

constexpr std::size_t kValueInput = 2;
// The kernel keeps an offset for each place along an axis. No picture needs more.
constexpr std::int64_t kMaxPad = std::int64_t{1} << 24;

PadMode ReadMode(const OpNode& node) {
  const std::string mode = node.attributes.String("mode", "constant");
  if (mode == "constant") return PadMode::kConstant;
  if (mode == "reflect") return PadMode::kReflect;
  if (mode == "edge") return PadMode::kEdge;
  Require(mode == "wrap" && node.opset >= 19, "unknown mode '", mode, "'");
  return PadMode::kWrap;
}

struct PadAxis {
  std::int64_t begin = 0, end = 0;
};

// Pads are an attribute before opset 11, input 1 since; axes came with opset 18. Throws NeedsValue
// for inputs that are not known.
std::vector<PadAxis> ReadPads(const OpNode& node, std::span<const TensorInfo> inputs) {
  const int rank = inputs[0].shape.rank();
  const std::vector<std::int64_t> pads =
      node.opset < 11 ? node.attributes.Ints("pads") : ConstantInt64s(inputs, 1);
  std::vector<std::int64_t> axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (node.opset >= 18 && inputs.size() > 3 && inputs[3].present) {
    axes = ConstantInt64s(inputs, 3, {DType::kInt32, DType::kInt64});
  }
  Require(pads.size() == 2 * axes.size(), pads.size(), " pads for ", axes.size(), " axes");
  std::vector<PadAxis> result(static_cast<std::size_t>(rank));
  std::vector<bool> used(result.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<std::size_t>(NormalizeAxis(axes[i], rank));
    Require(!used[a], "axis ", axes[i], " is given twice");
    used[a] = true;
    PadAxis& axis = result[a];
    axis = {pads[i], pads[i + axes.size()]};
    for (const std::int64_t p : {axis.begin, axis.end}) {
      Require(p >= INT32_MIN && p <= kMaxPad, "a pad of ", p, " is out of range");
    }
  }
  return result;
}

// What is left of an axis of `in` elements when negative pads have cropped it: [begin, end).
struct CroppedAxis {
  CroppedAxis(const PadAxis& pad, std::int64_t in)
      : begin(std::max<std::int64_t>(0, -pad.begin)),
        end(in - std::max<std::int64_t>(0, -pad.end)) {}
  std::int64_t begin, end;
};

void InferPad(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  const int opset = context.node.opset;
  RequireType(in.dtype, opset, NumberTypes(), 13, AllTypes());
  RequireType(in.dtype, opset, FloatTypes(), 11, AllTypes());
  const PadMode mode = ReadMode(context.node);
  const std::vector<PadAxis> pads = ReadPads(context.node, context.inputs);
  Shape out = in.shape;
  for (int d = 0; d < out.rank(); ++d) {
    const PadAxis& pad = pads[static_cast<std::size_t>(d)];
    out[d] += pad.begin + pad.end;
    Require(out[d] >= 0, "pads ", pad.begin, " and ", pad.end, " leave nothing of axis ", d, " of ",
            in.shape);
    const CroppedAxis cropped(pad, in.shape[d]);
    Require(out[d] == 0 || cropped.begin < cropped.end || mode == PadMode::kConstant,
            "nothing to fill axis ", d, " of ", in.shape, " with, padded by ", pad.begin, " and ",
            pad.end);
  }
  if (context.node.opset >= 11 && context.HasInput(kValueInput)) {
    const TensorInfo& value = context.inputs[kValueInput];
    Require(value.dtype == in.dtype && value.shape.NumElements() == 1, "constant_value is ",
            value.dtype, " ", value.shape, " beside data of ", in.dtype);
  }
  context.SetOutput(0, in.dtype, out);
}

// The element of an axis of `in` elements that place `at`, maybe outside of it, shows; -1: the
// constant. Modes other than constant go on as long as it takes, however short the axis is.
std::int64_t SourceIndex(PadMode mode, std::int64_t at, std::int64_t in) {
  if (at >= 0 && at < in) return at;
  switch (mode) {
    case PadMode::kConstant:
      return -1;
    case PadMode::kEdge:
      return std::clamp<std::int64_t>(at, 0, in - 1);
    case PadMode::kWrap:
      return ((at % in) + in) % in;
    case PadMode::kReflect:
      break;
  }
  // Back and forth without repeating the edges.
  if (in == 1) return 0;
  const std::int64_t period = 2 * (in - 1);
  const std::int64_t phase = ((at % period) + period) % period;
  return std::min(phase, period - phase);
}

template <typename T>
class PadKernel final : public Kernel {
 public:
  PadKernel(const PrepareContext& context, T value) : value_(value) {
    const Shape& in = context.inputs[0].shape;
    const Shape& out = context.outputs[0].shape;
    const PadMode mode = ReadMode(context.node);
    const std::vector<PadAxis> pads = ReadPads(context.node, context.inputs);
    const auto strides = RowMajorStrides(in);
    for (int d = 0; d < out.rank(); ++d) {
      const auto u = static_cast<std::size_t>(d);
      std::vector<std::int64_t> offsets;
      const CroppedAxis cropped(pads[u], in[d]);
      for (std::int64_t i = 0; i < out[d]; ++i) {
        const std::int64_t source =
            SourceIndex(mode, i - pads[u].begin - cropped.begin, cropped.end - cropped.begin);
        offsets.push_back(source < 0 ? -1 : (cropped.begin + source) * strides[u]);
      }
      offsets_.push_back(std::move(offsets));
    }
    if (offsets_.empty()) offsets_.push_back({0});  // a scalar
    // What is copied as it stands of each row.
    const std::vector<std::int64_t>& columns = offsets_.back();
    const PadAxis last = pads.empty() ? PadAxis() : pads.back();
    const auto width = static_cast<std::int64_t>(columns.size());
    copy_begin_ = std::clamp<std::int64_t>(last.begin, 0, width);
    copy_end_ = std::max(copy_begin_, width - std::max<std::int64_t>(last.end, 0));
  }

  std::string_view name() const override { return "pad"; }
  void Run(const RunContext& context) const override {
    const T* in = context.inputs[0].data<const T>();
    T* out = context.outputs[0].data<T>();
    const T value =
        context.HasInput(kValueInput) ? *context.inputs[kValueInput].data<const T>() : value_;
    const auto width = static_cast<std::int64_t>(offsets_.back().size());
    if (width == 0) return;
    const std::int64_t rows = context.outputs[0].size() / width;
    const std::int64_t grain = std::max<std::int64_t>(1, 16384 / width);
    context.parallel.For((rows + grain - 1) / grain, [&](std::int64_t task, int) {
      const std::int64_t end = std::min(rows, (task + 1) * grain);
      for (std::int64_t r = task * grain; r < end; ++r) Row(in, out + r * width, r, value);
    });
  }

 private:
  void Row(const T* in, T* out, std::int64_t row, T value) const {
    const std::vector<std::int64_t>& columns = offsets_.back();
    const auto width = static_cast<std::int64_t>(columns.size());
    std::int64_t source = 0;
    for (std::size_t d = offsets_.size() - 1; d-- > 0;) {
      const auto dim = static_cast<std::int64_t>(offsets_[d].size());
      const std::int64_t offset = offsets_[d][static_cast<std::size_t>(row % dim)];
      if (offset < 0) {
        std::fill_n(out, width, value);
        return;
      }
      source += offset;
      row /= dim;
    }
    const auto element = [&](std::int64_t x) {
      const std::int64_t offset = columns[static_cast<std::size_t>(x)];
      return offset < 0 ? value : in[source + offset];
    };
    for (std::int64_t x = 0; x < copy_begin_; ++x) out[x] = element(x);
    if (copy_end_ > copy_begin_) {
      std::memcpy(out + copy_begin_, in + source + columns[static_cast<std::size_t>(copy_begin_)],
                  static_cast<std::size_t>(copy_end_ - copy_begin_) * sizeof(T));
    }
    for (std::int64_t x = copy_end_; x < width; ++x) out[x] = element(x);
  }

  T value_;
  std::vector<std::vector<std::int64_t>> offsets_;  // for each axis and output index; -1: constant
  std::int64_t copy_begin_, copy_end_;
};

// The bits of the constant that the attribute "value" (before opset 11), or its default, gives.
template <typename Bits>
Bits ConstantBits(const OpNode& node, DType dtype) {
  const float value = node.opset < 11 ? node.attributes.Float("value", 0.f) : 0.f;
  return Dispatch(dtype, AllTypes(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T typed = static_cast<T>(static_cast<ComputeType<T>>(value));
    Bits bits{};
    std::memcpy(&bits, &typed, std::min(sizeof(bits), sizeof(typed)));
    return bits;
  });
}

std::unique_ptr<Kernel> PreparePad(const PrepareContext& context) {
  const DType dtype = context.inputs[0].dtype;
  return DispatchSize(dtype, [&](auto tag) -> std::unique_ptr<Kernel> {
    using T = typename decltype(tag)::type;
    return std::make_unique<PadKernel<T>>(context, ConstantBits<T>(context.node, dtype));
  });
}

std::optional<SpatialField> PadField(const FieldContext& context, std::size_t i) {
  const std::vector<PadAxis> pads = ReadPads(context.node, context.inputs);
  if (i != 0 || pads.size() < 2) return std::nullopt;
  for (auto pad = pads.end() - 2; pad != pads.end(); ++pad) {
    if (pad->begin != 0 || pad->end != 0) return std::nullopt;
  }
  return SpatialField{};
}

}  // namespace

std::optional<std::vector<std::int64_t>> SpatialZeroPads(const OpNode& node,
                                                         std::span<const TensorInfo> inputs) {
  if (ReadMode(node) != PadMode::kConstant) return std::nullopt;
  if (node.opset < 11) {
    if (node.attributes.Float("value", 0.f) != 0) return std::nullopt;
  } else {
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      if (inputs[i].present && inputs[i].constant == nullptr) return std::nullopt;
    }
    if (inputs.size() > kValueInput && inputs[kValueInput].present) {
      const Tensor& value = *inputs[kValueInput].constant;
      if (value.size() != 1 || ToFloats(value.view())[0] != 0) return std::nullopt;
    }
  }
  const std::vector<PadAxis> axes = ReadPads(node, inputs);
  std::vector<std::int64_t> begins, ends;
  for (std::size_t d = 0; d < axes.size(); ++d) {
    const auto [begin, end] = axes[d];
    if (begin < 0 || end < 0 || (d < 2 && (begin != 0 || end != 0))) return std::nullopt;
    if (d < 2) continue;
    begins.push_back(begin);
    ends.push_back(end);
  }
  begins.insert(begins.end(), ends.begin(), ends.end());
  return begins;
}

extern const OpDef kPadOp;
const OpDef kPadOp = {
    .type = "Pad",
    .min_inputs = 1,
    .max_inputs = 4,
    .infer = InferPad,
    .prepare = PreparePad,
    .field = PadField,
};

}  // namespace tessera
