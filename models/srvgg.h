// SRVGGNetCompact: a stack of 3x3 convolutions with PRelu at the input's size, a pixel shuffle, and
// the repeated input on top. X. Wang et al., https://github.com/xinntao/Real-ESRGAN
#pragma once

#include "models/graph_builder.h"

namespace tessera {

struct SrvggSpec {
  int features;  // channels of the body
  int convs;     // convolutions of the body
  int scale;
};

void DefineSrvgg(GraphBuilder& graph, const SrvggSpec& spec);

}  // namespace tessera
