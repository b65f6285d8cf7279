#include "pipeline/quantization/tracker_inputs.h"

#include <algorithm>
#include <utility>

#include "ops/error.h"
#include "pipeline/quantization/damage.h"
#include "pipeline/tracking/network_shapes.h"

namespace tessera {
namespace {

Sample Pair(const Tensor& of_template, const Tensor& of_search, std::size_t template_index) {
  Sample sample;
  sample.push_back(template_index == 0 ? of_template.Clone() : of_search.Clone());
  sample.push_back(template_index == 0 ? of_search.Clone() : of_template.Clone());
  return sample;
}

// Features may be float16; samples are not.
Tensor AsFloats(const Tensor& tensor) {
  return Tensor::FromVector(tensor.shape(), ToFloats(tensor.view()));
}

}  // namespace

TrackerSamples SomeOf(const TrackerSamples& samples, std::size_t count) {
  TrackerSamples some;
  for (const Tensor& target : samples.targets) some.targets.push_back(target.Clone());
  const std::size_t all = samples.searches.size();
  count = std::min(count, all);
  for (std::size_t i = 0; i < count; ++i) {
    const SearchSample& from = samples.searches[i * all / count];
    some.searches.push_back({from.target, from.patch.Clone(), from.width, from.height});
  }
  return some;
}

std::vector<Sample> ModelInputs(const TrackerSessions& sessions, const TrackerSamples& samples) {
  std::vector<Sample> inputs;
  if (sessions.model->inputs().size() == 2) {
    const std::size_t index = PatchTemplateInput(*sessions.model, sessions.config);
    for (const SearchSample& search : samples.searches)
      inputs.push_back(Pair(samples.targets[search.target], search.patch, index));
    return inputs;
  }
  // These throw what is wrong with the network.
  FeatureShape(*sessions.model, sessions.config.template_size);
  FeatureShape(*sessions.model, sessions.config.search_size);
  const auto add = [&inputs](const Tensor& patch) {
    inputs.emplace_back().push_back(patch.Clone());
  };
  for (const Tensor& target : samples.targets) add(target);
  for (const SearchSample& search : samples.searches) add(search.patch);
  return inputs;
}

std::vector<Sample> PairFeatures(const TrackerSessions& sessions, const TrackerSamples& samples,
                                 std::span<const Outputs> features) {
  const std::size_t targets = samples.targets.size();
  Require(targets > 0 && !samples.searches.empty(), "there are no samples of the target");
  const std::size_t index = HeadTemplateInput(
      *sessions.head, sessions.config, features[0].at(0).shape(), features[targets].at(0).shape());
  std::vector<Sample> pairs;
  for (std::size_t i = 0; i < samples.searches.size(); ++i) {
    pairs.push_back(Pair(AsFloats(features[samples.searches[i].target][0]),
                         AsFloats(features[targets + i][0]), index));
  }
  return pairs;
}

std::vector<Sample> HeadInputs(const TrackerSessions& sessions, const TrackerSamples& samples,
                               Parallel* parallel) {
  return PairFeatures(sessions, samples,
                      RunSamples(*sessions.model, ModelInputs(sessions, samples), parallel));
}

}  // namespace tessera
