// Runs a program of the project and looks at what it does.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace tessera {

struct ProgramResult {
  int exit_code = -1;  // if it ended by itself
  int signal = 0;      // that ended it
  std::string out, err;
  long peak_kb = 0;  // memory that was resident, at most
};

// A program that runs beside the test.
class RunningProgram {
 public:
  // `environment`: "NAME=value" each, added to the test's own. `input` is the file that it reads on
  // standard input. `before` is called in the new process.
  explicit RunningProgram(std::vector<std::string> arguments,
                          const std::vector<std::string>& environment = {},
                          const std::string& input = "/dev/null",
                          const std::function<void()>& before = {})
      : out_(::memfd_create("out", 0)), err_(::memfd_create("err", 0)) {
    arguments[0] = std::string(TESSERA_BIN_DIR) + "/" + arguments[0];
    std::vector<char*> pointers;
    for (std::string& a : arguments) pointers.push_back(a.data());
    pointers.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    for (const std::string& e : environment) ::putenv(const_cast<char*>(e.c_str()));
    ::dup2(::open(input.c_str(), O_RDONLY), 0);
    ::dup2(out_, 1);
    ::dup2(err_, 2);
    if (before) before();
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
  }
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;
  ~RunningProgram() {
    ::close(out_);
    ::close(err_);
  }

  pid_t pid() const { return pid_; }
  bool HasEnded() const {
    siginfo_t info = {};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid == pid_;
  }
  std::string OutputSoFar() const { return Read(out_); }

  ProgramResult Wait() {
    int status = 0;
    rusage usage = {};
    ::wait4(pid_, &status, 0, &usage);
    return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
            .out = Read(out_),
            .err = Read(err_),
            .peak_kb = usage.ru_maxrss};
  }

 private:
  static std::string Read(int fd) {
    std::string text(static_cast<std::size_t>(::lseek(fd, 0, SEEK_END)), '\0');
    const ssize_t size = ::pread(fd, text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(size < 0 ? 0 : size));
    return text;
  }

  int out_, err_;
  pid_t pid_ = -1;
};

inline ProgramResult RunProgram(std::vector<std::string> arguments,
                                const std::vector<std::string>& environment = {},
                                const std::string& input = "/dev/null",
                                const std::function<void()>& before = {}) {
  return RunningProgram(std::move(arguments), environment, input, before).Wait();
}

}  // namespace tessera
