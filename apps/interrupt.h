// What programs do on SIGINT and SIGTERM.
#pragma once

namespace tessera {

// From now on SIGINT, SIGTERM and SIGHUP (unless the caller of the program ignores them) remove
// the temporary files of all outputs that are being written and end the process with exit code
// 130. To be called before any thread is started: threads inherit what it sets up.
void ExitCleanlyWhenInterrupted();

}  // namespace tessera
