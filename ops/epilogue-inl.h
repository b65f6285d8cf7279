// Epilogues on vectors: what convolution kernels do with a sum that is still in a register, or
// with a row of sums that is still in the L1 cache. Included once per target.

#if defined(TESSERA_OPS_EPILOGUE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_OPS_EPILOGUE_INL_H_
#undef TESSERA_OPS_EPILOGUE_INL_H_
#else
#define TESSERA_OPS_EPILOGUE_INL_H_
#endif

#include <cstddef>
#include <cstring>

#include "hwy/highway.h"
#include "ops/epilogue.h"
#include "simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A finisher maps x = sum + bias to the output of the epilogue:
//   y = finish(d, x, slope, addend)
// `slope` holds the negative slopes of x's channels (EpilogueOperands::slope); `addend` points to
// the addends of this vector and is only read if the epilogue has some.
//
// What real networks have after most of their convolutions has a finisher without run-time
// decisions, FixedFinisher. All else is AnyFinisher, which decides anew for every vector.

template <class D, class V>
HWY_INLINE V Activate(D d, Activation activation, const Epilogue& e, V x, V slope) {
  const V zero = hn::Zero(d), one = hn::Set(d, 1.f);
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      // Not Max: NaN has to stay NaN.
      return hn::IfThenZeroElse(hn::Lt(x, zero), x);
    case Activation::kLeakyRelu:
    case Activation::kPRelu:
      return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(x, slope), x);
    case Activation::kClip:
      return ClampOrNan(x, hn::Set(d, e.alpha), hn::Set(d, e.beta));
    case Activation::kSigmoid:
      return Sigmoid(d, x);
    case Activation::kSilu:
      return hn::Mul(x, Sigmoid(d, x));
    case Activation::kHardSigmoid:
      return ClampOrNan(hn::MulAdd(hn::Set(d, e.alpha), x, hn::Set(d, e.beta)), zero, one);
    case Activation::kHardSwish:
      return hn::Mul(x,
                     ClampOrNan(hn::MulAdd(x, hn::Set(d, 1.f / 6), hn::Set(d, 0.5f)), zero, one));
  }
  return x;
}

template <class D, class V>
HWY_INLINE V CombineWithAddend(D d, Combine combine, const Epilogue& e, V y, const float* addend) {
  switch (combine) {
    case Combine::kNone:
      return y;
    case Combine::kAdd:
      return hn::MulAdd(y, hn::Set(d, e.scale), hn::LoadU(d, addend));
    case Combine::kGate:
      return hn::Mul(hn::Add(y, hn::LoadU(d, addend)), hn::Sub(Sigmoid(d, y), hn::Set(d, 0.5f)));
  }
  return y;
}

template <Activation kActivation, Combine kCombine>
class FixedFinisher {
 public:
  explicit FixedFinisher(const Epilogue& epilogue) : epilogue_(epilogue) {}

  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D d, V x, V slope, const float* addend) const {
    const V y = Activate(d, kActivation, epilogue_, x, slope);
    return CombineWithAddend(d, kCombine, epilogue_, y, addend);
  }

 private:
  Epilogue epilogue_;
};

class AnyFinisher {
 public:
  explicit AnyFinisher(const Epilogue& epilogue) : epilogue_(epilogue) {}

  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D d, V x, V slope, const float* addend) const {
    const V y = Activate(d, epilogue_.activation, epilogue_, x, slope);
    return CombineWithAddend(d, epilogue_.combine, epilogue_, y, addend);
  }

 private:
  Epilogue epilogue_;
};

// Calls body(finisher) with the fastest finisher for `epilogue`: a run-time decision that a kernel
// makes once, outside of its loops.
template <class Body>
HWY_INLINE void WithFinisher(const Epilogue& epilogue, const Body& body) {
  using A = Activation;
  using C = Combine;
  const C combine = epilogue.combine;
  switch (epilogue.activation) {
    case A::kNone:
      if (combine == C::kGate) return body(FixedFinisher<A::kNone, C::kGate>(epilogue));
      [[fallthrough]];  // `slope` holds the slopes of all three
    case A::kLeakyRelu:
    case A::kPRelu:
      if (combine == C::kNone) return body(FixedFinisher<A::kPRelu, C::kNone>(epilogue));
      if (combine == C::kAdd) return body(FixedFinisher<A::kPRelu, C::kAdd>(epilogue));
      break;
    case A::kRelu:
      if (combine == C::kNone) return body(FixedFinisher<A::kRelu, C::kNone>(epilogue));
      if (combine == C::kAdd) return body(FixedFinisher<A::kRelu, C::kAdd>(epilogue));
      break;
    case A::kSilu:
      if (combine == C::kNone) return body(FixedFinisher<A::kSilu, C::kNone>(epilogue));
      break;
    default:
      break;
  }
  body(AnyFinisher(epilogue));
}

// out[i] = finish(sums[i]) for i in [0, n), with the addends of the row at `addend` (null if there
// are none). `slope` serves every vector: one block of channels at several pixels, or several
// pixels of one channel. `out` may be `sums` or `addend`. Reads and writes nothing beyond n.
template <class D, class V = hn::Vec<D>>
HWY_NOINLINE void FinishRow(D d, const Epilogue& epilogue, V slope, const float* sums,
                            const float* addend, float* out, std::size_t n) {
  const std::size_t lanes = hn::Lanes(d);
  WithFinisher(epilogue, [&](const auto& finish) HWY_ATTR {
    std::size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      const float* a = addend == nullptr ? nullptr : addend + i;
      hn::StoreU(finish(d, hn::LoadU(d, sums + i), slope, a), d, out + i);
    }
    if (i == n) return;
    HWY_ALIGN float last[2 * hn::MaxLanes(d)] = {};
    float* last_addend = last + lanes;
    std::memcpy(last, sums + i, (n - i) * sizeof(float));
    if (addend != nullptr) std::memcpy(last_addend, addend + i, (n - i) * sizeof(float));
    hn::Store(finish(d, hn::Load(d, last), slope, last_addend), d, last);
    std::memcpy(out + i, last, (n - i) * sizeof(float));
  });
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
