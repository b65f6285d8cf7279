#include "apps/message.h"

#include <cerrno>
#include <cstdio>

#include "pipeline/display_name.h"

namespace tessera {

void Say(std::string_view message) {
  // The name that the program was called by (glibc).
  std::fprintf(stderr, "%s: %s\n", OneLine(program_invocation_short_name).c_str(),
               OneLine(message).c_str());
}

}  // namespace tessera
