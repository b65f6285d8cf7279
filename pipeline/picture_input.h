// A picture file whose rows are decoded as they are needed.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/file_status.h"
#include "pipeline/fill_transparent.h"
#include "pipeline/image_reader.h"
#include "pipeline/picture.h"

namespace tessera {

// Whoever needs rows that are not there decodes them, while others work on what is. The file is
// opened by the first use. Errors name the file; after one, every use that is not served by what
// is there already throws it again. Thread-safe.
//
// Where the picture is transparent it has the colours of its neighbours (see fill_transparent.h).
class PictureInput {
 public:
  // "-" is standard input.
  explicit PictureInput(std::filesystem::path path, const ReadOptions& options = {})
      : path_(std::move(path)), options_(options) {}

  const std::filesystem::path& path() const { return path_; }
  const PictureFormat& format();
  // Rows are there once NeedRows has returned for them. All are held, unless HoldRows says
  // otherwise.
  const Picture& picture();
  // picture() will hold a window of at least so many rows, and be filled so. Before it is used.
  void HoldRows(std::int64_t rows, const FillOptions& fill = {});
  // Bytes that picture() and the reader take then.
  std::size_t MemoryBytes(std::int64_t rows, const FillOptions& fill = {});

  // Returns when rows [begin, end) are there; for the last rows, when the end of the file is read
  // too. Rows before `begin` are done with: they may be overwritten. The rows have to fit into the
  // window.
  void NeedRows(std::int64_t begin, std::int64_t end);

  // Throws Error if the file is not the one that was opened any more, or was written to since: what
  // was read of it may be of the old one and of the new one. Pipes do not change.
  void RequireUnchanged();

  // What is wrong with the file but did not keep it from being read, so far.
  std::vector<std::string> Warnings();
  const Metadata& metadata();

 private:
  // Runs f with the file open and nobody else at it.
  template <typename F>
  auto WithReader(F&& f);
  void Allocate(std::int64_t rows, const FillOptions& fill);
  void ReadRow();
  // Rows that are held if `rows` are asked for: a row is filled by its neighbours, and those above
  // it may still be of use to the next.
  std::int64_t WindowRows(std::int64_t rows, const FillOptions& fill) const;

  std::filesystem::path path_;
  ReadOptions options_;
  std::mutex mutex_;
  std::unique_ptr<ImageReader> reader_;
  std::exception_ptr error_;
  std::optional<struct stat> opened_;  // what the system said of it then
  Picture picture_;
  std::int64_t reach_ = 0;  // rows before begin_ that are needed to fill
  std::optional<TransparentFill> fill_;
  std::int64_t begin_ = 0, read_ = 0;       // rows before begin_ are done with
  std::atomic<std::int64_t> complete_ = 0;  // rows that are read and filled
};

}  // namespace tessera
