#include "models/rrdbnet.h"

#include <string>

#include "models/layers.h"

namespace tessera {
namespace {

using Value = GraphBuilder::Value;

class RrdbNetWriter {
 public:
  RrdbNetWriter(GraphBuilder& graph, const RrdbNetSpec& spec)
      : graph_(graph), spec_(spec), residual_scale_(graph.Scalar("residual_scale", 0.2f)) {}

  void Write() {
    const Value first =
        Conv(graph_, "conv_first", PictureInput(graph_), {.in = 3, .out = spec_.features});
    Value x = first;
    // A block returns x + 0.2 f(x), and f(x) contains x: activations grow by about 1.2 a block,
    // which the seeded convolution after the last one takes back.
    double body_gain = 1;
    for (int i = 0; i < spec_.blocks; ++i) {
      x = Block("body." + std::to_string(i), x);
      body_gain /= 1.21;
    }
    x = FeatureConv("conv_body", x, body_gain);
    x = graph_.Node("Add", "body", {first, x});

    for (const std::string name : {"conv_up1", "conv_up2"}) {
      x = FeatureConv(name, UpsampleNearest(graph_, name + ".upsample", x, 2), kReluGain);
      x = LeakyRelu(name, x);
    }
    x = LeakyRelu("conv_hr", FeatureConv("conv_hr", x, kReluGain));
    PictureOutput(graph_, Conv(graph_, "output", x,
                               {.in = spec_.features, .out = 3, .gain = 0.15, .bias_mean = 0.5}));
  }

 private:
  Value FeatureConv(const std::string& name, const Value& x, double gain) {
    return Conv(graph_, name, x, {.in = spec_.features, .out = spec_.features, .gain = gain});
  }

  Value LeakyRelu(const std::string& name, const Value& x) {
    return graph_.Node("LeakyRelu", name + ".lrelu", {x}, {{"alpha", 0.2f}});
  }

  // x + 0.2 * y
  Value Residual(const std::string& name, const Value& x, const Value& y) {
    const Value scaled = graph_.Node("Mul", name + ".scaled", {y, residual_scale_});
    return graph_.Node("Add", name, {scaled, x});
  }

  // Five convolutions, each on the concatenation of the block's input and all results before.
  Value DenseBlock(const std::string& name, const Value& x) {
    std::vector<Value> parts = {x};
    std::int64_t channels = spec_.features;
    for (int i = 1; i <= 4; ++i, channels += spec_.growth) {
      const std::string conv = name + ".conv" + std::to_string(i);
      const Value y =
          Conv(graph_, conv, Joined(conv, parts), {.in = channels, .out = spec_.growth});
      parts.push_back(LeakyRelu(conv, y));
    }
    const std::string conv = name + ".conv5";
    return Residual(name, x,
                    Conv(graph_, conv, Joined(conv, parts),
                         {.in = channels, .out = spec_.features, .gain = kLinearGain}));
  }

  Value Joined(const std::string& conv, const std::vector<Value>& parts) {
    if (parts.size() == 1) return parts[0];
    return graph_.Node("Concat", conv + ".input", parts, {{"axis", std::int64_t{1}}});
  }

  Value Block(const std::string& name, const Value& x) {
    Value y = x;
    for (int i = 1; i <= 3; ++i) y = DenseBlock(name + ".rdb" + std::to_string(i), y);
    return Residual(name, x, y);
  }

  GraphBuilder& graph_;
  const RrdbNetSpec& spec_;
  const Value residual_scale_;
};

}  // namespace

void DefineRrdbNet(GraphBuilder& graph, const RrdbNetSpec& spec) {
  RrdbNetWriter(graph, spec).Write();
}

}  // namespace tessera
