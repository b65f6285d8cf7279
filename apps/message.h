// Messages of `upscale` on stderr.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

// "upscale: MESSAGE" on one line.
void Say(std::string_view message);

}  // namespace tessera
