// Layers that several networks are made of.
#pragma once

#include <cstdint>
#include <string>

#include "models/graph_builder.h"

namespace tessera {

// Seeded convolutions multiply the root mean square of their input by about `gain`, whatever
// their size; a Relu halves the mean square, so sqrt(2) keeps activations level through a stack of
// Conv + Relu (He et al., Delving Deep into Rectifiers, 2015).
inline constexpr double kReluGain = 1.41421356;
inline constexpr double kLinearGain = 1;

struct ConvSpec {
  std::int64_t in = 0, out = 0;  // channels
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t groups = 1;  // as many as channels: depthwise
  bool bias = true;
  double gain = kReluGain;
  double bias_mean = 0;
};

struct ConvWeights {
  GraphBuilder::Value weight;
  GraphBuilder::Value bias;  // empty without one
};

// NAME.weight and NAME.bias.
ConvWeights MakeConvWeights(GraphBuilder& graph, const std::string& name, const ConvSpec& spec);

// A square convolution, padded so that stride 1 keeps height and width.
GraphBuilder::Value Conv(GraphBuilder& graph, const std::string& name, const GraphBuilder::Value& x,
                         const ConvSpec& spec, const ConvWeights& weights);
// The same with weights of its own.
GraphBuilder::Value Conv(GraphBuilder& graph, const std::string& name, const GraphBuilder::Value& x,
                         const ConvSpec& spec);

// Repeats every pixel `scale` times in both directions.
GraphBuilder::Value UpsampleNearest(GraphBuilder& graph, const std::string& name,
                                    const GraphBuilder::Value& x, int scale);

// Channel (c * scale + i) * scale + j becomes the pixel (i, j) of channel c in every block of
// scale x scale pixels (PixelShuffle in PyTorch).
GraphBuilder::Value PixelShuffle(GraphBuilder& graph, const std::string& name,
                                 const GraphBuilder::Value& x, int scale);

// The declarations that all upscalers share: `input` [batch, 3, height, width] and `output`, RGB
// in [0, 1].
GraphBuilder::Value PictureInput(GraphBuilder& graph);
void PictureOutput(GraphBuilder& graph, const GraphBuilder::Value& value);

}  // namespace tessera
