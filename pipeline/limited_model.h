// A network that runs a limited number of times at once.
#pragma once

#include <memory>

#include "pipeline/tile_model.h"

namespace tessera {

// Lets `runs` runs of the model take place at a time; others wait for their turn. For several
// pictures that are upscaled at a time, each with workers of its own.
std::unique_ptr<TileModel> MakeLimitedModel(std::unique_ptr<TileModel> model, int runs);

}  // namespace tessera
