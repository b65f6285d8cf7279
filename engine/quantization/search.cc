// Which layers to leave in float.
#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/cpu_budget.h"
#include "engine/quantization/float_network.h"
#include "engine/quantization/quantizer.h"
#include "engine/quantization/sample_runner.h"
#include "engine/thread_team.h"

namespace tessera {
namespace {

class Search {
 public:
  Search(const FloatNetwork& network, std::span<const Sample> samples,
         std::span<const Sample> test_samples, const Damage& damage, double limit,
         const QuantizerOptions& options, Parallel& parallel, const SearchProgress& progress)
      : network_(network),
        samples_(samples),
        test_samples_(test_samples),
        damage_(damage),
        limit_(limit),
        options_(options),
        parallel_(parallel),
        progress_(progress) {
    for (std::size_t n = 0; n < network.layers.size(); ++n) {
      if (network.layers[n]) nodes_.push_back(n);
    }
    reference_ = RunSamples(network.graph, test_samples, &parallel);
  }

  QuantizedModel Run() {
    std::vector<bool> best = network_.layers;
    std::vector<double> alone(network_.layers.size(), 0);
    // Measuring, a bisection, and trials of about half of what it keeps.
    total_ = nodes_.size() + nodes_.size() / 4 + 6;
    Graph graph = Make(best, options_);
    double damage = DamageOf(graph);
    QuantizerOptions quick = options_;
    quick.fit_weights = false;
    for (const std::size_t n : nodes_) {
      std::vector<bool> only(network_.layers.size(), false);
      only[n] = true;
      alone[n] = DamageOf(Make(only, quick));
    }
    if (damage > limit_) {
      std::stable_sort(nodes_.begin(), nodes_.end(),
                       [&](std::size_t a, std::size_t b) { return alone[a] > alone[b]; });
      best = Requantize(Bisect());
      graph = Make(best, options_);
      damage = DamageOf(graph);
    }
    QuantizedModel model;
    model.graph = std::move(graph);
    model.damage = damage;
    model.layers = DescribeLayers(network_, best);
    // Reports are of all layers, excluded ones too, in order.
    for (LayerReport& report : model.layers) {
      for (const std::size_t n : nodes_) {
        if (network_.graph.nodes[n].op.name == report.name) report.damage = alone[n];
      }
    }
    if (progress_) progress_(total_, total_);
    return model;
  }

 private:
  Graph Make(const std::vector<bool>& layers, const QuantizerOptions& options) const {
    return QuantizeLayers(network_, layers, samples_, options, parallel_);
  }

  double DamageOf(const Graph& graph) {
    const double damage = damage_(reference_, RunSamples(graph, test_samples_, &parallel_));
    done_ = std::min(done_ + 1, total_ - 1);
    if (progress_) progress_(done_, total_);
    return damage;
  }

  // The layers without the first `floats` of nodes_.
  std::vector<bool> Without(std::size_t floats) const {
    std::vector<bool> layers = network_.layers;
    for (std::size_t i = 0; i < floats; ++i) layers[nodes_[i]] = false;
    return layers;
  }

  // The smallest number of layers, the worst first, with which the limit is kept.
  std::size_t Bisect() {
    std::size_t bad = 0, good = nodes_.size();
    while (good - bad > 1) {
      const std::size_t middle = bad + (good - bad) / 2;
      (DamageOf(Make(Without(middle), options_)) <= limit_ ? good : bad) = middle;
    }
    return good;
  }

  // Of those, the harmless ones first, each that the limit allows goes back to 8 bits.
  std::vector<bool> Requantize(std::size_t floats) {
    std::vector<bool> layers = Without(floats);
    // The last one made the difference.
    for (std::size_t i = floats > 0 ? floats - 1 : 0; i-- > 0;) {
      layers[nodes_[i]] = true;
      if (DamageOf(Make(layers, options_)) > limit_) layers[nodes_[i]] = false;
    }
    return layers;
  }

  const FloatNetwork& network_;
  const std::span<const Sample> samples_, test_samples_;
  const Damage& damage_;
  const double limit_;
  const QuantizerOptions& options_;
  Parallel& parallel_;
  const SearchProgress& progress_;
  std::vector<std::size_t> nodes_;  // that can be quantised
  std::vector<Outputs> reference_;
  std::size_t done_ = 0, total_ = 1;
};

}  // namespace

QuantizedModel QuantizeWithin(const Graph& network, std::span<const Sample> samples,
                              std::span<const Sample> test_samples, const Damage& damage,
                              double limit, const QuantizerOptions& options,
                              const SearchProgress& progress) {
  ThreadTeam team(AvailableCpus());
  Parallel& parallel = options.parallel != nullptr ? *options.parallel : team;
  CheckSamples(network, test_samples);
  const FloatNetwork prepared = MakeFloatNetwork(network, samples, options, parallel);
  return Search(prepared, samples, test_samples, damage, limit, options, parallel, progress).Run();
}

}  // namespace tessera
