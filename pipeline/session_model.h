// A session as a tile model.
#pragma once

#include <memory>
#include <string>

#include "engine/session.h"
#include "pipeline/tile_model.h"

namespace tessera {

// Looks at the network: it has to map one picture, float [1, 3 or 1, height, width], to a picture
// of as many channels at a fixed scale (a ratio of whole numbers, from shape inference). Networks
// whose convolutions do not pad (waifu2x) make less than that: they get the picture with its
// outermost pixels repeated around it. Sizes may have to be multiples of a number, up to 256.
// Throws Error that says what it is instead. `name` is for messages.
std::unique_ptr<TileModel> MakeSessionModel(std::shared_ptr<Session> session, std::string name);

}  // namespace tessera
