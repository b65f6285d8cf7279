// DynamicQuantizeLinear: float32 to uint8 with the scale and zero point that its range asks for.
// https://onnx.ai/onnx/operators/onnx__DynamicQuantizeLinear.html
#include <algorithm>
#include <array>

#include "ops/quantize.h"

namespace tessera {
namespace {

void InferDynamicQuantizeLinear(const InferContext& context) {
  const TensorInfo& x = context.Input(0);
  RequireType(x.dtype, TypeList<float>());
  context.SetOutput(0, DType::kUint8, x.shape);
  if (context.outputs.size() > 1) context.SetOutput(1, DType::kFloat32, {});
  if (context.outputs.size() > 2) context.SetOutput(2, DType::kUint8, {});
}

// From the least value to the greatest, and 0 at any rate; NaN is not looked at.
struct ValueRange {
  float lowest = 0, highest = 0;

  void Include(float value) {
    lowest = value < lowest ? value : lowest;
    highest = value > highest ? value : highest;
  }
};

class DynamicQuantizeKernel final : public Kernel {
 public:
  explicit DynamicQuantizeKernel(const PrepareContext& context) : plain_(context.reference) {}
  std::string_view name() const override { return "dynamic_quantize"; }
  std::size_t ScratchBytesPerThread() const override { return kPieces * sizeof(ValueRange); }
  void Run(const RunContext& context) const override {
    const float* x = context.inputs[0].data<const float>();
    auto* y = context.outputs[0].data<std::uint8_t>();
    const std::int64_t n = context.inputs[0].size();
    const ValueRange range = FindRange(context, x, n);
    // A range of nothing but 0 has no scale; any will do.
    const float scale =
        range.lowest == range.highest ? 1.f : (range.highest - range.lowest) / 255.f;
    const auto zero_point = RoundAndSaturate<std::uint8_t>(-range.lowest / scale, 0);
    context.parallel.For(kPieces, [&](std::int64_t piece, int) {
      const std::int64_t begin = n * piece / kPieces, end = n * (piece + 1) / kPieces;
      if (!plain_) {
        QuantizeRow(x + begin, scale, zero_point, DType::kUint8, y + begin, end - begin);
        return;
      }
      for (std::int64_t i = begin; i < end; ++i) {
        y[i] = RoundAndSaturate<std::uint8_t>(x[i] / scale, zero_point);
      }
    });
    if (context.HasOutput(1)) *context.outputs[1].data<float>() = scale;
    if (context.HasOutput(2)) *context.outputs[2].data<std::uint8_t>() = zero_point;
  }

 private:
  static constexpr std::int64_t kPieces = 16;

  static ValueRange FindRange(const RunContext& context, const float* x, std::int64_t n) {
    ValueRange* ranges = context.Scratch<ValueRange>(0);
    context.parallel.For(kPieces, [&](std::int64_t piece, int) {
      // Several at a time do not wait for each other.
      std::array<ValueRange, 8> parts{};
      std::int64_t i = n * piece / kPieces;
      const std::int64_t end = n * (piece + 1) / kPieces;
      for (; i + 8 <= end; i += 8) {
        for (std::size_t k = 0; k < 8; ++k) parts[k].Include(x[i + static_cast<std::int64_t>(k)]);
      }
      for (; i < end; ++i) parts[0].Include(x[i]);
      ranges[piece] = Union(parts);
    });
    return Union(std::span<const ValueRange>(ranges, kPieces));
  }

  static ValueRange Union(std::span<const ValueRange> ranges) {
    ValueRange all;
    for (const ValueRange& range : ranges) {
      all.Include(range.lowest);
      all.Include(range.highest);
    }
    return all;
  }

  bool plain_;
};

}  // namespace

extern const OpDef kDynamicQuantizeLinearOp;
const OpDef kDynamicQuantizeLinearOp = {
    .type = "DynamicQuantizeLinear",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferDynamicQuantizeLinear,
    .prepare = PrepareKernel<DynamicQuantizeKernel>,
    .first_opset = 11,
};

}  // namespace tessera
