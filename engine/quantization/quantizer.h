// From a float network and examples of its inputs to a network of 8-bit integers, as a standard
// ONNX model.
//
//   const Graph network = ImportModel("x4v3.onnx");
//   QuantizedModel model = Quantize(network, samples, {});
//   const std::string onnx = ExportOnnx(model.graph);
//
// Weights become int8, symmetric, with a scale for each output channel; activations uint8 with one
// scale and zero point, real = (q - zero_point) * scale; biases int32 of scale x_scale * w_scale.
// Before that BatchNormalization is folded and the channels of neighbouring convolutions are scaled
// to like ranges, which leaves the float function alone (M. Nagel et al., Data-Free Quantization
// Through Weight Equalization and Bias Correction, 2019, arXiv:1906.04721); after it the biases are
// shifted by what quantisation did to the mean of each channel. Maps that float operators make
// become bytes with a scale for each channel, which the weights that read them take up.
//
// Convolutions of two-dimensional maps are quantised, and with them what lies between them:
// activations, additions, and what only moves elements. Convolutions of single pixels (gates of
// squeeze-and-excitation), products of two activations and everything else stay float.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph.h"
#include "ops/parallel.h"

namespace tessera {

enum class QuantizedFormat : std::uint8_t {
  kQdq,      // QuantizeLinear and DequantizeLinear around the float operators
  kQLinear,  // QLinearConv; operators that have no such form stay as in kQdq
};

// How the range of an activation follows from the values that the samples give it.
enum class RangeMethod : std::uint8_t {
  kMinMax,      // all of them
  kPercentile,  // all but a share at either end
  kMse,         // the range with the least expected squared error
  kEntropy,     // the range whose histogram loses the least information (Kullback-Leibler)
};

std::optional<QuantizedFormat> QuantizedFormatFromName(std::string_view name);  // "qdq", "qlinear"
std::optional<RangeMethod> RangeMethodFromName(std::string_view name);          // "minmax", ...
const char* Name(RangeMethod method);

struct QuantizerOptions {
  QuantizedFormat format = QuantizedFormat::kQdq;
  RangeMethod method = RangeMethod::kMse;
  double percentile = 99.99;  // of kPercentile: what lies within the range, in percent
  // Of kMse and kEntropy: squared errors beyond the range count so many times, as other inputs than
  // the samples go further beyond. Not given: 4, and 1.5 where QuantizeNetwork has pictures.
  std::optional<double> clip_cost = {};
  // Convolutions that stay float, by the names of their nodes. Error for names that are none.
  std::set<std::string, std::less<>> excluded = {};
  bool equalize = true;
  bool correct_bias = true;
  // Rounds weights so that their errors cancel out on the samples, and the layers make up for each
  // other's (see engine/quantization/fit_weights.h). Takes most of the time, and does most for the
  // accuracy. Needs correct_bias.
  bool fit_weights = true;
  // Ranges of weights with the least squared error, rather than all of the weights.
  bool clip_weights = true;
  Parallel* parallel = nullptr;  // threads of the runs on samples; null: the CPU budget's
};

// The inputs of one run, row-major float32, in the order of the network's inputs. Shapes may differ
// from sample to sample (the two towers of a tracker: template and search areas).
using Sample = std::vector<Tensor>;
// The outputs of one run.
using Outputs = std::vector<Tensor>;

// One convolution that could be quantised.
struct LayerReport {
  std::string name, type;
  bool quantized = false;
  double damage = 0;            // with this layer alone quantised; see QuantizeWithin
  std::size_t float_bytes = 0;  // of weights and bias
  std::size_t quantized_bytes = 0;
  double share = 0;    // of the multiply-adds of all convolutions, 0 to 1
  double speedup = 1;  // expected of the layer itself, quantised against float
};

struct QuantizedModel {
  Graph graph;  // for ExportOnnx; the same inputs and outputs as the float network
  std::vector<LayerReport> layers;  // in order of execution
  double damage = 0;                // of the whole, where it was measured
};

// `network` is as imported (of any opset; the result's is 13 at least). Throws Error if there are
// no samples or they do not fit the network, and for networks that this cannot quantise.
QuantizedModel Quantize(const Graph& network, std::span<const Sample> samples,
                        const QuantizerOptions& options);

// The harm that quantisation did: from the float network's outputs and the quantised one's for the
// same samples, in order. 0 if there is none; grows with the harm; in any unit (dB, pixels, ...).
using Damage =
    std::function<double(std::span<const Outputs> reference, std::span<const Outputs> quantized)>;

// Told what QuantizeWithin does, for a progress display: steps that are done, of about how many.
using SearchProgress = std::function<void(std::size_t done, std::size_t total)>;

// Leaves as few convolutions in float as it finds to keep the damage on `test_samples` at or below
// `limit`: measures the damage that each does alone, and keeps those in float that do most until
// the whole is good enough; then quantises again those that turn out not to have mattered.
// Calibrates on `samples`. If the limit cannot be kept even with all in float, all stay float.
QuantizedModel QuantizeWithin(const Graph& network, std::span<const Sample> samples,
                              std::span<const Sample> test_samples, const Damage& damage,
                              double limit, const QuantizerOptions& options,
                              const SearchProgress& progress = {});

// A Damage for pictures with values in [0, 1]: how far the peak signal-to-noise ratio of output 0
// is below the best that 8-bit pictures can tell (58.9 dB, that of rounding), in dB.
double PictureDamage(std::span<const Outputs> reference, std::span<const Outputs> quantized);

}  // namespace tessera
