// Both towers and the head in one network, as LightTrack and FEAR are exported.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "ops/error.h"
#include "pipeline/tracking/network_outputs.h"
#include "pipeline/tracking/siamese_network.h"

namespace tessera {
namespace {

std::string Describe(const ValueDecl& declared) {
  if (!declared.has_shape) return StrCat(declared.name, " of any shape");
  std::string dims;
  for (const std::int64_t dim : declared.dims) {
    dims += StrCat(dims.empty() ? "" : "x", dim < 0 ? "?" : std::to_string(dim));
  }
  return StrCat(declared.name, " ", dims);
}

struct InputIndices {
  std::size_t of_template, of_search;
};

// By the names of the configuration; where it has none, by the declared sizes.
InputIndices FindInputs(const Session& network, const TrackerConfig& config, const Shape& target,
                        const Shape& search) {
  const std::vector<ValueDecl>& inputs = network.inputs();
  std::string all;
  for (const ValueDecl& input : inputs) {
    all += StrCat(all.empty() ? "" : ", ", Describe(input));
  }
  Require(inputs.size() == 2, network.name(), ": has ", inputs.size(), " inputs (", all,
          "), want two: template and search patch");
  const auto accepts = [&](std::size_t i, const std::string& name, const Shape& shape) {
    return (name.empty() || inputs[i].name == name) && inputs[i].dtype == DType::kFloat32 &&
           MatchesDeclared(inputs[i], shape);
  };
  const auto fits = [&](std::size_t of_template) {
    return accepts(of_template, config.template_input, target) &&
           accepts(1 - of_template, config.search_input, search);
  };
  const auto wanted = [](const std::string& name, const Shape& shape) {
    return StrCat(name.empty() ? "" : name + " ", shape);
  };
  Require(fits(0) || fits(1), network.name(), ": has the inputs ", all,
          ", the configuration wants a template, float32 ", wanted(config.template_input, target),
          ", and a search patch, float32 ", wanted(config.search_input, search));
  Require(!fits(0) || !fits(1), network.name(), ": which of the inputs ", all,
          " is the template? (template_input of the configuration)");
  return fits(0) ? InputIndices{0, 1} : InputIndices{1, 0};
}

class TwoInputNetwork final : public SiameseNetwork {
 public:
  TwoInputNetwork(Session& network, const TrackerConfig& config) {
    const Shape target{1, 3, config.template_size, config.template_size};
    const Shape search{1, 3, config.search_size, config.search_size};
    const InputIndices inputs = FindInputs(network, config, target, search);
    template_input_ = network.inputs()[inputs.of_template].name;
    search_input_ = network.inputs()[inputs.of_search].name;

    std::array<Shape, 2> shapes;
    shapes[inputs.of_template] = target;
    shapes[inputs.of_search] = search;
    parts_ = network.Split(template_input_, shapes);
    const std::vector<TensorView> features = parts_.first->InferOutputs(std::array{target});
    Require(!features.empty(), network.name(), ": no output depends on the template, input '",
            template_input_, "'");
    std::vector<Shape> rest = {search};
    for (const TensorView& view : features) rest.push_back(view.shape);
    outputs_ = FindMaps(*parts_.rest, rest, config);
    Require((outputs_.side - 1) * config.stride < config.search_size, network.name(), ": ",
            outputs_.side, " points in a row, ", config.stride,
            " pixels apart (stride of the configuration), are more than search patches of ",
            config.search_size, " pixels hold");
    search_inputs_.resize(rest.size());
  }

  std::int64_t map_side() const override { return outputs_.side; }

  void SetTemplate(const TensorView& patch, Parallel& parallel) override {
    parts_.first->Run(std::array{NamedView{template_input_, patch}}, features_, &parallel);
    for (std::size_t i = 0; i < features_.size(); ++i) {
      search_inputs_[i + 1] = {parts_.first->outputs()[i].name, features_[i].view()};
    }
  }

  Maps Search(const TensorView& patch, Parallel& parallel) override {
    search_inputs_[0] = {search_input_, patch};
    parts_.rest->Run(search_inputs_, maps_, &parallel);
    return {maps_[outputs_.classes].data<float>(), maps_[outputs_.boxes].data<float>()};
  }

 private:
  std::string template_input_, search_input_;
  Session::Parts parts_;  // the template's tower, which runs once, and the rest
  MapOutputs outputs_;
  std::vector<NamedView> search_inputs_;  // the patch, and what the first part made
  std::vector<Tensor> features_, maps_;
};

}  // namespace

std::unique_ptr<SiameseNetwork> MakeTwoInputNetwork(std::shared_ptr<Session> network,
                                                    const TrackerConfig& config) {
  return std::make_unique<TwoInputNetwork>(*network, config);
}

}  // namespace tessera
