// Ways to show how far `upscale` is.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/file_list.h"
#include "pipeline/upscale_file.h"

namespace tessera {

struct BatchState {
  explicit BatchState(FileList files) : list(std::move(files)) {}

  struct InWork {
    FilePlan plan;
    std::size_t tiles_done = 0;
  };

  std::size_t total() const { return list.files.size(); }
  std::size_t finished() const { return done + failed; }
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  const FileList list;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  std::map<std::size_t, InWork> in_work = {};  // by their places in list.files
  std::size_t done = 0, failed = 0;            // files
  double pixels = 0;                           // of the outputs that are done
  // Why files failed, and folders could not be read; each begins with a name.
  std::vector<std::string> failures = {};
};

// Called after the state has changed.
class ProgressDisplay {
 public:
  virtual ~ProgressDisplay() = default;
  virtual void Planned(const BatchState& state, std::size_t file) = 0;
  virtual void Progress(const BatchState& state, std::size_t file) = 0;
  virtual void Done(const BatchState& state, std::size_t file, const FileResult& result,
                    double seconds) = 0;
  // No file: a folder that could not be read.
  virtual void Failed(const BatchState& state, std::optional<std::size_t> file,
                      const std::string& reason) = 0;
  // At the end, or when the work was cut short.
  virtual void Finished(const BatchState& state, bool interrupted) = 0;
};

struct TextDisplayOptions {
  std::FILE* out = stderr;  // for lines on what is done; what is wrong is said on stderr
  bool bar = false;         // on stderr, a terminal
  bool lines = true;        // one for each file that is done
  bool plans = false;       // one before the run of each, too
  bool details = false;     // and what the tiles are
  bool notes = true;        // on what was lost or is odd
  bool summary = true;      // at the end of more than one file
  bool dry_run = false;     // what is called done would be
};
std::unique_ptr<ProgressDisplay> MakeTextDisplay(const TextDisplayOptions& options);

// One JSON object a line, with the key "event": "started", "progress" (a few times a second),
// "done", "failed", and "finished" at the end. Names are shown as in messages.
std::unique_ptr<ProgressDisplay> MakeJsonDisplay(std::FILE* out);

}  // namespace tessera
