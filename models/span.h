// SPAN: six blocks of three convolutions whose result gates itself without further weights.
// C. Wan et al., Swift Parameter-free Attention Network for Efficient Super-Resolution, 2024,
// https://github.com/hongyuanyu/SPAN
#pragma once

#include "models/graph_builder.h"

namespace tessera {

struct SpanSpec {
  int features;
  int scale;
};

void DefineSpan(GraphBuilder& graph, const SpanSpec& spec);

}  // namespace tessera
