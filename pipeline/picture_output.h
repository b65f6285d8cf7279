// A picture that is written to a file while it is made.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ops/parallel.h"
#include "pipeline/atomic_file.h"
#include "pipeline/image_writer.h"
#include "pipeline/picture.h"

namespace tessera {

// Encodes rows of a picture that are complete. No thread of its own does that: those who complete
// rows also encode them, so that making and encoding share the same CPUs. The file is complete or
// not there at all (see atomic_file.h), unless it is standard output. Errors name the file.
class PictureOutput {
 public:
  // Begins the file; "-" is standard output. `picture` has to outlive this; its rows may be written
  // later. One that holds a window of its rows has to hold more than StripRows of them.
  PictureOutput(std::filesystem::path path, ImageFormat format, const Picture& picture,
                const WriteOptions& options);

  // As of the ImageWriter.
  const std::vector<std::string>& notes() const { return writer_->notes(); }

  // Rows [0, end) of the picture are as they shall be: encodes of them what nobody has begun, on
  // these threads, but for the last rows of the picture, which are left to Commit. Returns how many
  // rows from the top are not looked at any more. Thread-safe.
  std::int64_t RowsDone(std::int64_t end, Parallel& parallel);
  // All rows are: encodes what is left, on all of these threads, and puts the file in its place.
  // Once, when no RowsDone is under way.
  void Commit(Parallel& parallel);

 private:
  // Encodes strips that end at `end` or before until none is left to begin.
  void Encode(std::int64_t end, Parallel& parallel);
  void EncodeStrips(std::int64_t end);
  std::int64_t StripEnd(std::int64_t begin) const;

  std::filesystem::path path_;
  const Picture& picture_;
  const std::int64_t strip_rows_;
  std::optional<AtomicFile> file_;  // unless it is standard output
  std::unique_ptr<ImageWriter> writer_;

  std::mutex mutex_;
  std::int64_t begun_ = 0, written_ = 0;        // rows
  std::map<std::int64_t, PackedStrip> packed_;  // strips by their first row, not yet written
  bool writing_ = false;                        // somebody is; for ever, after an error
};

}  // namespace tessera
