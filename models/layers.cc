#include "models/layers.h"

#include <cmath>

namespace tessera {

using Value = GraphBuilder::Value;

Value Conv(GraphBuilder& graph, const std::string& name, const Value& x, const ConvSpec& spec) {
  const double fan_in = static_cast<double>(spec.in * spec.kernel * spec.kernel);
  std::vector<Value> inputs = {
      x, graph.Weight(name + ".weight", {spec.out, spec.in, spec.kernel, spec.kernel},
                      {.mean = 0, .deviation = spec.gain / std::sqrt(fan_in)})};
  if (spec.bias) {
    inputs.push_back(graph.Weight(name + ".bias", {spec.out},
                                  {.mean = spec.bias_mean, .deviation = 0.02 * spec.gain}));
  }
  const std::int64_t pad = spec.kernel / 2;
  return graph.Node("Conv", name, std::move(inputs),
                    {{"dilations", std::vector<std::int64_t>{1, 1}},
                     {"kernel_shape", std::vector<std::int64_t>{spec.kernel, spec.kernel}},
                     {"pads", std::vector<std::int64_t>{pad, pad, pad, pad}},
                     {"strides", std::vector<std::int64_t>{spec.stride, spec.stride}}});
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
