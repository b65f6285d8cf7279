// Random quantised networks: integer operators against plain kernels, and all ways to compute the
// same bytes against each other.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "engine/thread_team.h"
#include "tests/engine/random_quantized_model.h"
#include "tests/every_target.h"

namespace tessera {
namespace {

using Outputs = std::vector<Tensor>;

Outputs Compute(const RandomQuantizedModel& random, const SessionOptions& options = {},
                Parallel* parallel = nullptr) {
  Outputs outputs;
  const Tensor x = random.Input();
  random.model.Load(options)->Run(std::vector<NamedView>{{"x", x.view()}}, outputs, parallel);
  return outputs;
}

void ExpectSameBytes(const Outputs& a, const Outputs& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t k = 0; k < a.size(); ++k) {
    ASSERT_EQ(a[k].dtype(), b[k].dtype());
    ASSERT_EQ(a[k].shape(), b[k].shape());
    EXPECT_EQ(std::memcmp(a[k].view().bytes, b[k].view().bytes, a[k].bytes()), 0) << "output " << k;
  }
}

float At(const Tensor& t, std::int64_t i) {
  switch (t.dtype()) {
    case DType::kUint8:
      return t.data<const std::uint8_t>()[i];
    case DType::kInt8:
      return t.data<const std::int8_t>()[i];
    default:
      return t.data<const float>()[i];
  }
}

// Ties round differently in float, and the steps after those add up: some values may be off by a
// few of the largest steps.
void ExpectClose(const RandomQuantizedModel& random, const Outputs& a, const Outputs& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t k = 0; k < a.size(); ++k) {
    ASSERT_EQ(a[k].dtype(), b[k].dtype());
    ASSERT_EQ(a[k].shape(), b[k].shape());
    const float tolerance = 4.01f * random.largest_scale / random.units[k];
    std::int64_t far = 0;
    for (std::int64_t i = 0; i < a[k].size(); ++i) {
      far += std::abs(At(a[k], i) - At(b[k], i)) <= tolerance ? 0 : 1;
    }
    EXPECT_LE(far, a[k].size() / 500) << "output " << k;
  }
}

TEST(RandomQuantized, LikePlainKernels) {
  for (std::uint32_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(seed);
    const RandomQuantizedModel random(seed, 4000);
    const Outputs plain = Compute(random, {.reference = true});
    OnEveryTarget([&] { ExpectClose(random, Compute(random), plain); });
  }
}

TEST(RandomQuantized, SameBytesOnEveryTarget) {
  int networks = 0;
  for (std::uint32_t seed = 1000; networks < 100; ++seed) {
    SCOPED_TRACE(seed);
    const RandomQuantizedModel random(seed, 8000);
    if (!random.only_integers) continue;
    ++networks;
    const Outputs best = Compute(random);
    OnEveryTarget([&] { ExpectSameBytes(Compute(random), best); });
  }
}

// Large enough that chains of convolutions are streamed.
TEST(RandomQuantized, SameBytesWithoutPassesAndWithThreads) {
  CpuBudget budget(3);
  ThreadTeam team(3, budget);
  for (std::uint32_t seed = 2000; seed < 2060; ++seed) {
    SCOPED_TRACE(seed);
    const RandomQuantizedModel random(seed, 20000);
    OnEveryTarget([&] {
      const Outputs outputs = Compute(random);
      ExpectSameBytes(Compute(random, {}, &team), outputs);
      if (!random.only_integers) return;  // a float layout may change
      ExpectSameBytes(Compute(random, {.disabled_passes = {"stream-quantized"}}, &team), outputs);
      ExpectSameBytes(Compute(random, {.disabled_passes = {"drop-requantize"}}), outputs);
    });
  }
}

}  // namespace
}  // namespace tessera
