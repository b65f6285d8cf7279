#include "apps/status_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace tessera {
namespace {

int TerminalColumns() {
  winsize size = {};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

void StatusLine::Show(std::string text) {
  next_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  // A line that wraps could not be cleared.
  text.resize(std::min(text.size(), static_cast<std::size_t>(TerminalColumns() - 1)));
  std::fprintf(stderr, "\r\x1b[K%s", text.c_str());
  shown_ = true;
}

void StatusLine::Clear() {
  if (std::exchange(shown_, false)) std::fputs("\r\x1b[K", stderr);
}

}  // namespace tessera
