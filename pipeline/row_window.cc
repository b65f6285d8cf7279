#include "pipeline/row_window.h"

#include <algorithm>
#include <utility>

namespace tessera {

RowWindow::RowWindow(const Picture& picture)
    : held_(picture.held_rows()),
      width_(picture.width()),
      missing_(static_cast<std::size_t>(picture.height()), width_) {}

void RowWindow::WaitForRoom(std::int64_t end, FunctionRef<void()> take) {
  std::unique_lock lock(mutex_);
  while (!error_ && end - released_ > held_) {
    const std::uint64_t changes = changes_;
    lock.unlock();
    take();
    lock.lock();
    if (error_ || end - released_ <= held_) break;
    changed_.wait(lock, [&] { return error_ || changes_ != changes; });
  }
  if (error_) std::rethrow_exception(error_);
}

bool RowWindow::Add(const Rect& rect) {
  const std::lock_guard lock(mutex_);
  for (std::int64_t y = rect.y; y < rect.bottom(); ++y)
    missing_[static_cast<std::size_t>(y)] -= rect.width;
  const std::int64_t before = complete_;
  const auto height = static_cast<std::int64_t>(missing_.size());
  while (complete_ < height && missing_[static_cast<std::size_t>(complete_)] == 0) ++complete_;
  if (complete_ == before) return false;
  ++changes_;
  changed_.notify_all();
  return true;
}

std::int64_t RowWindow::complete() const {
  const std::lock_guard lock(mutex_);
  return complete_;
}

void RowWindow::Release(std::int64_t end) {
  const std::lock_guard lock(mutex_);
  if (end <= released_) return;
  released_ = end;
  ++changes_;
  changed_.notify_all();
}

void RowWindow::Cancel(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
  changed_.notify_all();
}

}  // namespace tessera
