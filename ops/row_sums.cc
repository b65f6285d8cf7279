#include "ops/row_sums.h"

#include <cstddef>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/row_sums.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<double>;
using D1 = hn::CappedTag<double, 1>;

template <class Tag>
HWY_INLINE hn::Vec<Tag> LoadFloats(Tag d, const float* x) {
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, Tag>(), x));
}

// The four sums overlap in time. term(d, x) is what is reduced, combine(a, b) reduces two.
template <class Term, class Combine>
HWY_INLINE double Reduce(const float* x, std::int64_t count, double none, const Term& term,
                         const Combine& combine) {
  const D d;
  const D1 d1;
  constexpr std::size_t kSums = 4;
  const auto n = static_cast<std::size_t>(count);
  const std::size_t lanes = hn::Lanes(d);
  auto a = hn::Set(d, none), b = a, c = a, e = a;
  std::size_t i = 0;
  for (; i + kSums * lanes <= n; i += kSums * lanes) {
    a = combine(a, term(d, LoadFloats(d, x + i)));
    b = combine(b, term(d, LoadFloats(d, x + i + lanes)));
    c = combine(c, term(d, LoadFloats(d, x + i + 2 * lanes)));
    e = combine(e, term(d, LoadFloats(d, x + i + 3 * lanes)));
  }
  for (; i + lanes <= n; i += lanes) a = combine(a, term(d, LoadFloats(d, x + i)));
  HWY_ALIGN double all[HWY_MAX_BYTES / sizeof(double)];
  hn::Store(combine(combine(a, b), combine(c, e)), d, all);
  auto total = hn::Set(d1, none);
  for (std::size_t l = 0; l < lanes; ++l) total = combine(total, hn::LoadU(d1, all + l));
  for (; i < n; ++i) total = combine(total, term(d1, LoadFloats(d1, x + i)));
  return hn::GetLane(total);
}

template <class Term, class Combine>
HWY_INLINE void Accumulate(const float* x, double* sums, std::int64_t count, const Term& term,
                           const Combine& combine) {
  const D d;
  const D1 d1;
  const auto n = static_cast<std::size_t>(count);
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(combine(hn::LoadU(d, sums + i), term(d, LoadFloats(d, x + i))), d, sums + i);
  }
  for (; i < n; ++i) {
    hn::StoreU(combine(hn::LoadU(d1, sums + i), term(d1, LoadFloats(d1, x + i))), d1, sums + i);
  }
}

// Calls f(none, term, combine) with the pieces of a reduction.
template <class F>
HWY_INLINE auto WithPieces(RowSum fn, const F& f) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto same = [](auto, auto v) HWY_ATTR { return v; };
  const auto add = [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); };
  switch (fn) {
    case RowSum::kSumAbs:
      return f(
          0.0, [](auto, auto v) HWY_ATTR { return hn::Abs(v); }, add);
    case RowSum::kSumSquare:
      return f(
          0.0, [](auto, auto v) HWY_ATTR { return hn::Mul(v, v); }, add);
    case RowSum::kMax:  // NaN if any is, whichever comes first; the CPU's maximum has no such rule
      return f(-kInfinity, same, [](auto a, auto b) HWY_ATTR {
        return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
      });
    case RowSum::kMin:
      return f(kInfinity, same, [](auto a, auto b) HWY_ATTR {
        return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b);
      });
    default:
      return f(0.0, same, add);
  }
}

double ReduceRowOfTarget(RowSum fn, const float* x, std::int64_t n) {
  return WithPieces(fn, [=](double none, const auto& term, const auto& combine)
                            HWY_ATTR { return Reduce(x, n, none, term, combine); });
}

void AccumulateRowOfTarget(RowSum fn, const float* x, double* sums, std::int64_t n) {
  WithPieces(fn, [=](double, const auto& term, const auto& combine)
                     HWY_ATTR { Accumulate(x, sums, n, term, combine); });
}

double SumSquaredDeviationsOfTarget(const float* x, double mean, std::int64_t n) {
  const auto term = [=](auto d, auto v) HWY_ATTR {
    const auto deviation = hn::Sub(v, hn::Set(d, mean));
    return hn::Mul(deviation, deviation);
  };
  return Reduce(x, n, 0.0, term, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {

HWY_EXPORT(ReduceRowOfTarget);
HWY_EXPORT(AccumulateRowOfTarget);
HWY_EXPORT(SumSquaredDeviationsOfTarget);

double ReduceRow(RowSum fn, const float* x, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(ReduceRowOfTarget)(fn, x, n);
}

void AccumulateRow(RowSum fn, const float* x, double* sums, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(AccumulateRowOfTarget)(fn, x, sums, n);
}

double SumSquaredDeviations(const float* x, double mean, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(SumSquaredDeviationsOfTarget)(x, mean, n);
}

}  // namespace tessera
#endif  // HWY_ONCE
