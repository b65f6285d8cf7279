// QuantizeLinear of an input of the graph -> QuantizedConv becomes a QuantizedConv of the input,
// whose bytes are never stored.
#include <optional>

#include "engine/passes/conv_fusion.h"
#include "engine/passes/passes.h"
#include "engine/passes/quantized/quantization_nodes.h"

namespace tessera {

int QuantizeInConv(Graph& graph) {
  int rewrites = 0;
  const auto producers = graph.Producers();
  const auto consumers = graph.Consumers();
  for (Node& conv : graph.nodes) {
    if (conv.op.type != "QuantizedConv") continue;
    const ValueId bytes = conv.inputs[0];
    const Node* quantize = OnlyProducer(graph, bytes, "QuantizeLinear", producers, consumers);
    if (quantize == nullptr) continue;
    // Other values may come in blocks of channels.
    const ValueId x = quantize->inputs[0];
    if (producers[static_cast<std::size_t>(x)] >= 0) continue;
    if (graph.value(x).info.dtype != DType::kFloat32) continue;
    const std::optional<ByteParameters> parameters = ReadByteParameters(graph, *quantize);
    if (!parameters || parameters->dtype != DType::kUint8) continue;
    if (parameters->q != ReadQuantization(conv.op, "x")) continue;
    const bool has_addend =
        conv.inputs.size() > kQuantizedAddend && conv.inputs[kQuantizedAddend] != kNoValue;
    const QuantizedConvParams params =
        ReadQuantizedConv(conv.op, graph.value(bytes).info.shape,
                          graph.value(conv.inputs[kQuantizedWeights]).info.shape, has_addend);
    if (!CanQuantizeInput(params.conv)) continue;
    conv.inputs[0] = x;
    ++rewrites;
  }
  return rewrites;
}

}  // namespace tessera
