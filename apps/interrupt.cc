#include "apps/interrupt.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

#include "pipeline/atomic_file.h"

namespace tessera {

void ExitCleanlyWhenInterrupted(std::function<void()> report) {
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
  // A handler may do next to nothing; a thread that waits for the signal may do everything.
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const auto wait = [signals, report = std::move(report)] {
    int signal = 0;
    while (sigwait(&signals, &signal) != 0) {
    }
    AtomicFile::AbandonAll();
    // Nobody may be reading what is reported: then it ends without.
    try {
      std::thread([] {
        std::this_thread::sleep_for(std::chrono::seconds(2));
        _exit(130);
      }).detach();
      report();
    } catch (const std::system_error&) {
      // The system has no more threads.
    }
    _exit(130);
  };
  try {
    std::thread(wait).detach();
  } catch (const std::system_error&) {
    // The system has no more threads. Better an end that is not clean than none.
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  }
}

}  // namespace tessera
