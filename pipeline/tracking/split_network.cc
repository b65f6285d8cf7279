#include "pipeline/tracking/split_network.h"

#include <algorithm>

#include "ops/error.h"

namespace tessera {

SplitNetwork::SplitNetwork(Session& network, std::size_t template_index,
                           const std::array<Shape, 2>& shapes, const TrackerConfig& config)
    : template_input_(network.inputs()[template_index].name),
      search_input_(network.inputs()[1 - template_index].name),
      parts_(network.Split(template_input_, shapes)) {
  const std::vector<TensorView> features =
      parts_.first->InferOutputs(std::array{shapes[template_index]});
  Require(!features.empty(), network.name(), ": no output depends on the template, input '",
          template_input_, "'");
  std::vector<Shape> rest = {shapes[1 - template_index]};
  for (const TensorView& view : features) rest.push_back(view.shape);
  outputs_ = FindMaps(*parts_.rest, rest, config);
  Require((outputs_.side - 1) * config.stride < config.search_size, network.name(), ": ",
          outputs_.side, " points in a row, ", config.stride,
          " pixels apart (stride of the configuration), are more than search patches of ",
          config.search_size, " pixels hold");
  search_inputs_.resize(rest.size());
}

void SplitNetwork::SetTemplate(const TensorView& of_template, Parallel& parallel) {
  parts_.first->Run(std::array{NamedView{template_input_, of_template}}, features_, &parallel);
  for (std::size_t i = 0; i < features_.size(); ++i)
    search_inputs_[i + 1] = {parts_.first->outputs()[i].name, features_[i].view()};
}

SiameseNetwork::Maps SplitNetwork::Search(const TensorView& of_search, Parallel& parallel) {
  search_inputs_[0] = {search_input_, of_search};
  parts_.rest->Run(search_inputs_, maps_, &parallel);
  return {Floats(maps_[outputs_.classes], classes_), Floats(maps_[outputs_.boxes], boxes_)};
}

const float* SplitNetwork::Floats(const Tensor& map, std::vector<float>& converted) {
  if (map.dtype() == DType::kFloat32) return map.data<float>();
  const auto* halves = map.data<std::uint16_t>();
  converted.resize(static_cast<std::size_t>(map.size()));
  std::transform(halves, halves + map.size(), converted.begin(), HalfToFloat);
  return converted.data();
}

}  // namespace tessera
