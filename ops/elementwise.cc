#include "ops/elementwise.h"

#include <cmath>
#include <cstddef>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/elementwise.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using D1 = hn::CappedTag<float, 1>;

// Where a row's vectors come from: memory that moves along, or one vector for all.
struct Stream {
  const float* values;
  template <class Tag>
  HWY_INLINE hn::Vec<Tag> Load(Tag d, std::size_t i) const {
    return hn::LoadU(d, values + i);
  }
};
struct Repeated {
  explicit Repeated(const RowOperand& operand)
      : vector(operand.kind == RowOperand::kScalar ? hn::Set(D(), *operand.values)
                                                   : hn::LoadU(D(), operand.values)),
        first(*operand.values) {}
  template <class Tag>
  HWY_INLINE hn::Vec<Tag> Load(Tag d, std::size_t) const {
    if constexpr (std::is_same_v<Tag, D>) {
      return vector;
    } else {
      return hn::Set(d, first);
    }
  }

  hn::Vec<D> vector;
  float first;  // for tails, which only rows of scalars have: see RowOperand::kLanes
};

// out[i] = fn(operands[i]...): whole vectors, then single elements.
template <class Fn, class... Operands>
HWY_INLINE void MapRow(float* out, std::int64_t count, const Fn& fn, const Operands&... operands) {
  const D d;
  const D1 d1;
  const auto n = static_cast<std::size_t>(count);
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(fn(d, operands.Load(d, i)...), d, out + i);
  for (; i < n; ++i) hn::StoreU(fn(d1, operands.Load(d1, i)...), d1, out + i);
}

// Calls function(x) for each lane: where vector arithmetic is not good enough.
template <class Tag, class V = hn::Vec<Tag>>
HWY_NOINLINE V EachLane(Tag d, V x, float (*function)(float)) {
  HWY_ALIGN float lanes[hn::MaxLanes(D())];
  hn::Store(x, d, lanes);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = function(lanes[i]);
  return hn::Load(d, lanes);
}

// Whether SinModerate and CosModerate know what to do with all lanes (or they are NaN).
template <class Tag, class V = hn::Vec<Tag>>
HWY_INLINE bool AreModerateAngles(Tag d, V x) {
  return hn::AllFalse(d, hn::Gt(hn::Abs(x), hn::Set(d, kMaxModerateAngle)));
}

void UnaryRow(const Unary& unary, const float* in, float* out, std::int64_t n) {
  const float alpha = unary.alpha, beta = unary.beta;
  const auto map = [&](const auto& fn) HWY_ATTR { MapRow(out, n, fn, Stream{in}); };
  switch (unary.fn) {
    case UnaryFn::kAbs:
      return map([](auto, auto x) HWY_ATTR { return hn::Abs(x); });
    case UnaryFn::kCeil:
      return map([](auto, auto x) HWY_ATTR { return hn::Ceil(x); });
    case UnaryFn::kCelu:
      return map([=](auto d, auto x) HWY_ATTR {
        const auto a = hn::Set(d, alpha);
        const auto below = hn::Mul(a, Expm1OfNegative(d, hn::Div(x, a)));
        return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), below, x);
      });
    case UnaryFn::kClip:
      return map([=](auto d, auto x)
                     HWY_ATTR { return ClampOrNan(x, hn::Set(d, alpha), hn::Set(d, beta)); });
    case UnaryFn::kCos:
      return map([](auto d, auto x) HWY_ATTR {
        if (AreModerateAngles(d, x)) return CosModerate(d, x);
        return EachLane(d, x, [](float v) { return std::cos(v); });
      });
    case UnaryFn::kElu:
      return map([=](auto d, auto x) HWY_ATTR {
        const auto below = hn::Mul(hn::Set(d, alpha), Expm1OfNegative(d, x));
        return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), below, x);
      });
    case UnaryFn::kErf:
      return map([](auto d, auto x) HWY_ATTR { return Erf(d, x); });
    case UnaryFn::kExp:
      return map([](auto d, auto x) HWY_ATTR { return Exp(d, x); });
    case UnaryFn::kFloor:
      return map([](auto, auto x) HWY_ATTR { return hn::Floor(x); });
    case UnaryFn::kGelu:
      return map([](auto d, auto x) HWY_ATTR {
        const auto half = hn::Mul(x, hn::Set(d, 0.5f));
        return hn::MulAdd(half, Erf(d, hn::Mul(x, hn::Set(d, 0.707106781f))), half);
      });
    case UnaryFn::kGeluTanh:
      return map([](auto d, auto x) HWY_ATTR {
        // (1 + tanh y) / 2 is the sigmoid of 2 y.
        const auto cubic = hn::Mul(hn::Mul(x, x), hn::Set(d, 0.044715f * 1.59576912f));
        const auto y = hn::Mul(x, hn::Add(cubic, hn::Set(d, 1.59576912f)));
        return hn::Mul(x, Sigmoid(d, y));
      });
    case UnaryFn::kHardSigmoid:
      return map([=](auto d, auto x) HWY_ATTR {
        const auto y = hn::MulAdd(x, hn::Set(d, alpha), hn::Set(d, beta));
        return ClampOrNan(y, hn::Zero(d), hn::Set(d, 1.f));
      });
    case UnaryFn::kHardSwish:
      return map([](auto d, auto x) HWY_ATTR {
        const auto gate = hn::MulAdd(x, hn::Set(d, 1.f / 6), hn::Set(d, 0.5f));
        return hn::Mul(x, ClampOrNan(gate, hn::Zero(d), hn::Set(d, 1.f)));
      });
    case UnaryFn::kLeakyRelu:
      return map([=](auto d, auto x) HWY_ATTR {
        return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, hn::Set(d, alpha)), x);
      });
    case UnaryFn::kLog:
      return map([](auto d, auto x) HWY_ATTR { return Log(d, x); });
    case UnaryFn::kMish:
      return map([](auto d, auto x) HWY_ATTR { return Mish(d, x); });
    case UnaryFn::kNeg:
      return map([](auto, auto x) HWY_ATTR { return hn::Neg(x); });
    case UnaryFn::kReciprocal:
      return map([](auto d, auto x) HWY_ATTR { return hn::Div(hn::Set(d, 1.f), x); });
    case UnaryFn::kRelu:
      return map([](auto d, auto x)
                     HWY_ATTR { return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x); });
    case UnaryFn::kRound:
      return map([](auto, auto x) HWY_ATTR { return hn::Round(x); });
    case UnaryFn::kSelu:
      return map([=](auto d, auto x) HWY_ATTR {
        const auto below = hn::Mul(hn::Set(d, alpha), Expm1OfNegative(d, x));
        return hn::Mul(hn::Set(d, beta), hn::IfThenElse(hn::Lt(x, hn::Zero(d)), below, x));
      });
    case UnaryFn::kSigmoid:
      return map([](auto d, auto x) HWY_ATTR { return Sigmoid(d, x); });
    case UnaryFn::kSign:
      return map([](auto d, auto x) HWY_ATTR {
        const auto sign = hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(hn::Set(d, 1.f), x));
        return hn::IfThenZeroElse(hn::Eq(x, hn::Zero(d)), sign);
      });
    case UnaryFn::kSin:
      return map([](auto d, auto x) HWY_ATTR {
        if (AreModerateAngles(d, x)) return SinModerate(d, x);
        return EachLane(d, x, [](float v) { return std::sin(v); });
      });
    case UnaryFn::kSoftplus:
      return map([](auto d, auto x) HWY_ATTR { return Softplus(d, x); });
    case UnaryFn::kSoftsign:
      return map([](auto d, auto x)
                     HWY_ATTR { return hn::Div(x, hn::Add(hn::Abs(x), hn::Set(d, 1.f))); });
    case UnaryFn::kSqrt:
      return map([](auto, auto x) HWY_ATTR { return hn::Sqrt(x); });
    case UnaryFn::kTanh:
      return map([](auto d, auto x) HWY_ATTR { return Tanh(d, x); });
    case UnaryFn::kThresholdedRelu:
      return map([=](auto d, auto x)
                     HWY_ATTR { return hn::IfThenZeroElse(hn::Le(x, hn::Set(d, alpha)), x); });
  }
}

// fn applied to whichever of the operands move along.
template <class Fn>
HWY_INLINE void MapPair(const RowOperand& a, const RowOperand& b, float* out, std::int64_t n,
                        const Fn& fn) {
  if (a.kind == RowOperand::kStream && b.kind == RowOperand::kStream) {
    MapRow(out, n, fn, Stream{a.values}, Stream{b.values});
  } else if (a.kind == RowOperand::kStream) {
    MapRow(out, n, fn, Stream{a.values}, Repeated(b));
  } else if (b.kind == RowOperand::kStream) {
    MapRow(out, n, fn, Repeated(a), Stream{b.values});
  } else {
    MapRow(out, n, fn, Repeated(a), Repeated(b));
  }
}

template <class Tag, class M>
HWY_INLINE hn::Vec<Tag> OneIf(Tag d, M mask) {
  return hn::IfThenElseZero(mask, hn::Set(d, 1.f));
}

void BinaryRow(BinaryFn fn, RowOperand a, RowOperand b, float* out, std::int64_t n) {
  switch (fn) {
    case BinaryFn::kAdd:
      return MapPair(a, b, out, n, [](auto, auto x, auto y) HWY_ATTR { return hn::Add(x, y); });
    case BinaryFn::kSub:
      return MapPair(a, b, out, n, [](auto, auto x, auto y) HWY_ATTR { return hn::Sub(x, y); });
    case BinaryFn::kMul:
      return MapPair(a, b, out, n, [](auto, auto x, auto y) HWY_ATTR { return hn::Mul(x, y); });
    case BinaryFn::kDiv:
      return MapPair(a, b, out, n, [](auto, auto x, auto y) HWY_ATTR { return hn::Div(x, y); });
    // Not Min and Max of vectors: what they do with NaN depends on the CPU.
    case BinaryFn::kMin:
      return MapPair(a, b, out, n, [](auto, auto x, auto y) HWY_ATTR {
        return hn::IfThenElse(hn::Or(hn::Lt(x, y), hn::IsNaN(x)), x, y);
      });
    case BinaryFn::kMax:
      return MapPair(a, b, out, n, [](auto, auto x, auto y) HWY_ATTR {
        return hn::IfThenElse(hn::Or(hn::Gt(x, y), hn::IsNaN(x)), x, y);
      });
    case BinaryFn::kPRelu:
      return MapPair(a, b, out, n, [](auto d, auto x, auto slope) HWY_ATTR {
        return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, slope), x);
      });
    case BinaryFn::kEqual:
      return MapPair(a, b, out, n,
                     [](auto d, auto x, auto y) HWY_ATTR { return OneIf(d, hn::Eq(x, y)); });
    case BinaryFn::kGreater:
      return MapPair(a, b, out, n,
                     [](auto d, auto x, auto y) HWY_ATTR { return OneIf(d, hn::Gt(x, y)); });
    case BinaryFn::kGreaterOrEqual:
      return MapPair(a, b, out, n,
                     [](auto d, auto x, auto y) HWY_ATTR { return OneIf(d, hn::Ge(x, y)); });
    case BinaryFn::kLess:
      return MapPair(a, b, out, n,
                     [](auto d, auto x, auto y) HWY_ATTR { return OneIf(d, hn::Lt(x, y)); });
    case BinaryFn::kLessOrEqual:
      return MapPair(a, b, out, n,
                     [](auto d, auto x, auto y) HWY_ATTR { return OneIf(d, hn::Le(x, y)); });
    case BinaryFn::kPow: {
      if (b.kind == RowOperand::kScalar && *b.values == 2.f) {
        return MapPair(a, a, out, n, [](auto, auto x, auto y) HWY_ATTR { return hn::Mul(x, y); });
      }
      if (b.kind == RowOperand::kScalar && *b.values == 3.f) {
        return MapPair(a, a, out, n,
                       [](auto, auto x, auto y) HWY_ATTR { return hn::Mul(hn::Mul(x, y), x); });
      }
      const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
      const auto at = [=](const RowOperand& o, std::int64_t i) {
        return o.kind == RowOperand::kStream   ? o.values[i]
               : o.kind == RowOperand::kScalar ? o.values[0]
                                               : o.values[i % lanes];
      };
      for (std::int64_t i = 0; i < n; ++i) out[i] = std::pow(at(a, i), at(b, i));
      return;
    }
  }
}

void ScaleShiftRow(const float* in, RowOperand scale, RowOperand shift, float* out,
                   std::int64_t n) {
  const auto fn = [](auto, auto x, auto a, auto b) HWY_ATTR { return hn::MulAdd(x, a, b); };
  const Stream x{in};
  if (scale.kind != RowOperand::kStream && shift.kind != RowOperand::kStream) {
    MapRow(out, n, fn, x, Repeated(scale), Repeated(shift));
  } else if (scale.kind == RowOperand::kStream && shift.kind == RowOperand::kStream) {
    MapRow(out, n, fn, x, Stream{scale.values}, Stream{shift.values});
  } else if (scale.kind == RowOperand::kStream) {
    MapRow(out, n, fn, x, Stream{scale.values}, Repeated(shift));
  } else {
    MapRow(out, n, fn, x, Repeated(scale), Stream{shift.values});
  }
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {

HWY_EXPORT(UnaryRow);
HWY_EXPORT(BinaryRow);
HWY_EXPORT(ScaleShiftRow);

bool HasVectorKernel(const Unary& unary) { return unary.fn != UnaryFn::kCelu || unary.alpha > 0; }

void ApplyUnary(const Unary& unary, const float* in, float* out, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(UnaryRow)(unary, in, out, n);
}

void ApplyBinary(BinaryFn fn, RowOperand a, RowOperand b, float* out, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(BinaryRow)(fn, a, b, out, n);
}

void ApplyScaleShift(const float* x, RowOperand scale, RowOperand shift, float* out,
                     std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(ScaleShiftRow)(x, scale, shift, out, n);
}

}  // namespace tessera
#endif  // HWY_ONCE
