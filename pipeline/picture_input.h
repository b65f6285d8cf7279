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
  // picture() will hold a window of at least so many rows. Before it is used.
  void HoldRows(std::int64_t rows);
  // Bytes that picture() and the reader take if so many rows are to be held.
  std::size_t MemoryBytes(std::int64_t rows);

  // Returns when rows [begin, end) are there; for the last rows, when the end of the file is read
  // too. Rows before `begin` are done with: they may be overwritten. The rows have to fit into the
  // window.
  void NeedRows(std::int64_t begin, std::int64_t end);

  // What is wrong with the file but did not keep it from being read, so far.
  std::vector<std::string> Warnings();
  const Metadata& metadata();

 private:
  // Runs f with the file open and nobody else at it.
  template <typename F>
  auto WithReader(F&& f);
  void Allocate(std::int64_t rows);
  void ReadRow();
  // Rows that are held beside those that are asked for.
  std::int64_t RowsAround() const;
  std::int64_t WindowRows(std::int64_t rows) const;

  std::filesystem::path path_;
  ReadOptions options_;
  std::mutex mutex_;
  std::unique_ptr<ImageReader> reader_;
  std::exception_ptr error_;
  Picture picture_;
  std::optional<TransparentFill> fill_;
  std::int64_t begin_ = 0, read_ = 0;       // rows before begin_ are done with
  std::atomic<std::int64_t> complete_ = 0;  // rows that are read and filled
};

}  // namespace tessera
