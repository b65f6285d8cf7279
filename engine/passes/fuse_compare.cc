// y = Cast(a == b) and the like: zeros and ones as floats, without bools in between.
#include <array>

#include "engine/passes/conv_fusion.h"
#include "engine/passes/passes.h"

namespace tessera {

int FuseCompare(Graph& graph) {
  constexpr std::array<std::string_view, 5> kComparisons = {"Equal", "Greater", "GreaterOrEqual",
                                                            "Less", "LessOrEqual"};
  int rewrites = 0;
  const auto producers = graph.Producers();
  const auto consumers = graph.Consumers();
  for (Node& cast : graph.nodes) {
    if (cast.op.type != "Cast" || graph.value(cast.outputs[0]).info.dtype != DType::kFloat32) {
      continue;
    }
    for (const std::string_view type : kComparisons) {
      const Node* compare = OnlyProducer(graph, cast.inputs[0], type, producers, consumers);
      if (compare == nullptr) continue;
      const DType dtype = graph.value(compare->inputs[0]).info.dtype;
      if (dtype != DType::kFloat32) break;
      cast.op.attributes = Attributes();
      cast.op.attributes.Set("function", std::string(type));
      cast.op.type = "FusedCompare";
      cast.def = FindOp(cast.op.type);
      cast.inputs = compare->inputs;
      ++rewrites;
      break;
    }
  }
  return rewrites;
}

}  // namespace tessera
