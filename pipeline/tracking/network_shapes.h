// What the inputs and outputs of a tracker's networks are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/session.h"
#include "pipeline/tracking/tracker_config.h"

namespace tessera {

struct MapOutputs {
  std::size_t classes = 0, boxes = 0;  // among the session's outputs
  std::int64_t side = 0;
};

// For these input shapes; makes the plan. Outputs are found by the names of the configuration or,
// without, by their channels: 4 for the box map, those of TrackerConfig::score for the class map.
// Throws Error, which names the model, if they are not there or not of one size.
MapOutputs FindMaps(Session& session, std::span<const Shape> input_shapes,
                    const TrackerConfig& config);

inline bool IsFloat(DType type) { return type == DType::kFloat32 || type == DType::kFloat16; }

// Of the features that a backbone makes of a patch, [1, 3, size, size]: [1, C, h, w], float32 or
// float16.
// Throws Error, which names the model, if it has more than one input or makes anything else.
Shape FeatureShape(Session& backbone, std::int64_t size);

// Which of a head's two inputs takes the template's features: by the names of the configuration,
// else by the declared sizes; where these do not tell, the first. Throws Error, which names the
// model, if it has not two inputs.
std::size_t HeadTemplateInput(const Session& head, const TrackerConfig& config,
                              const Shape& of_template, const Shape& of_search);

// Which input of a network with both towers takes the template's patch, by the names of the
// configuration; where it has none, by the declared sizes. Throws Error, which names the model, if
// its inputs are no such patches or do not tell.
std::size_t PatchTemplateInput(const Session& network, const TrackerConfig& config);

// Of patches of that size.
inline Shape PatchShape(std::int64_t size) { return {1, 3, size, size}; }

// Whether the declaration allows that shape.
bool MatchesDeclared(const ValueDecl& declared, const Shape& shape);

}  // namespace tessera
