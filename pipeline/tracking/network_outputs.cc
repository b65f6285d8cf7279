#include "pipeline/tracking/network_outputs.h"

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
                        shape[2] == shape[3] && shape[2] > 0 && maps[i].dtype == DType::kFloat32;
      if (!name.empty() ? session.outputs()[i].name != name : !fits) continue;
      Require(fits, session.name(), ": the ", what, " map '", name, "' is ", maps[i].shape,
              ", want float32 1x", channels, "xNxN");
      Require(!found, session.name(), ": more than one output has ", channels,
              " channels: which is the ", what, " map? (outputs: ", all, ")");
      found = i;
    }
    Require(found.has_value(), session.name(), ": no output is the ", what, " map, ",
            name.empty() ? StrCat("float32 1x", channels, "xNxN") : name, " (outputs: ", all, ")");
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
