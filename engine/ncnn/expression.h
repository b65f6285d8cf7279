// Sizes that a layer computes from those of its inputs, as newer files have them: "0w,*(0h,2)".
// Format: ncnn's docs/developer-guide/expression.md
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/ncnn/layers.h"

namespace tessera {

struct NcnnSize {
  std::optional<std::int64_t> known;
  ValueId value = kNoValue;  // otherwise: an int64 tensor of one element
};

// The list that `text` stands for. Sizes that are not known yet become nodes of the graph. Fails
// for what is no such list, and for functions that no size needs (sines and the like).
std::vector<NcnnSize> EvaluateNcnnSizes(NcnnLayerContext& layer, const std::string& text);

// A tensor that holds the sizes, in their order.
ValueId JoinNcnnSizes(NcnnLayerContext& layer, const std::vector<NcnnSize>& sizes);

}  // namespace tessera
