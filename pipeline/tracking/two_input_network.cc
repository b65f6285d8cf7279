// Both towers and the head in one network, as LightTrack and FEAR are exported.
#include <array>
#include <string>
#include <vector>

#include "ops/error.h"
#include "pipeline/tracking/network_shapes.h"
#include "pipeline/tracking/siamese_network.h"
#include "pipeline/tracking/split_network.h"

namespace tessera {
namespace {

std::string Describe(const ValueDecl& declared) {
  if (!declared.has_shape) return StrCat(declared.name, " ", declared.dtype, " of any shape");
  std::string dims;
  for (const std::int64_t dim : declared.dims) {
    dims += StrCat(dims.empty() ? "" : "x", dim < 0 ? "?" : std::to_string(dim));
  }
  return StrCat(declared.name, " ", declared.dtype, " ", dims);
}

// Which input the template's patch goes to, by the names of the configuration; where it has none,
// by the declared sizes.
std::size_t FindTemplateInput(const Session& network, const TrackerConfig& config,
                              const Shape& target, const Shape& search) {
  const std::vector<ValueDecl>& inputs = network.inputs();
  std::string all;
  for (const ValueDecl& input : inputs) {
    all += StrCat(all.empty() ? "" : ", ", Describe(input));
  }
  Require(inputs.size() == 2, network.name(), ": has ", inputs.size(), " inputs (", all,
          "), want two: template and search patch");
  const auto accepts = [&](std::size_t i, const std::string& name, const Shape& shape) {
    return (name.empty() || inputs[i].name == name) && IsFloat(inputs[i].dtype) &&
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
          ", the configuration wants a template, ", wanted(config.template_input, target),
          ", and a search patch, ", wanted(config.search_input, search));
  Require(!fits(0) || !fits(1), network.name(), ": which of the inputs ", all,
          " is the template? (template_input of the configuration)");
  return fits(0) ? 0 : 1;
}

}  // namespace

std::unique_ptr<SiameseNetwork> MakeTwoInputNetwork(Session& network, const TrackerConfig& config) {
  const Shape target{1, 3, config.template_size, config.template_size};
  const Shape search{1, 3, config.search_size, config.search_size};
  const std::size_t index = FindTemplateInput(network, config, target, search);
  return std::make_unique<SplitNetwork>(
      network, index, index == 0 ? std::array{target, search} : std::array{search, target}, config);
}

}  // namespace tessera
