#include "pipeline/tracking/network_shapes.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "ops/error.h"

namespace tessera {

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
