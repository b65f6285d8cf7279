// What a tracker said, frame by frame, in files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "pipeline/tracking/box.h"

namespace tessera {

struct TrackRecord {
  std::int64_t frame = 0;  // number in the source, from 0
  double seconds = 0;      // since the source's frame 0, as of Frame (frame_source.h)
  Box box;                 // in pixels of the frame
  double score = 0;        // of the target at the box, 0 to 1; in the frame it started in, 1
  bool lost = false;
};

enum class RecordFormat : std::uint8_t { kCsv, kJson };

// A file of records: CSV with a header line "frame,time,x,y,w,h,score,lost", or a JSON array of
// objects with these keys, one a line. `time` is in seconds. `lost` is 0 or 1, in JSON true or
// false; a number that is none is null there. Boxes have 4 decimals, other numbers 6. Numbers do
// not depend on the locale.
class RecordWriter {
 public:
  // "-" is standard output, where each record is to be seen at once. Throws Error, which names the
  // file, if it cannot be written, or exists without `overwrite`; all errors here name the file.
  RecordWriter(const std::filesystem::path& path, RecordFormat format, bool overwrite);
  ~RecordWriter();

  // Throws Error if the record could not be written; files may find that out only at Close.
  void Write(const TrackRecord& record);
  // Completes the file with what has been written and puts it in its place (atomic_file.h). To be
  // called at most once; without it nothing remains, and what was there is untouched.
  void Close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera
