// What programs do on SIGINT and SIGTERM.
#pragma once

#include <functional>

namespace tessera {

// From now on SIGINT, SIGTERM and SIGHUP (unless the caller of the program ignores them) remove
// the temporary files of all outputs that are being written, call `report`, and end the process
// with exit code 130. To be called before any thread is started: threads inherit what it sets up.
// `report` may be called from then on until the process ends, by a thread of its own.
void ExitCleanlyWhenInterrupted(std::function<void()> report);

// The same at the second of these signals. The first one calls `stop`, in the same thread: the work
// in hand can be completed. If it returns false, as there is none, the first one ends the process.
void StopWhenInterrupted(std::function<bool()> stop);

}  // namespace tessera
