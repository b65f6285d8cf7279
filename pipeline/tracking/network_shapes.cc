#include "pipeline/tracking/network_shapes.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "ops/error.h"

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

}  // namespace

bool MatchesDeclared(const ValueDecl& declared, const Shape& shape) {
  if (!declared.has_shape) return true;
  if (declared.dims.size() != static_cast<std::size_t>(shape.rank())) return false;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const std::int64_t dim = declared.dims[static_cast<std::size_t>(axis)];
    if (dim >= 0 && dim != shape[axis]) return false;
  }
  return true;
}

Shape FeatureShape(Session& backbone, std::int64_t size) {
  Require(backbone.inputs().size() == 1, backbone.name(), ": has ", backbone.inputs().size(),
          " inputs, a backbone has one");
  const Shape patch{1, 3, size, size};
  const std::vector<TensorView> features = backbone.InferOutputs(std::array{patch});
  Require(features.size() == 1 && features[0].shape.rank() == 4 && features[0].shape[0] == 1 &&
              IsFloat(features[0].dtype),
          backbone.name(), ": a backbone makes features, 1 x channels x height x width; of ", patch,
          " this makes ", features.size(), " outputs, the first ", features.at(0).dtype, " ",
          features[0].shape);
  return features[0].shape;
}

std::size_t HeadTemplateInput(const Session& head, const TrackerConfig& config,
                              const Shape& of_template, const Shape& of_search) {
  const std::vector<ValueDecl>& inputs = head.inputs();
  Require(inputs.size() == 2, head.name(), ": has ", inputs.size(),
          " inputs, a head has two: features of the template and of the search patch");
  const auto called = [&](const std::string& name, std::size_t i) {
    return !name.empty() && inputs[i].name == name;
  };
  const bool by_name = called(config.template_input, 1) || called(config.search_input, 0);
  const bool by_size = !MatchesDeclared(inputs[0], of_template) &&
                       MatchesDeclared(inputs[0], of_search) &&
                       MatchesDeclared(inputs[1], of_template);
  return by_name || by_size ? 1 : 0;
}

std::size_t PatchTemplateInput(const Session& network, const TrackerConfig& config) {
  const Shape target = PatchShape(config.template_size), search = PatchShape(config.search_size);
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

MapOutputs FindMaps(Session& session, std::span<const Shape> input_shapes,
                    const TrackerConfig& config) {
  const std::vector<TensorView> maps = session.InferOutputs(input_shapes);
  std::string all;
  for (std::size_t i = 0; i < maps.size(); ++i)
    all += StrCat(i == 0 ? "" : ", ", session.outputs()[i].name, " ", maps[i].shape);
  // The only output that is called so or, without a name, has so many channels.
  const auto find = [&](const std::string& name, std::int64_t channels, const char* what) {
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < maps.size(); ++i) {
      const Shape& shape = maps[i].shape;
      const bool fits = shape.rank() == 4 && shape[0] == 1 && shape[1] == channels &&
                        shape[2] == shape[3] && shape[2] > 0 && IsFloat(maps[i].dtype);
      if (!name.empty() ? session.outputs()[i].name != name : !fits) continue;
      Require(fits, session.name(), ": the ", what, " map '", name, "' is ", maps[i].shape,
              ", want 1x", channels, "xNxN");
      Require(!found, session.name(), ": more than one output has ", channels,
              " channels: which is the ", what, " map? (outputs: ", all, ")");
      found = i;
    }
    Require(found.has_value(), session.name(), ": no output is the ", what, " map, ",
            name.empty() ? StrCat("1x", channels, "xNxN") : name, " (outputs: ", all, ")");
    return *found;
  };
  MapOutputs outputs;
  outputs.classes = find(config.class_output, config.score == ScoreKind::kSoftmax ? 2 : 1, "class");
  outputs.boxes = find(config.box_output, 4, "box");
  outputs.side = maps[outputs.classes].shape[2];
  Require(maps[outputs.boxes].shape[2] == outputs.side, session.name(),
          ": class and box map differ in size (outputs: ", all, ")");
  return outputs;
}

}  // namespace tessera
