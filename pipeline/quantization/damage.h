// What quantisation does to a network's outputs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/quantization/quantizer.h"
#include "engine/session.h"

namespace tessera {

// The session of a graph as it was imported, or as the quantiser made it.
std::shared_ptr<Session> MakeSession(const Graph& graph);

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

}  // namespace tessera
