// A stand-in for a full disk.
#pragma once

#include <sys/resource.h>

#include <csignal>

namespace tessera {

// As long as it lives, writing to files beyond so many bytes fails: "File too large".
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    rlimit little = old_;
    little.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &little);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  void (*old_handler_)(int);
  rlimit old_{};
};

}  // namespace tessera
