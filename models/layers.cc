#include "models/layers.h"

#include <cmath>

namespace tessera {

using Value = GraphBuilder::Value;

ConvWeights MakeConvWeights(GraphBuilder& graph, const std::string& name, const ConvSpec& spec) {
  const std::int64_t in = spec.in / spec.groups;
  const double fan_in = static_cast<double>(in * spec.kernel * spec.kernel);
  ConvWeights weights;
  weights.weight = graph.Weight(name + ".weight", {spec.out, in, spec.kernel, spec.kernel},
                                {.mean = 0, .deviation = spec.gain / std::sqrt(fan_in)});
  if (spec.bias) {
    weights.bias = graph.Weight(name + ".bias", {spec.out},
                                {.mean = spec.bias_mean, .deviation = 0.02 * spec.gain});
  }
  return weights;
}

Value Conv(GraphBuilder& graph, const std::string& name, const Value& x, const ConvSpec& spec,
           const ConvWeights& weights) {
  std::vector<Value> inputs = {x, weights.weight};
  if (!weights.bias.empty()) inputs.push_back(weights.bias);
  const std::int64_t pad = spec.kernel / 2;
  std::vector<GraphBuilder::Attribute> attributes = {
      {"dilations", std::vector<std::int64_t>{1, 1}},
      {"kernel_shape", std::vector<std::int64_t>{spec.kernel, spec.kernel}},
      {"pads", std::vector<std::int64_t>{pad, pad, pad, pad}},
      {"strides", std::vector<std::int64_t>{spec.stride, spec.stride}}};
  if (spec.groups > 1) attributes.push_back({"group", spec.groups});
  return graph.Node("Conv", name, std::move(inputs), std::move(attributes));
}

Value Conv(GraphBuilder& graph, const std::string& name, const Value& x, const ConvSpec& spec) {
  return Conv(graph, name, x, spec, MakeConvWeights(graph, name, spec));
}

Value UpsampleNearest(GraphBuilder& graph, const std::string& name, const Value& x, int scale) {
  const float factor = static_cast<float>(scale);
  const Value scales = graph.Floats(name + ".scales", {4}, {1.0f, 1.0f, factor, factor});
  return graph.Node("Resize", name, {x, "", scales},
                    {{"coordinate_transformation_mode", "asymmetric"},
                     {"mode", "nearest"},
                     {"nearest_mode", "floor"}});
}

Value PixelShuffle(GraphBuilder& graph, const std::string& name, const Value& x, int scale) {
  return graph.Node("DepthToSpace", name, {x},
                    {{"blocksize", std::int64_t{scale}}, {"mode", "CRD"}});
}

Value PictureInput(GraphBuilder& graph) {
  return graph.Input("input", onnx::TensorProto::FLOAT, {"batch", 3, "height", "width"});
}

void PictureOutput(GraphBuilder& graph, const Value& value) {
  graph.Output(value, onnx::TensorProto::FLOAT, {"batch", 3, "out_height", "out_width"});
}

}  // namespace tessera
