#include "pipeline/quantization/quantize_network.h"

#include <algorithm>
#include <cmath>

#include "ops/error.h"
#include "pipeline/quantization/damage.h"
#include "pipeline/quantization/int8_network.h"

namespace tessera {

void RequireFloatNetwork(const Graph& network) {
  Require(!IsQuantized(network), network.file, ": is quantised already");
  RequireFiniteWeights(network);
}

QuantizedModel QuantizeNetwork(const Graph& network, const Calibration& calibration,
                               std::optional<double> limit, const QuantizerOptions& given,
                               const SearchProgress& progress) {
  RequireFloatNetwork(network);
  // Found by trying: pictures come nearer to those in float so, also other ones than the samples;
  // trackers that clip as much lose what they follow.
  constexpr double kPictureClipCost = 1.5;
  QuantizerOptions options = given;
  if (calibration.unit == DamageUnit::kDecibels && !options.clip_cost) {
    options.clip_cost = kPictureClipCost;
  }
  if (limit) {
    return QuantizeWithin(network, calibration.samples, calibration.tests, calibration.damage,
                          *limit, options, progress);
  }
  QuantizedModel model = Quantize(network, calibration.samples, options);
  model.damage = MeasureDamage(network, model.graph, calibration.tests, calibration.damage);
  return model;
}

}  // namespace tessera
