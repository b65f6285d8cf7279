// What quantisation does to a network's outputs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/quantization/quantizer.h"
#include "engine/session.h"

namespace tessera {

// The session of a graph as it was imported, or as the quantiser made it.
std::shared_ptr<Session> MakeSession(const Graph& graph);

// Copies of `count` of them, spread evenly.
std::vector<Sample> SomeOf(std::span<const Sample> samples, std::size_t count);

// The outputs for each sample.
std::vector<Outputs> RunSamples(Session& session, std::span<const Sample> samples,
                                Parallel* parallel = nullptr);

double MeasureDamage(const Graph& network, const Graph& quantized, std::span<const Sample> samples,
                     const Damage& damage, Parallel* parallel = nullptr);

// PSNR in dB of a PictureDamage, and the other way round.
double PsnrOfDamage(double damage);
double DamageOfPsnr(double psnr);

// A Damage for networks of any kind: the root mean square of the difference, relative to that of
// the float network's values and in percent, of the output where it is largest. Outputs that are no
// floats do not count.
double RelativeDamage(std::span<const Outputs> reference, std::span<const Outputs> quantized);

// In what a damage is measured.
enum class DamageUnit : std::uint8_t {
  kDecibels,  // of PSNR, below that of rounding to 8 bits
  kOverlap,   // share of boxes that do not agree: 1 less the mean overlap
  kPercent,   // root mean square, relative to the values
};

// "45.2 dB", "0.98", "0.3 %": how good what has such a damage is, and what it is called.
std::string QualityText(DamageUnit unit, double damage);
std::string_view QualityName(DamageUnit unit);
std::string_view QualityWord(DamageUnit unit);  // for a column's head

// What a network is quantised by.
struct Calibration {
  std::vector<Sample> samples = {}, tests = {};  // to calibrate and to measure
  Damage damage = {};
  DamageUnit unit = DamageUnit::kPercent;
};

}  // namespace tessera
