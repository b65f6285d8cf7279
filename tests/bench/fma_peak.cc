#include "tests/bench/fma_peak.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/fma_peak.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Runs `rounds` rounds of multiply-adds in independent chains; returns their number of operations.
double RunMultiplyAdds(int rounds) {
  constexpr int kChains = 12;  // latency times throughput at least, and registers for all
  const hn::ScalableTag<float> d;
  hn::Vec<decltype(d)> chains[kChains];
  // Different ones, or the compiler would see that one is enough.
  HWY_UNROLL(16) for (int i = 0; i < kChains; ++i) chains[i] = hn::Set(d, 1.0f + i);
  const auto factor = hn::Set(d, 0.5f), term = hn::Set(d, 0.25f);
  for (int round = 0; round < rounds; ++round) {
    HWY_UNROLL(16) for (int i = 0; i < kChains; ++i) {
      chains[i] = hn::MulAdd(chains[i], factor, term);
    }
  }
  auto sum = chains[0];
  HWY_UNROLL(16) for (int i = 1; i < kChains; ++i) sum = hn::Add(sum, chains[i]);
  benchmark::DoNotOptimize(hn::GetLane(sum));
  return 2.0 * rounds * kChains * static_cast<double>(hn::Lanes(d));
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {

HWY_EXPORT(RunMultiplyAdds);

double FmaPeakGflops() {
  static const double peak = [] {
    double best = 0;
    for (int run = 0; run < 50; ++run) {
      const auto start = std::chrono::steady_clock::now();
      const double operations = HWY_DYNAMIC_DISPATCH(RunMultiplyAdds)(100'000);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      best = std::max(best, operations * 1e-9 / seconds.count());
    }
    return best;
  }();
  return peak;
}

}  // namespace tessera
#endif  // HWY_ONCE
