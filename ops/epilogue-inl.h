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
// Nearly all convolutions of real networks end in a slope for negative values (none: 1), or in
// Relu, with or without a residual: these have finishers without run-time decisions. All else is
// AnyFinisher, whose branches are predicted well and cost little beside the exponentials.

template <bool kAdd>
class SlopeFinisher {
 public:
  explicit SlopeFinisher(const Epilogue& epilogue) : scale_(epilogue.scale) {}

  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D d, V x, V slope, const float* addend) const {
    const V y = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, slope), x);
    return kAdd ? hn::MulAdd(y, hn::Set(d, scale_), hn::LoadU(d, addend)) : y;
  }

 private:
  [[maybe_unused]] float scale_;
};

template <bool kAdd>
class ReluFinisher {
 public:
  explicit ReluFinisher(const Epilogue& epilogue) : scale_(epilogue.scale) {}

  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D d, V x, V /*slope*/, const float* addend) const {
    // Not Max: NaN has to stay NaN.
    const V y = hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
    return kAdd ? hn::MulAdd(y, hn::Set(d, scale_), hn::LoadU(d, addend)) : y;
  }

 private:
  [[maybe_unused]] float scale_;
};

class AnyFinisher {
 public:
  explicit AnyFinisher(const Epilogue& epilogue) : epilogue_(epilogue) {}

  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V operator()(D d, V x, V slope, const float* addend) const {
    const V y = Activate(d, x, slope);
    switch (epilogue_.combine) {
      case Combine::kNone:
        return y;
      case Combine::kAdd:
        return hn::MulAdd(y, hn::Set(d, epilogue_.scale), hn::LoadU(d, addend));
      case Combine::kGate:
        return hn::Mul(hn::Add(y, hn::LoadU(d, addend)), hn::Sub(Sigmoid(d, y), hn::Set(d, 0.5f)));
    }
    return y;
  }

 private:
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V Activate(D d, V x, V slope) const {
    const V zero = hn::Zero(d), one = hn::Set(d, 1.f);
    const V alpha = hn::Set(d, epilogue_.alpha), beta = hn::Set(d, epilogue_.beta);
    switch (epilogue_.activation) {
      case Activation::kNone:
        return x;
      case Activation::kRelu:
        return hn::IfThenZeroElse(hn::Lt(x, zero), x);
      case Activation::kLeakyRelu:
      case Activation::kPRelu:
        return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(x, slope), x);
      case Activation::kClip:
        return Clamp(x, alpha, beta);
      case Activation::kSigmoid:
        return Sigmoid(d, x);
      case Activation::kSilu:
        return hn::Mul(x, Sigmoid(d, x));
      case Activation::kHardSigmoid:
        return Clamp(hn::MulAdd(alpha, x, beta), zero, one);
      case Activation::kHardSwish:
        return hn::Mul(x, Clamp(hn::MulAdd(x, hn::Set(d, 1.f / 6), hn::Set(d, 0.5f)), zero, one));
    }
    return x;
  }

  // By comparisons, so that NaN stays NaN on every target.
  template <class V>
  static HWY_INLINE V Clamp(V x, V lo, V hi) {
    const V raised = hn::IfThenElse(hn::Lt(x, lo), lo, x);
    return hn::IfThenElse(hn::Gt(raised, hi), hi, raised);
  }

  Epilogue epilogue_;
};

// Calls body(finisher) with the fastest finisher for `epilogue`: a run-time decision that a kernel
// makes once, outside of its loops.
template <class Body>
HWY_INLINE void WithFinisher(const Epilogue& epilogue, const Body& body) {
  const bool add = epilogue.combine == Combine::kAdd;
  if (epilogue.combine != Combine::kGate) {
    switch (epilogue.activation) {
      case Activation::kNone:
      case Activation::kLeakyRelu:
      case Activation::kPRelu:
        return add ? body(SlopeFinisher<true>(epilogue)) : body(SlopeFinisher<false>(epilogue));
      case Activation::kRelu:
        return add ? body(ReluFinisher<true>(epilogue)) : body(ReluFinisher<false>(epilogue));
      default:
        break;
    }
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
