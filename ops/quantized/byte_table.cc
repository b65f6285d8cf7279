#include "ops/quantized/byte_table.h"

#include <algorithm>

#include "ops/op.h"
#include "simd/cpu_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quantized/byte_table.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_AVX3

// AVX-512 VBMI looks up 128 bytes at once. By asm: the target's attributes, which Highway sets, do
// not have it.
HWY_INLINE __m512i LookUp128(__m512i indices, __m512i low, __m512i high) {
  asm("vpermi2b %2, %1, %0" : "+v"(indices) : "v"(low), "v"(high));
  return indices;
}

std::int64_t LookUpByPermutation(const std::uint8_t* table, const std::uint8_t* in,
                                 std::uint8_t* out, std::int64_t n) {
  const hn::Full512<std::uint8_t> d;
  const auto t0 = hn::LoadU(d, table), t1 = hn::LoadU(d, table + 64);
  const auto t2 = hn::LoadU(d, table + 128), t3 = hn::LoadU(d, table + 192);
  std::int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    const auto x = hn::LoadU(d, in + i);
    const hn::Vec<decltype(d)> low{LookUp128(x.raw, t0.raw, t1.raw)};
    const hn::Vec<decltype(d)> high{LookUp128(x.raw, t2.raw, t3.raw)};
    const auto upper_half = hn::MaskFromVec(x);  // by the sign bits
    hn::StoreU(hn::IfThenElse(upper_half, high, low), d, out + i);
  }
  return i;
}

#endif

// By 16 tables of 16 bytes: of each, the bytes whose index lies in it.
HWY_INLINE std::int64_t LookUpByShuffles([[maybe_unused]] const std::uint8_t* table,
                                         [[maybe_unused]] const std::uint8_t* in,
                                         [[maybe_unused]] std::uint8_t* out,
                                         [[maybe_unused]] std::int64_t n) {
  std::int64_t i = 0;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2  // shorter vectors are slower than plain loads
  const hn::ScalableTag<std::uint8_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (; i + lanes <= n; i += lanes) {
    const auto x = hn::LoadU(d, in + i);
    auto y = hn::Zero(d);
    for (int t = 0; t < 16; ++t) {
      const auto row = hn::LoadDup128(d, table + 16 * t);
      // In 0..15 for this table; the addition brings all others to 128 and more, which gives 0.
      const auto at = hn::Xor(x, hn::Set(d, static_cast<std::uint8_t>(16 * t)));
      const auto index = hn::SaturatedAdd(at, hn::Set(d, std::uint8_t{0x70}));
      y = hn::Or(y, hn::TableLookupBytesOr0(row, index));
    }
    hn::StoreU(y, d, out + i);
  }
#endif
  return i;
}

void LookUp(const std::uint8_t* table, const std::uint8_t* in, std::uint8_t* out, std::int64_t n) {
#if HWY_TARGET == HWY_AVX3
  // CPUs without VNNI have none: there, and in their stead, the shuffles run.
  static const bool has_vbmi = __builtin_cpu_supports("avx512vbmi");
  const bool permutes = has_vbmi && HasVnni();
  std::int64_t i = permutes ? LookUpByPermutation(table, in, out, n) : std::int64_t{0};
#else
  std::int64_t i = 0;
#endif
  i += LookUpByShuffles(table, in + i, out + i, n - i);
  for (; i < n; ++i) out[i] = table[in[i]];
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {

HWY_EXPORT(LookUp);

constexpr std::size_t kTable = 1;

void InferByteTable(const InferContext& context) {
  const TensorInfo &x = context.Input(0), &table = context.Input(kTable);
  Require(x.dtype == DType::kUint8, "X of type ", x.dtype);
  Require(table.dtype == DType::kUint8 && table.shape == Shape{256}, "a table of ", table.dtype,
          " and shape ", table.shape);
  context.SetOutput(0, DType::kUint8, x.shape);
}

LayoutChoice ByteTableLayouts(const LayoutContext& context) {
  const Layout layout = context.inputs[0].layout;
  return {{layout, Layout::kRowMajor}, {layout}};
}

class ByteTableKernel final : public Kernel {
 public:
  explicit ByteTableKernel(bool reference) : reference_(reference) {}

  std::string_view name() const override {
    return reference_ ? "byte_table_reference" : "byte_table";
  }
  bool CanOverwriteInput(std::size_t i) const override { return i == 0; }

  // All bytes, those that pad pixels too.
  void Run(const RunContext& context) const override {
    const TensorView& x = context.inputs[0];
    const auto* in = x.data<const std::uint8_t>();
    const auto* table = context.inputs[kTable].data<const std::uint8_t>();
    auto* out = context.outputs[0].data<std::uint8_t>();
    const auto n = static_cast<std::int64_t>(StorageBytes(x.dtype, x.shape, x.layout));
    constexpr std::int64_t kGrain = 65536;
    context.parallel.For((n + kGrain - 1) / kGrain, [&](std::int64_t task, int) {
      const std::int64_t first = task * kGrain, count = std::min(kGrain, n - first);
      if (reference_) {
        for (std::int64_t i = first; i < first + count; ++i) out[i] = table[in[i]];
      } else {
        LookUpBytes(table, in + first, out + first, count);
      }
    });
  }

 private:
  bool reference_;
};

std::unique_ptr<Kernel> PrepareByteTable(const PrepareContext& context) {
  return std::make_unique<ByteTableKernel>(context.reference);
}

}  // namespace

void LookUpBytes(const std::uint8_t* table, const std::uint8_t* in, std::uint8_t* out,
                 std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(LookUp)(table, in, out, n);
}

extern const OpDef kByteTableOp;
const OpDef kByteTableOp = {.type = "ByteTable",
                            .min_inputs = 2,
                            .max_inputs = 2,
                            .infer = InferByteTable,
                            .prepare = PrepareByteTable,
                            .layouts = ByteTableLayouts,
                            .field = PointwiseField,
                            .internal = true};

}  // namespace tessera
#endif  // HWY_ONCE
