#include "engine/quantization/float_network.h"

#include <utility>

#include "engine/infer.h"
#include "engine/passes/conv_fusion.h"
#include "engine/quantization/adapt_layers.h"
#include "engine/quantization/equalize.h"
#include "engine/quantization/insert_qdq.h"
#include "engine/quantization/placement.h"
#include "engine/quantization/prepare.h"
#include "engine/quantization/sample_runner.h"
#include "ops/conv.h"

namespace tessera {
namespace {

Graph WithShapes(Graph graph, const Sample& sample) {
  std::vector<Shape> shapes;
  for (const Tensor& t : sample) shapes.push_back(t.shape());
  InferShapes(graph, shapes);
  return graph;
}

void Exclude(const Graph& graph, const QuantizerOptions& options, std::vector<bool>& layers) {
  std::set<std::string, std::less<>> unknown = options.excluded;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (!options.excluded.contains(node.op.name)) continue;
    unknown.erase(node.op.name);
    layers[n] = false;
  }
  Require(unknown.empty(), graph.file, ": no node '", unknown.empty() ? "" : *unknown.begin(),
          "' that could stay float");
}

// Measured on kernels of one core with VNNI against those of float: those of wide 3x3 convolutions
// multiply four times as much a cycle, but Winograd's need fewer multiplications by as much.
double ExpectedSpeedup(const Node& conv, const Shape& w) {
  const std::vector<std::int64_t> strides = conv.op.attributes.Ints("strides", {1, 1});
  const bool winograd = w[1] >= 16 && w[2] == 3 && w[3] == 3 && strides[0] == 1 && strides[1] == 1;
  return winograd ? 1.0 : 3.0;
}

}  // namespace

FloatNetwork MakeFloatNetwork(const Graph& imported, std::span<const Sample> samples,
                              const QuantizerOptions& options, Parallel& parallel) {
  CheckSamples(imported, samples);
  FloatNetwork network;
  network.graph = PrepareForQuantizing(imported);
  network.shapes = WithShapes(network.graph, samples[0]);
  if (options.equalize &&
      EqualizeChannels(network.graph, network.shapes,
                       FindChannelRanges(network.graph, samples, parallel)) > 0) {
    network.graph.RemoveDeadNodes();
    network.shapes = WithShapes(network.graph, samples[0]);
  }
  network.calibration = Calibrate(network.graph, samples, parallel);
  network.layers = FindLayers(network.graph, network.shapes);
  Exclude(network.graph, options, network.layers);
  return network;
}

Graph QuantizeLayers(const FloatNetwork& network, const std::vector<bool>& layers,
                     std::span<const Sample> samples, const QuantizerOptions& options,
                     Parallel& parallel) {
  const Graph& graph = network.graph;
  const Placement placement =
      Place(graph, network.shapes, layers, network.calibration, options.format);
  const ActivationParameters parameters =
      ChooseParameters(graph, placement, network.calibration, options.method, options.percentile,
                       options.clip_cost.value_or(kClipCost));
  WeightsByLayer weights;
  std::map<std::string, std::vector<double>, std::less<>> means;
  std::map<std::string, float, std::less<>> x_scales;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!layers[n]) continue;
    const Node& node = graph.nodes[n];
    const std::string& name = node.op.name;
    const bool has_bias = node.inputs.size() > kConvBias && node.inputs[kConvBias] != kNoValue;
    x_scales[name] = parameters.at(node.inputs[0]).scale;
    means[name] = network.calibration.means.at(node.outputs[0]);
    weights[name] = AtNode(graph, node, [&] {
      return RoundWeights(*graph.Constant(node.inputs[1]),
                          has_bias ? graph.Constant(node.inputs[kConvBias]) : nullptr,
                          x_scales[name], options.clip_weights);
    });
  }
  Graph quantized = InsertQdq(graph, network.shapes, placement, parameters, weights);
  if (options.correct_bias) {
    AdaptLayers(graph, quantized, samples, means, x_scales, options.fit_weights,
                options.clip_weights, parallel, weights);
    quantized = InsertQdq(graph, network.shapes, placement, parameters, weights);
  }
  if (options.format == QuantizedFormat::kQLinear) UseQLinearConv(quantized);
  return quantized;
}

std::vector<LayerReport> DescribeLayers(const FloatNetwork& network,
                                        const std::vector<bool>& quantized) {
  const Graph& graph = network.graph;
  const std::vector<bool> layers = FindLayers(graph, network.shapes);
  std::vector<LayerReport> reports;
  double total = 0;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!layers[n]) continue;
    const Node& node = graph.nodes[n];
    const Shape& w = graph.Constant(node.inputs[1])->shape();
    const Shape& y = network.shapes.value(node.outputs[0]).info.shape;
    LayerReport report;
    report.name = node.op.name;
    report.type = w[1] == 1 && w[0] > 1 ? "depthwise" : w[2] * w[3] == 1 ? "pointwise" : "Conv";
    report.type = StrCat(report.type, " ", w[2], "x", w[3]);
    report.quantized = quantized[n];
    const auto weights = static_cast<std::size_t>(w.NumElements());
    const auto channels = static_cast<std::size_t>(w[0]);
    const bool has_bias = node.inputs.size() > kConvBias && node.inputs[kConvBias] != kNoValue;
    report.float_bytes = 4 * (weights + (has_bias ? channels : 0));
    report.quantized_bytes = weights + 4 * channels * (has_bias ? 2 : 1);  // with the scales
    report.share = static_cast<double>(w.NumElements(1, 4)) * static_cast<double>(y.NumElements());
    report.speedup = ExpectedSpeedup(node, w);
    total += report.share;
    reports.push_back(std::move(report));
  }
  for (LayerReport& report : reports) report.share /= total;
  return reports;
}

}  // namespace tessera
