// BatchNorm, InstanceNorm, Softmax and other layers that look at many numbers and keep the shape.
#include <string>

#include "engine/ncnn/layers.h"

namespace tessera {
namespace {

using Layer = NcnnLayerContext;

void BatchNorm(Layer& layer) {
  const int channels = layer.Int(0, 0);
  const float epsilon = layer.Float(1, 0);
  const std::vector<float> scale = layer.FloatWeights(channels),
                           mean = layer.FloatWeights(channels),
                           variance = layer.FloatWeights(channels),
                           bias = layer.FloatWeights(channels);
  const NcnnBlob x = layer.ToFloat(layer.In(0));
  layer.Check(x.dims[0] < 0 || x.dims[0] == channels, "its input has ", x.dims[0],
              " channels, its weights are for ", channels);
  layer.Out(layer.Node("BatchNormalization",
                       {x.value, layer.PerChannel(scale, 1), layer.PerChannel(bias, 1),
                        layer.PerChannel(mean, 1), layer.PerChannel(variance, 1)},
                       x.dims, {{"epsilon", epsilon}}));
}

void InstanceNorm(Layer& layer) {
  const int channels = layer.Int(0, 0);
  const float epsilon = layer.Float(1, 0.001f);
  const bool affine = layer.Int(2, 1) != 0;
  const NcnnBlob x = layer.ToFloat(layer.In(0));
  layer.Check(x.rank() >= 3, "its input has ", x.rank(), " axes, it needs 3 or 4");
  std::vector<float> scale, bias;
  if (affine) {
    scale = layer.FloatWeights(channels);
    bias = layer.FloatWeights(channels);
  } else {
    layer.Check(x.dims[0] > 0, "the number of channels is not known");
    constexpr std::int64_t kMostChannels = 1 << 20;  // numbers for each
    layer.Check(x.dims[0] <= kMostChannels, "normalises ", x.dims[0], " channels");
    scale.assign(static_cast<std::size_t>(x.dims[0]), 1);
    bias.assign(static_cast<std::size_t>(x.dims[0]), 0);
  }
  layer.Out(layer.Node("InstanceNormalization",
                       {x.value, layer.PerChannel(scale, 1), layer.PerChannel(bias, 1)}, x.dims,
                       {{"epsilon", epsilon}}));
}

void Lrn(Layer& layer) {
  const int region = layer.Int(0, 0), size = layer.Int(1, 5);
  const float alpha = layer.Float(2, 1), beta = layer.Float(3, 0.75f), bias = layer.Float(4, 1);
  layer.Check(region == 0, "normalises over pixels, which is not supported");
  layer.Out(layer.Unary(
      "LRN", layer.ToFloat(layer.In(0)),
      {{"alpha", alpha}, {"beta", beta}, {"bias", bias}, {"size", std::int64_t{size}}}));
}

void Softmax(Layer& layer) {
  const int written_axis = layer.Int(0, 0), fixed = layer.Int(1, 0);
  layer.Check(written_axis == 0 || fixed != 0,
              "the file is so old that its axis means something else; convert the model anew");
  const NcnnBlob x = layer.ToFloat(layer.In(0));
  const int axis = layer.Axis(written_axis, x.rank());
  layer.Out(layer.Unary("Softmax", x, {{"axis", std::int64_t{axis + 1}}}));
}

constexpr NcnnLayerDef kLayers[] = {
    {"BatchNorm", 1, 1, 1, 1, BatchNorm},
    {"InstanceNorm", 1, 1, 1, 1, InstanceNorm},
    {"LRN", 1, 1, 1, 1, Lrn},
    {"Softmax", 1, 1, 1, 1, Softmax},
};

}  // namespace

std::span<const NcnnLayerDef> NcnnNormalizationLayers() { return kLayers; }

}  // namespace tessera
