#include "apps/program.h"

#include <execinfo.h>
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <new>

#include "apps/message.h"
#include "simd/memory_limit.h"

namespace tessera {

void OpenStandardStreams() {
  // What is written to /dev/null here cannot be read from it, and the other way round.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    const int flags = stream == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", flags) != stream) ::_exit(kInputFailed);
  }
}

void LoadUnwinder() {
  void* frame = nullptr;
  ::backtrace(&frame, 1);
}

void IgnoreSignalsOfWriting() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

int Fail(ExitCode code, std::string_view message) {
  Say(message);
  return code;
}

int Fail(const std::exception& error) {
  const auto* memory = dynamic_cast<const std::bad_alloc*>(&error);
  return Fail(kInputFailed, memory != nullptr ? MemoryMessage(*memory) : error.what());
}

void ExitAtOnce(int code) {
  std::fflush(stderr);
  ::_exit(code);
}

int FinishPrinting(int code) {
  std::cout.flush();
  const bool arrived = std::cout.good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  return arrived ? code : Fail(kInputFailed, "standard output cannot be written");
}

}  // namespace tessera
