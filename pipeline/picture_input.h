// A picture file whose rows are decoded as they are needed.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/image_reader.h"
#include "pipeline/picture.h"

namespace tessera {

// Whoever needs rows that are not there decodes them, while others work on what is. The file is
// opened by the first use. Errors name the file; after one, every use that is not served by what
// is there already throws it again. Thread-safe.
class PictureInput {
 public:
  // "-" is standard input.
  explicit PictureInput(std::filesystem::path path, const ReadOptions& options = {})
      : path_(std::move(path)), options_(options) {}

  const std::filesystem::path& path() const { return path_; }
  const PictureFormat& format();
  // Rows are there once NeedRows has returned for them.
  const Picture& picture();

  // Returns when rows [0, end) are there; for all rows, when the end of the file is read too.
  void NeedRows(std::int64_t end);
  // Decodes a few rows more; false if there are none.
  bool ReadMore();

  // What is wrong with the file but did not keep it from being read, so far.
  std::vector<std::string> Warnings();

 private:
  // Runs f with the file open and nobody else at it.
  template <typename F>
  auto WithReader(F&& f);

  std::filesystem::path path_;
  ReadOptions options_;
  std::mutex mutex_;
  std::unique_ptr<ImageReader> reader_;
  std::exception_ptr error_;
  Picture picture_;
  std::atomic<std::int64_t> rows_ = 0;  // that are there
};

// Reads ahead of those who will need the rows, in a thread of its own, until it is destroyed.
// Errors wait for them.
class ReadAhead {
 public:
  explicit ReadAhead(PictureInput& input);

 private:
  std::jthread thread_;
};

}  // namespace tessera
