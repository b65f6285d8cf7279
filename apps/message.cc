#include "apps/message.h"

#include <cstdio>

#include "pipeline/display_name.h"

namespace tessera {

void Say(std::string_view message) {
  std::fprintf(stderr, "upscale: %s\n", OneLine(message).c_str());
}

}  // namespace tessera
