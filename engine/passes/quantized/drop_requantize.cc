// Tables that change nothing vanish, as DequantizeLinear -> Relu -> QuantizeLinear between equal
// parameters whose zero point is the lowest byte. Those that only clamp become bounds of what makes
// their input.
#include <algorithm>
#include <optional>

#include "engine/passes/passes.h"
#include "ops/epilogue.h"
#include "ops/quantized/quantized_conv.h"

namespace tessera {
namespace {

// The bounds of table[i] = clamp(i, lowest, highest); nullopt for other tables.
struct Bounds {
  int lowest, highest;
};

std::optional<Bounds> FindBounds(const Tensor& table) {
  const auto* t = table.data<const std::uint8_t>();
  const Bounds bounds{t[0], t[255]};
  if (bounds.lowest > bounds.highest) return std::nullopt;
  for (int i = 0; i < 256; ++i) {
    if (t[i] != std::clamp(i, bounds.lowest, bounds.highest)) return std::nullopt;
  }
  return bounds;
}

// Whether `node` can clamp its bytes itself; does it. It must not have bounds yet.
bool Clamp(Node& node, const Bounds& bounds) {
  Attributes& a = node.op.attributes;
  if (node.op.type == "QuantizedAdd" && !a.Has("y_min") && !a.Has("y_max")) {
    a.Set("y_min", std::int64_t{bounds.lowest});
    a.Set("y_max", std::int64_t{bounds.highest});
    return true;
  }
  const bool has_addend =
      node.inputs.size() > kQuantizedAddend && node.inputs[kQuantizedAddend] != kNoValue;
  if (node.op.type != "QuantizedConv" || !a.Has("y_scale") || a.Has("activation") || has_addend) {
    return false;
  }
  const Quantization y = ReadQuantization(node.op, "y");
  const auto real = [&](int byte) { return static_cast<float>(byte - y.zero_point) * y.scale; };
  Epilogue epilogue;
  if (bounds.lowest == y.zero_point && bounds.highest == 255) {
    epilogue.activation = Activation::kRelu;
  } else {
    epilogue.activation = Activation::kClip;
    epilogue.alpha = real(bounds.lowest);
    epilogue.beta = real(bounds.highest);
  }
  WriteEpilogue(epilogue, a);
  return true;
}

bool IsInput(const Graph& graph, ValueId value) {
  return std::ranges::find(graph.inputs, value) != graph.inputs.end();
}

}  // namespace

int DropRequantize(Graph& graph) {
  int rewrites = 0;
  const auto producers = graph.Producers();
  for (const Node& node : graph.nodes) {
    if (node.op.type != "ByteTable") continue;
    const Tensor* table = graph.Constant(node.inputs[1]);
    const auto bounds = table != nullptr ? FindBounds(*table) : std::nullopt;
    if (!bounds) continue;
    const ValueId in = node.inputs[0], out = node.outputs[0];
    if (bounds->lowest > 0 || bounds->highest < 255) {
      const int producer = producers[static_cast<std::size_t>(in)];
      const auto readers = graph.Consumers()[static_cast<std::size_t>(in)];
      if (producer < 0 || readers.size() != 1 || graph.IsOutput(in) ||
          !Clamp(graph.nodes[static_cast<std::size_t>(producer)], *bounds)) {
        continue;
      }
    } else if (IsInput(graph, in) && graph.IsOutput(out)) {
      continue;  // something has to copy
    }
    graph.ReplaceUses(out, in);
    ++rewrites;
  }
  return rewrites;
}

}  // namespace tessera
