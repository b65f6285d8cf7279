#include "models/weights.h"

#include <algorithm>

#include "ops/error.h"

namespace tessera {

// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
std::uint64_t SeededWeights::NextBits() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

void SeededWeights::Next(const WeightInit& init, std::span<float> values) {
  // The sum of twelve uniform numbers is close to normal. Unlike std::normal_distribution or
  // Box-Muller it needs no function that differs between C libraries: the sum is an integer, its
  // product with a float is exact in double precision, and so a fused multiply-add rounds alike.
  const double deviation = static_cast<float>(init.deviation);
  for (float& value : values) {
    std::int64_t sum = 0;
    for (int i = 0; i < 3; ++i) {
      for (std::uint64_t bits = NextBits(), part = 0; part < 4; ++part, bits >>= 16) {
        sum += static_cast<std::int64_t>(bits & 0xffff);
      }
    }
    const double normal = static_cast<double>(sum - 6 * 65535) / 65536;
    value = static_cast<float>(init.mean + deviation * normal);
  }
}

void ListedWeights::Next(const WeightInit& /*init*/, std::span<float> values) {
  Require(values.size() <= remaining(), "only ", values_.size(),
          " weights, the network takes more");
  std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(next_), values.size(), values.begin());
  next_ += values.size();
}

}  // namespace tessera
