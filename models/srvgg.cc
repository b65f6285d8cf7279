#include "models/srvgg.h"

#include <string>

#include "models/layers.h"

namespace tessera {

using Value = GraphBuilder::Value;

void DefineSrvgg(GraphBuilder& graph, const SrvggSpec& spec) {
  const Value input = PictureInput(graph);

  // Layers are numbered as in the PyTorch module: body.0, body.1, ...
  int layer = 0;
  const auto next_name = [&] { return "body." + std::to_string(layer++); };

  // Slopes are drawn around 0.2; a gain a little under sqrt(2) makes up for what they let through.
  constexpr double kGain = 1.38;
  Value x = input;
  std::int64_t channels = 3;
  for (int i = 0; i <= spec.convs; ++i) {
    x = Conv(graph, next_name(), x, {.in = channels, .out = spec.features, .gain = kGain});
    channels = spec.features;
    const std::string name = next_name();
    const Value slope =
        graph.Weight(name + ".weight", {channels, 1, 1}, {.mean = 0.2, .deviation = 0.1});
    x = graph.Node("PRelu", name, {x, slope});
  }
  // Seeded networks add a little texture to the repeated input.
  x = Conv(graph, next_name(), x,
           {.in = channels, .out = 3 * spec.scale * spec.scale, .gain = 0.05});
  x = PixelShuffle(graph, "upsampler", x, spec.scale);

  const Value repeated = UpsampleNearest(graph, "base", input, spec.scale);
  PictureOutput(graph, graph.Node("Add", "output", {x, repeated}));
}

}  // namespace tessera
