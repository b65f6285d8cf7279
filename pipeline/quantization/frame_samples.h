// Parts of a video's frames as inputs of a network, to calibrate it with.
#pragma once

#include <string>
#include <vector>

#include "engine/quantization/quantizer.h"

namespace tessera {

// `count` tiles as SampleTiles takes them, of frames that are spread over the video, up to 8 of
// them. `input` as OpenFrameSource has it. Throws Error, which names the input.
std::vector<Sample> SampleFrames(const std::string& input, const Shape& tile, int count);

}  // namespace tessera
