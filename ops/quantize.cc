#include "ops/quantize.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quantize.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "ops/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename Q>
void Quantize(const float* in, float scale, std::int32_t zero_point, Q* out, std::int64_t n) {
  if constexpr (sizeof(Q) == 1) {
    const hn::ScalableTag<float> d;
    const Quotient<Q, decltype(d)> quotient(d, scale, zero_point);
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const std::int64_t whole = n / lanes * lanes;
    for (std::int64_t i = 0; i < whole; i += lanes) quotient.Store(hn::LoadU(d, in + i), out + i);
    in += whole;
    out += whole;
    n -= whole;
  }
  ForVectors(n, [=](auto d, std::int64_t i) HWY_ATTR {
    const Saturation<Q, decltype(d)> saturation(d, zero_point);
    saturation.Store(hn::Div(hn::LoadU(d, in + i), hn::Set(d, scale)), out + i);
  });
}

template <typename Q>
void Dequantize(const Q* in, float scale, std::int32_t zero_point, float* out, std::int64_t n) {
  ForVectors(n, [=](auto d, std::int64_t i) HWY_ATTR {
    const hn::Rebind<Q, decltype(d)> dq;
    const hn::RebindToSigned<decltype(d)> di;
    hn::Vec<decltype(di)> value;
    if constexpr (sizeof(Q) == sizeof(std::int32_t)) {
      value = hn::LoadU(dq, in + i);
    } else {
      value = hn::PromoteTo(di, hn::LoadU(dq, in + i));
    }
    value = hn::Sub(value, hn::Set(di, zero_point));
    hn::StoreU(hn::Mul(hn::ConvertTo(d, value), hn::Set(d, scale)), d, out + i);
  });
}

template <typename Q>
void Requantize(const std::int32_t* sums, std::int32_t bias, RowOperand multiplier,
                std::int32_t zero_point, Q* out, std::int64_t n) {
  const bool scalar = multiplier.kind == RowOperand::kScalar;
  const float* factors = multiplier.values;
  ForVectors(n, [=](auto d, std::int64_t i) HWY_ATTR {
    const hn::RebindToSigned<decltype(d)> di;
    const Saturation<Q, decltype(d)> saturation(d, zero_point);
    const auto sum = hn::Add(hn::LoadU(di, sums + i), hn::Set(di, bias));
    const auto factor = scalar ? hn::Set(d, *factors) : hn::LoadU(d, factors + i);
    saturation.Store(hn::Mul(hn::ConvertTo(d, sum), factor), out + i);
  });
}

void QuantizeOfTarget(const float* in, float scale, std::int32_t zero_point, DType type, void* out,
                      std::int64_t n) {
  switch (type) {
    case DType::kInt8:
      return Quantize(in, scale, zero_point, static_cast<std::int8_t*>(out), n);
    case DType::kUint8:
      return Quantize(in, scale, zero_point, static_cast<std::uint8_t*>(out), n);
    case DType::kInt16:
      return Quantize(in, scale, zero_point, static_cast<std::int16_t*>(out), n);
    default:
      return Quantize(in, scale, zero_point, static_cast<std::uint16_t*>(out), n);
  }
}

void DequantizeOfTarget(const void* in, DType type, float scale, std::int32_t zero_point,
                        float* out, std::int64_t n) {
  switch (type) {
    case DType::kInt8:
      return Dequantize(static_cast<const std::int8_t*>(in), scale, zero_point, out, n);
    case DType::kUint8:
      return Dequantize(static_cast<const std::uint8_t*>(in), scale, zero_point, out, n);
    case DType::kInt16:
      return Dequantize(static_cast<const std::int16_t*>(in), scale, zero_point, out, n);
    case DType::kUint16:
      return Dequantize(static_cast<const std::uint16_t*>(in), scale, zero_point, out, n);
    default:
      return Dequantize(static_cast<const std::int32_t*>(in), scale, zero_point, out, n);
  }
}

void RequantizeOfTarget(const std::int32_t* sums, std::int32_t bias, RowOperand multiplier,
                        std::int32_t zero_point, DType type, void* out, std::int64_t n) {
  if (type == DType::kInt8) {
    Requantize(sums, bias, multiplier, zero_point, static_cast<std::int8_t*>(out), n);
  } else {
    Requantize(sums, bias, multiplier, zero_point, static_cast<std::uint8_t*>(out), n);
  }
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {

HWY_EXPORT(QuantizeOfTarget);
HWY_EXPORT(DequantizeOfTarget);
HWY_EXPORT(RequantizeOfTarget);

void QuantizeRow(const float* in, float scale, std::int32_t zero_point, DType type, void* out,
                 std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(QuantizeOfTarget)(in, scale, zero_point, type, out, n);
}

void DequantizeRow(const void* in, DType type, float scale, std::int32_t zero_point, float* out,
                   std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(DequantizeOfTarget)(in, type, scale, zero_point, out, n);
}

void RequantizeRow(const std::int32_t* sums, std::int32_t bias, RowOperand multiplier,
                   std::int32_t zero_point, DType type, void* out, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(RequantizeOfTarget)(sums, bias, multiplier, zero_point, type, out, n);
}

void RequantizeRowPlainly(const std::int32_t* sums, std::int32_t bias, RowOperand multiplier,
                          std::int32_t zero_point, DType type, void* out, std::int64_t n) {
  Dispatch(type, ByteTypes(), [&](auto tag) {
    using Q = typename decltype(tag)::type;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums[i]) +
                                                 static_cast<std::uint32_t>(bias));
      const float factor = multiplier.values[multiplier.kind == RowOperand::kScalar ? 0 : i];
      static_cast<Q*>(out)[i] = RoundAndSaturate<Q>(static_cast<float>(sum) * factor, zero_point);
    }
  });
}

std::int32_t ZeroPointAt(const TensorView& zero_points, std::int64_t i) {
  if (!zero_points.present()) return 0;
  using Types = TypeList<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t>;
  return Dispatch(zero_points.dtype, Types(), [&](auto tag) {
    const auto* values = zero_points.data<const typename decltype(tag)::type>();
    return static_cast<std::int32_t>(values[zero_points.size() == 1 ? 0 : i]);
  });
}

float ScaleAt(const TensorView& scales, std::int64_t i) {
  return Dispatch(scales.dtype, TypeList<float, Half>(), [&](auto tag) {
    const auto* values = scales.data<const typename decltype(tag)::type>();
    return static_cast<float>(values[scales.size() == 1 ? 0 : i]);
  });
}

TensorView InputOrAbsent(const RunContext& context, std::size_t i) {
  return i < context.inputs.size() ? context.inputs[i] : TensorView{};
}

void RequireBytes(const InferContext& context, std::size_t values, std::size_t zero_point) {
  const DType type = context.Input(values).dtype;
  RequireType(type, ByteTypes());
  if (!context.HasInput(zero_point)) return;
  Require(context.Input(zero_point).dtype == type, "a zero point of type ",
          context.Input(zero_point).dtype, " for values of ", type);
}

void RequirePerTensor(const InferContext& context, std::size_t i, const char* name) {
  const Shape& shape = context.Input(i).shape;
  Require(shape.rank() <= 1 && shape.NumElements() == 1, name, " of shape ", shape,
          ", it has to be a scalar");
}

void RequirePerChannel(const InferContext& context, std::size_t i, const char* name,
                       std::int64_t channels) {
  const Shape& shape = context.Input(i).shape;
  Require(shape.rank() <= 1 && (shape.NumElements() == 1 || shape.NumElements() == channels), name,
          " of shape ", shape, " for ", channels, " output channels");
}

}  // namespace tessera
#endif  // HWY_ONCE
