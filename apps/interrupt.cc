#include "apps/interrupt.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

#include "apps/program.h"
#include "pipeline/atomic_file.h"

namespace tessera {
namespace {

void AwaitSignal(const sigset_t& signals) {
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
}

[[noreturn]] void Exit(const std::function<void()>& report) {
  AtomicFile::AbandonAll();
  // Nobody may be reading what is reported: then it ends without.
  try {
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::seconds(2));
      _exit(kInterrupted);
    }).detach();
    report();
  } catch (const std::system_error&) {
    // The system has no more threads.
  }
  _exit(kInterrupted);
}

// Calls `handle` with the signals in a thread of its own: a handler may do next to nothing, a
// thread that waits for the signal may do everything.
void HandleSignals(std::function<void(const sigset_t&)> handle) {
  sigset_t signals;
  sigemptyset(&signals);
  bool any = false;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction current = {};
    if (sigaction(signal, nullptr, &current) == 0 && current.sa_handler == SIG_IGN) continue;
    sigaddset(&signals, signal);
    any = true;
  }
  if (!any) return;
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  try {
    std::thread([signals, handle = std::move(handle)] { handle(signals); }).detach();
  } catch (const std::system_error&) {
    // The system has no more threads. Better an end that is not clean than none.
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  }
}

}  // namespace

void ExitCleanlyWhenInterrupted(std::function<void()> report) {
  HandleSignals([report = std::move(report)](const sigset_t& signals) {
    AwaitSignal(signals);
    Exit(report);
  });
}

void StopWhenInterrupted(std::function<bool()> stop) {
  HandleSignals([stop = std::move(stop)](const sigset_t& signals) {
    AwaitSignal(signals);
    if (stop()) AwaitSignal(signals);
    Exit([] {});
  });
}

}  // namespace tessera
