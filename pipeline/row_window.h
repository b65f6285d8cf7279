// Who may write which rows of a picture that holds a window of them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <vector>

#include "ops/parallel.h"
#include "pipeline/picture.h"

namespace tessera {

// Rectangles of a picture are written in any order by several threads, from top to bottom more or
// less; complete rows are taken away from the top. Thread-safe.
class RowWindow {
 public:
  explicit RowWindow(const Picture& picture);

  // Returns when the rows before `end` have room, which is when those that have to go for it have
  // been taken away. `take` is called meanwhile: it may take what there is. Throws the error of
  // Cancel.
  void WaitForRoom(std::int64_t end, FunctionRef<void()> take);
  // The pixels of `rect` are written. Returns whether that completed rows at the top.
  bool Add(const Rect& rect);
  // Rows [0, complete()) are written.
  std::int64_t complete() const;
  // Rows [0, end) have been taken away.
  void Release(std::int64_t end);
  // Somebody failed: nobody is to wait any longer.
  void Cancel(std::exception_ptr error);

 private:
  const std::int64_t held_;
  const std::int64_t width_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t changes_ = 0;
  std::vector<std::int64_t> missing_;  // pixels of each row
  std::int64_t complete_ = 0, released_ = 0;
  std::exception_ptr error_;
};

}  // namespace tessera
