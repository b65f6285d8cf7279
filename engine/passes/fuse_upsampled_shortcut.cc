// y = DepthToSpace(x) + Resize(image), the Resize a mere repetition of pixels: the end of SRVGG
// networks, in float or of bytes. Wang et al., "Real-ESRGAN", https://arxiv.org/abs/2107.10833
#include "engine/infer.h"
#include "engine/passes/conv_fusion.h"
#include "engine/passes/passes.h"
#include "ops/resize_axis.h"

namespace tessera {

int FuseUpsampledShortcut(Graph& graph) {
  int rewrites = 0;
  const auto producers = graph.Producers();
  const auto consumers = graph.Consumers();
  for (Node& add : graph.nodes) {
    if (add.op.type != "Add") continue;
    for (int flip = 0; flip < 2; ++flip) {
      const ValueId large = add.inputs[flip ? 1 : 0], enlarged = add.inputs[flip ? 0 : 1];
      const Node* unfold = OnlyProducer(graph, large, "DepthToSpace", producers, consumers);
      if (unfold == nullptr) {
        unfold = OnlyProducer(graph, large, "QuantizedDepthToSpace", producers, consumers);
      }
      const Node* resize = OnlyProducer(graph, enlarged, "Resize", producers, consumers);
      if (resize == nullptr) {
        resize = OnlyProducer(graph, enlarged, "Upsample", producers, consumers);
      }
      if (unfold == nullptr || resize == nullptr) continue;
      const TensorInfo& sum = graph.value(add.outputs[0]).info;
      if (sum.dtype != DType::kFloat32 || sum.shape != graph.value(large).info.shape ||
          sum.shape != graph.value(enlarged).info.shape) {
        continue;
      }
      const int repeat = AtNode(graph, *resize, [&] {
        return ReadResize(resize->op, InputInfos(graph, *resize)).PixelRepeat();
      });
      if (repeat != unfold->op.attributes.Int("blocksize", 0)) continue;
      Node fused = *unfold;
      if (fused.op.type == "DepthToSpace") {
        fused.op.type = "FusedDepthToSpace";
        fused.def = FindOp(fused.op.type);
      }
      fused.inputs = {unfold->inputs[0], resize->inputs[0]};
      fused.outputs = add.outputs;
      add = std::move(fused);  // in the place of the Add, where both inputs are certainly there
      ++rewrites;
      break;
    }
  }
  return rewrites;
}

}  // namespace tessera
