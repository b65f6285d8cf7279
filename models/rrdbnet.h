// RRDBNet, the generator of ESRGAN: residual-in-residual dense blocks at the input's size, then two
// steps of nearest-neighbour upsampling with convolutions (x4 in all).
// X. Wang et al., ESRGAN: Enhanced Super-Resolution Generative Adversarial Networks, 2018
#pragma once

#include "models/graph_builder.h"

namespace tessera {

struct RrdbNetSpec {
  int features;
  int growth;  // channels that each convolution of a dense block adds
  int blocks;
};

void DefineRrdbNet(GraphBuilder& graph, const RrdbNetSpec& spec);

}  // namespace tessera
