// How programs begin and end.
#pragma once

#include <exception>
#include <string_view>

namespace tessera {

enum ExitCode : int { kDone = 0, kInputFailed = 1, kWrongUsage = 2, kInterrupted = 130 };

// Where a standard stream is closed, the next file that is opened would take its number, and
// messages would go into outputs. A use of a stream that was closed is an error, as before.
void OpenStandardStreams();

// Loads what glibc needs to end a thread, which it otherwise does when one ends: without memory for
// it then, it would abort.
void LoadUnwinder();

// Writing to a pipe that nobody reads, or beyond the limit for files, is an error like others and
// does not end the process: it does not spoil other outputs.
void IgnoreSignalsOfWriting();

// Says why the program fails, and returns `code`.
int Fail(ExitCode code, std::string_view message);

// The same for what reaches main: an input failed. Lack of memory says that it is that.
int Fail(const std::exception& error);

// Ends the process without waiting for threads that are left behind. Outputs are complete by then,
// and what was printed has been flushed.
[[noreturn]] void ExitAtOnce(int code);

// What was printed is a result: returns `code` if it has arrived, else the program has failed.
int FinishPrinting(int code = kDone);

}  // namespace tessera
