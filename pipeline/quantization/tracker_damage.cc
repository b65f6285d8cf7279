#include "pipeline/quantization/tracker_damage.h"

#include <memory>
#include <utility>

#include "pipeline/quantization/damage.h"
#include "pipeline/tracking/box.h"
#include "pipeline/tracking/network_shapes.h"
#include "pipeline/tracking/point_ranking.h"

namespace tessera {
namespace {

// Boxes around the patch's middle from the maps of a network.
class BoxFinder {
 public:
  BoxFinder(Session& network, const Sample& sample, const TrackerConfig& config)
      : config_(config), outputs_(Find(network, sample, config)), ranking_(config, outputs_.side) {}

  Box Find(const Outputs& outputs, const SearchSample& search) const {
    const std::vector<float> classes = ToFloats(outputs[outputs_.classes].view());
    const std::vector<float> boxes = ToFloats(outputs[outputs_.boxes].view());
    const PointChoice choice = ranking_.Choose({classes.data(), boxes.data()}, search.width,
                                               search.height, config_.window_influence);
    if (!choice.found()) return {};
    return {choice.dx - choice.width / 2, choice.dy - choice.height / 2, choice.width,
            choice.height};
  }

 private:
  static MapOutputs Find(Session& network, const Sample& sample, const TrackerConfig& config) {
    std::vector<Shape> shapes;
    for (const Tensor& input : sample) shapes.push_back(input.shape());
    return FindMaps(network, shapes, config);
  }

  const TrackerConfig config_;
  const MapOutputs outputs_;
  const PointRanking ranking_;
};

double Disagreement(const BoxFinder& finder, const std::vector<SearchSample>& searches,
                    std::span<const Outputs> reference, std::span<const Outputs> quantized) {
  double sum = 0;
  for (std::size_t i = 0; i < searches.size(); ++i) {
    const Box a = finder.Find(reference[i], searches[i]);
    const Box b = finder.Find(quantized[i], searches[i]);
    sum += a == b ? 0 : 1 - Overlap(a, b);
  }
  return sum / static_cast<double>(searches.size());
}

Damage BoxDamage(Session& network, const Sample& sample, const TrackerConfig& config,
                 std::shared_ptr<const TrackerSamples> samples) {
  const auto finder = std::make_shared<const BoxFinder>(network, sample, config);
  return [finder, samples = std::move(samples)](std::span<const Outputs> reference,
                                                std::span<const Outputs> quantized) {
    return Disagreement(*finder, samples->searches, reference, quantized);
  };
}

std::shared_ptr<const TrackerSamples> Keep(const TrackerSamples& samples) {
  return std::make_shared<const TrackerSamples>(SomeOf(samples, samples.searches.size()));
}

}  // namespace

Damage HeadBoxDamage(const TrackerSessions& sessions, const TrackerSamples& samples) {
  return BoxDamage(*sessions.head, HeadInputs(sessions, SomeOf(samples, 1)).at(0), sessions.config,
                   Keep(samples));
}

Damage ModelBoxDamage(const TrackerSessions& sessions, const TrackerSamples& samples) {
  if (sessions.head == nullptr) {
    return BoxDamage(*sessions.model, ModelInputs(sessions, SomeOf(samples, 1)).at(0),
                     sessions.config, Keep(samples));
  }
  const auto kept = Keep(samples);
  const auto maps = [sessions, kept](std::span<const Outputs> features) {
    return RunSamples(*sessions.head, PairFeatures(sessions, *kept, features));
  };
  return [maps, boxes = HeadBoxDamage(sessions, samples)](std::span<const Outputs> reference,
                                                          std::span<const Outputs> quantized) {
    return boxes(maps(reference), maps(quantized));
  };
}

}  // namespace tessera
