#include "models/networks.h"

#include <algorithm>

#include "models/f5dctnet.h"
#include "models/rrdbnet.h"
#include "models/siamese.h"
#include "models/span.h"
#include "models/srvgg.h"

namespace tessera {
namespace {

using Downsampling = F5DctNetSpec::Downsampling;

constexpr NetworkDef kNetworks[] = {
    {"default-x2", "SRVGGNetCompact x2, 12 convolutions of 48 channels: the built-in default", 13,
     [](GraphBuilder& graph) { DefineSrvgg(graph, {.features = 48, .convs = 12, .scale = 2}); }},
    {"default-x4", "SRVGGNetCompact x4, 12 convolutions of 48 channels: the built-in default", 13,
     [](GraphBuilder& graph) { DefineSrvgg(graph, {.features = 48, .convs = 12, .scale = 4}); }},
    {"default-x4-restore", "default-x4 with weights for damaged pictures", 13,
     [](GraphBuilder& graph) { DefineSrvgg(graph, {.features = 48, .convs = 12, .scale = 4}); }},
    {"srvgg-x4v3", "SRVGGNetCompact x4 as in realesr-general-x4v3", 13,
     [](GraphBuilder& graph) { DefineSrvgg(graph, {.features = 64, .convs = 32, .scale = 4}); }},
    {"srvgg-animevideov3", "SRVGGNetCompact x4 as in realesr-animevideov3", 13,
     [](GraphBuilder& graph) { DefineSrvgg(graph, {.features = 64, .convs = 16, .scale = 4}); }},
    {"rrdbnet-x4plus", "RRDBNet x4 as in RealESRGAN_x4plus", 13,
     [](GraphBuilder& graph) {
       DefineRrdbNet(graph, {.features = 64, .growth = 32, .blocks = 23});
     }},
    {"rrdbnet-x4plus-anime-6b", "RRDBNet x4 as in RealESRGAN_x4plus_anime_6B", 13,
     [](GraphBuilder& graph) {
       DefineRrdbNet(graph, {.features = 64, .growth = 32, .blocks = 6});
     }},
    {"span-x4", "SPAN x4, 48 channels", 13,
     [](GraphBuilder& graph) { DefineSpan(graph, {.features = 48, .scale = 4}); }},
    {"f5dctnet-v1", "F5DCTNet, average pooling", 17,
     [](GraphBuilder& graph) {
       DefineF5DctNet(graph, {{32, 64, 128, 192}, Downsampling::kAveragePool});
     }},
    {"f5dctnet-v1s", "F5DCTNet, half as wide, average pooling", 17,
     [](GraphBuilder& graph) {
       DefineF5DctNet(graph, {{16, 32, 64, 96}, Downsampling::kAveragePool});
     }},
    {"f5dctnet-v1ss", "F5DCTNet, half as wide, strided convolutions", 17,
     [](GraphBuilder& graph) {
       DefineF5DctNet(graph, {{16, 32, 64, 96}, Downsampling::kStridedConv});
     }},
    {"siamese-two-tower", "Tracker with both towers and the head in one network", 14,
     DefineSiameseTwoTower},
};

// Zeros: enough to count with.
class NoWeights final : public WeightSource {
 public:
  void Next(const WeightInit& /*init*/, std::span<float> /*values*/) override {}
};

}  // namespace

std::span<const NetworkDef> Networks() { return kNetworks; }

const NetworkDef* FindNetwork(std::string_view name) {
  const auto found = std::ranges::find(kNetworks, name, &NetworkDef::name);
  return found == std::end(kNetworks) ? nullptr : found;
}

std::int64_t CountParameters(const NetworkDef& network) {
  NoWeights weights;
  GraphBuilder graph(network.name, network.opset, weights, WeightStorage::kFloat32);
  network.define(graph);
  return graph.parameters();
}

onnx::ModelProto BuildNetwork(const NetworkDef& network, WeightSource& weights,
                              WeightStorage storage) {
  GraphBuilder graph(network.name, network.opset, weights, storage);
  network.define(graph);
  return graph.Finish();
}

}  // namespace tessera
