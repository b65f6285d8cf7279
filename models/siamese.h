// A tracker's network in one file: a backbone that sees template and search patch with the same
// weights, and a head that looks for the one in the other. It has the parts of the small published
// ones, which are not of its exact sizes:
//
// - inverted bottlenecks, stride 16 (B. Yan et al., LightTrack, CVPR 2021,
//   https://arxiv.org/abs/2104.14545);
// - every pixel of the template's features is compared with every one of the search patch's, and
//   the result joins these; two branches of depthwise-separable convolutions follow, for the class
//   and for the box (V. Borsuk et al., FEAR, ECCV 2022, https://arxiv.org/abs/2112.07957).
//
// Inputs `template` [1, 3, 128, 128] and `search` [1, 3, 256, 256]. Outputs `classes`
// [1, 1, 16, 16], the logit of the target being at a point, and `boxes` [1, 4, 16, 16], the
// distances from the point to the left, top, right and bottom side in pixels of the search patch.
// Batch normalisation is part of the convolutions, as exporters leave it. A frame takes 256 million
// multiply-adds, a template 50 million.
#pragma once

#include "models/graph_builder.h"

namespace tessera {

void DefineSiameseTwoTower(GraphBuilder& graph);

}  // namespace tessera
