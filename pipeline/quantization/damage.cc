#include "pipeline/quantization/damage.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/onnx_export.h"
#include "ops/error.h"
#include "pipeline/format_text.h"

namespace tessera {
namespace {

// Of values from 0 to 1 that are rounded to 255 steps: the mean squared error is step^2 / 12.
const double kRoundingPsnr = 10 * std::log10(12.0 * 255 * 255);

}  // namespace

std::shared_ptr<Session> MakeSession(const Graph& graph) {
  const std::string onnx = ExportOnnx(graph);
  return Session::LoadFromMemory(std::as_bytes(std::span(onnx)), graph.file);
}

std::vector<Sample> SomeOf(std::span<const Sample> samples, std::size_t count) {
  std::vector<Sample> some;
  count = std::min(count, samples.size());
  for (std::size_t i = 0; i < count; ++i) {
    Sample& copy = some.emplace_back();
    for (const Tensor& tensor : samples[i * samples.size() / count]) copy.push_back(tensor.Clone());
  }
  return some;
}

std::vector<Outputs> RunSamples(Session& session, std::span<const Sample> samples,
                                Parallel* parallel) {
  std::vector<Outputs> all;
  for (const Sample& sample : samples) {
    Require(sample.size() == session.inputs().size(), session.name(), ": has ",
            session.inputs().size(), " inputs, a sample holds ", sample.size());
    std::vector<NamedView> inputs;
    for (std::size_t i = 0; i < sample.size(); ++i)
      inputs.push_back({session.inputs()[i].name, sample[i].view()});
    session.Run(inputs, all.emplace_back(), parallel);
    for (Tensor& t : all.back()) {
      if (t.dtype() == DType::kFloat16) t = Tensor::FromVector(t.shape(), ToFloats(t.view()));
    }
  }
  return all;
}

double MeasureDamage(const Graph& network, const Graph& quantized, std::span<const Sample> samples,
                     const Damage& damage, Parallel* parallel) {
  return damage(RunSamples(*MakeSession(network), samples, parallel),
                RunSamples(*MakeSession(quantized), samples, parallel));
}

double PsnrOfDamage(double damage) { return kRoundingPsnr - damage; }
double DamageOfPsnr(double psnr) { return kRoundingPsnr - psnr; }

double RelativeDamage(std::span<const Outputs> reference, std::span<const Outputs> quantized) {
  double worst = 0;
  for (std::size_t output = 0; !reference.empty() && output < reference[0].size(); ++output) {
    const DType type = reference[0][output].dtype();
    if (type != DType::kFloat32 && type != DType::kFloat16 && type != DType::kFloat64) continue;
    double error = 0, size = 0;
    for (std::size_t i = 0; i < reference.size(); ++i) {
      const std::vector<float> a = ToFloats(reference[i][output].view());
      const std::vector<float> b = ToFloats(quantized[i][output].view());
      // Other shapes are as wrong as can be.
      if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
      for (std::size_t k = 0; k < a.size(); ++k) {
        const double difference = double{b[k]} - double{a[k]};
        error += difference * difference;
        size += double{a[k]} * double{a[k]};
      }
    }
    const double relative = error == 0 ? 0 : 100 * std::sqrt(error / size);
    if (!(relative <= worst)) worst = relative;  // NaN too
  }
  return std::isnan(worst) ? std::numeric_limits<double>::infinity() : worst;
}

std::string QualityText(DamageUnit unit, double damage) {
  switch (unit) {
    case DamageUnit::kDecibels:
      return Fixed(PsnrOfDamage(damage), 1) + " dB";
    case DamageUnit::kOverlap:
      return Fixed(1 - damage, 3);
    case DamageUnit::kPercent:
      return Fixed(damage, 2) + " %";
  }
  return {};
}

std::string_view QualityName(DamageUnit unit) {
  switch (unit) {
    case DamageUnit::kDecibels:
      return "PSNR to float32";
    case DamageUnit::kOverlap:
      return "overlap with float32's boxes";
    case DamageUnit::kPercent:
      return "difference from float32";
  }
  return {};
}

std::string_view QualityWord(DamageUnit unit) {
  switch (unit) {
    case DamageUnit::kDecibels:
      return "PSNR";
    case DamageUnit::kOverlap:
      return "overlap";
    case DamageUnit::kPercent:
      return "difference";
  }
  return {};
}

}  // namespace tessera
