// F5DCTNet: tells from the quantised luma DCT coefficients of a 256x256 JPEG whether the F5
// algorithm has hidden a message in them, and how large a share of them it has changed.
//
// Input `coefficients` int16 [1, 65536]: the coefficients in the places of their blocks' pixels,
// row by row. Outputs `logits_detect` [1, 2] (clean, hidden) and `beta_raw` [1, 1].
#pragma once

#include <vector>

#include "models/graph_builder.h"

namespace tessera {

struct F5DctNetSpec {
  enum class Downsampling { kAveragePool, kStridedConv };

  std::vector<int> widths;  // channels of each stage; a stage halves height and width
  Downsampling downsampling;
};

void DefineF5DctNet(GraphBuilder& graph, const F5DctNetSpec& spec);

}  // namespace tessera
