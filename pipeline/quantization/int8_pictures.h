// Networks for pictures with 8-bit integers.
#pragma once

#include <memory>
#include <vector>

#include "pipeline/quantization/int8_network.h"

namespace tessera {

// The least PSNR, in dB, that the result of a quantised network may have against that of the float
// one: less can be seen.
inline constexpr double kVisiblePsnr = 40;

// Quantises the network by parts of a picture, and by a drawn one beside them. If that is seen in
// the result on them, the layers that do the most harm stay float. Keeps what comes out. Throws
// Error if the network cannot be quantised.
std::shared_ptr<Session> QuantizeForPictures(const Int8Network& network,
                                             std::vector<Sample> samples, const Int8Note& note);

}  // namespace tessera
