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
#include <thread>
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
  // "-" is standard input. So many bytes of rows are held at least, so that the picture can be read
  // ahead before anybody knows how much of it will be needed at a time.
  explicit PictureInput(std::filesystem::path path, const ReadOptions& options = {},
                        std::size_t ahead_bytes = std::size_t{32} << 20)
      : path_(std::move(path)), options_(options), ahead_bytes_(ahead_bytes) {}

  const std::filesystem::path& path() const { return path_; }
  const PictureFormat& format();
  // Rows are there once NeedRows has returned for them. The picture holds a window of its rows, if
  // it is large.
  const Picture& picture();
  // From now on picture() holds at least so many rows. Not while anybody uses it.
  void HoldRows(std::int64_t rows);
  // Bytes that picture() and the reader take if so many rows are to be held.
  std::size_t MemoryBytes(std::int64_t rows);

  // Returns when rows [begin, end) are there; for the last rows, when the end of the file is read
  // too. Rows before `begin` are done with: they may be overwritten. The rows have to fit into the
  // window.
  void NeedRows(std::int64_t begin, std::int64_t end);
  // Decodes a few rows more; false if there are none, or no room for them.
  bool ReadMore();

  // What is wrong with the file but did not keep it from being read, so far.
  std::vector<std::string> Warnings();
  const Metadata& metadata();

 private:
  // Runs f with the file open and nobody else at it.
  template <typename F>
  auto WithReader(F&& f);
  void Open();
  void ReadRow();
  // Rows that are held beside those that are asked for.
  std::int64_t RowsAround() const;
  std::int64_t WindowRows(std::int64_t rows) const;

  std::filesystem::path path_;
  ReadOptions options_;
  std::size_t ahead_bytes_;
  std::mutex mutex_;
  std::unique_ptr<ImageReader> reader_;
  std::exception_ptr error_;
  Picture picture_;
  std::optional<TransparentFill> fill_;
  std::int64_t begin_ = 0, read_ = 0;       // rows before begin_ are done with
  std::atomic<std::int64_t> complete_ = 0;  // rows that are read and filled
};

// Reads ahead of those who will need the rows, in a thread of its own, until it is destroyed or the
// window is full. Errors wait for them.
class ReadAhead {
 public:
  explicit ReadAhead(PictureInput& input);

 private:
  std::jthread thread_;
};

}  // namespace tessera
