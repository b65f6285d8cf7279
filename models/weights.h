// Where the weights of a network come from: a seed, or a list of trained values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

// The normal distribution that seeded weights are drawn from.
struct WeightInit {
  double mean = 0;
  double deviation = 0;
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  // Fills `values` with the next weights of the network. A network always asks in the same order:
  // layer after layer, for each its weights, then its bias, then the slopes of its activation.
  virtual void Next(const WeightInit& init, std::span<float> values) = 0;
};

// Pseudo-random weights, the same bits on every machine.
class SeededWeights final : public WeightSource {
 public:
  explicit SeededWeights(std::uint64_t seed) : state_(seed) {}
  void Next(const WeightInit& init, std::span<float> values) override;

 private:
  std::uint64_t NextBits();

  std::uint64_t state_;
};

// Trained weights. Next throws Error when the list is too short.
class ListedWeights final : public WeightSource {
 public:
  explicit ListedWeights(std::vector<float> values) : values_(std::move(values)) {}
  void Next(const WeightInit& init, std::span<float> values) override;
  // Weights that no layer asked for.
  std::size_t remaining() const { return values_.size() - next_; }

 private:
  std::vector<float> values_;
  std::size_t next_ = 0;
};

}  // namespace tessera
