// Messages of programs on stderr.
#pragma once

#include <string_view>

namespace tessera {

// "PROGRAM: MESSAGE" on one line.
void Say(std::string_view message);

}  // namespace tessera
