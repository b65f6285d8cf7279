// What a tracker said, frame by frame, in files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/tracking/box.h"

namespace tessera {

struct TrackRecord {
  std::int64_t frame = 0;
  double seconds = 0;
  Box box;
  double score = 0;
  bool lost = false;
};

enum class RecordFormat : std::uint8_t { kCsv, kJson };

// A file of records: CSV with a header line "frame,time,x,y,w,h,score,lost", or a JSON array of
// objects with these keys. `lost` is 0 or 1, in JSON true or false. Numbers do not depend on the
// locale.
class RecordWriter {
 public:
  // "-" is standard output. Errors name the file.
  RecordWriter(const std::filesystem::path& path, RecordFormat format, bool overwrite);
  ~RecordWriter();

  void Write(const TrackRecord& record);
  // Completes the file with what has been written and puts it in its place (atomic_file.h).
  void Close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera
