// A network's results averaged over flips and rotations of its input.
#pragma once

#include <memory>

#include "pipeline/tile_model.h"

namespace tessera {

// The geometric self-ensemble of Lim et al., "Enhanced Deep Residual Networks for Single Image
// Super-Resolution" (2017), section 3.4: runs `model` on each input in its 8 flips and rotations
// and gives the mean of the results, turned back. Takes 8 times as long. Where the network treats
// the two axes differently (scale, alignment, the only input size that it accepts), these are the
// 4 flips alone, which take 4 times as long. Results do not depend on the number of threads.
std::unique_ptr<TileModel> MakeSelfEnsemble(std::unique_ptr<TileModel> model);

}  // namespace tessera
