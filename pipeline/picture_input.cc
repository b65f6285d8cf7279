#include "pipeline/picture_input.h"

#include <algorithm>
#include <utility>

#include "ops/error.h"
#include "pipeline/display_name.h"

namespace tessera {

template <typename F>
auto PictureInput::WithReader(F&& f) {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  try {
    return NamingInput(path_, [&] {
      if (reader_ == nullptr) {
        if (path_ != "-") opened_ = StatusOf(path_);
        reader_ = OpenImage(path_, options_);
      }
      return f();
    });
  } catch (...) {
    error_ = std::current_exception();
    throw;
  }
}

void PictureInput::Allocate(std::int64_t rows, const FillOptions& fill) {
  const PictureFormat& format = reader_->format();
  picture_ = Picture(format, WindowRows(rows, fill));
  if (!format.HasAlpha()) return;
  reach_ = fill.reach;
  fill_.emplace(picture_, fill);
}

std::int64_t PictureInput::WindowRows(std::int64_t rows, const FillOptions& fill) const {
  const PictureFormat& format = reader_->format();
  if (!format.HasAlpha()) return std::min(format.height, rows);
  return fill.wrap_y ? format.height : std::min(format.height, rows + 2 * fill.reach);
}

const PictureFormat& PictureInput::format() {
  return *WithReader([&] { return &reader_->format(); });
}

const Picture& PictureInput::picture() {
  WithReader([&] {
    if (picture_.bytes() == 0) Allocate(reader_->format().height, {});
  });
  return picture_;
}

void PictureInput::HoldRows(std::int64_t rows, const FillOptions& fill) {
  WithReader([&] {
    Require(picture_.bytes() == 0, "the rows that are held are settled");
    Allocate(rows, fill);
  });
}

std::size_t PictureInput::MemoryBytes(std::int64_t rows, const FillOptions& fill) {
  return WithReader([&] {
    const PictureFormat& format = reader_->format();
    return static_cast<std::size_t>(WindowRows(rows, fill)) * format.RowBytes() +
           (format.HasAlpha() ? TransparentFill::Bytes(format, fill) : 0) + reader_->HeldBytes();
  });
}

void PictureInput::ReadRow() {
  const std::int64_t y = read_, height = picture_.height();
  reader_->ReadRow(picture_.Row(y));
  if (fill_) fill_->RowRead(y);
  if (y + 1 == height) reader_->Finish();
  read_ = y + 1;
  complete_.store(fill_ ? fill_->filled() : read_, std::memory_order_release);
}

void PictureInput::NeedRows(std::int64_t begin, std::int64_t end) {
  if (end <= complete_.load(std::memory_order_acquire)) return;
  WithReader([&] {
    if (picture_.bytes() == 0) Allocate(reader_->format().height, {});
    begin_ = std::max(begin_, begin);
    const std::int64_t oldest = std::max<std::int64_t>(0, begin_ - reach_);
    while (complete_ < std::min(end, picture_.height())) {
      Require(read_ - picture_.held_rows() < oldest,
              "more rows are needed at a time than are held");
      ReadRow();
    }
  });
}

void PictureInput::RequireUnchanged() {
  WithReader([&] {
    if (!opened_ || !S_ISREG(opened_->st_mode)) return;
    const auto now = StatusOf(path_);
    const auto same_time = [](const timespec& a, const timespec& b) {
      return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
    };
    Require(now && IdOf(*now) == IdOf(*opened_) && now->st_size == opened_->st_size &&
                same_time(now->st_mtim, opened_->st_mtim),
            "changed while it was read");
  });
}

std::vector<std::string> PictureInput::Warnings() {
  return WithReader([&] { return reader_->warnings(); });
}

const Metadata& PictureInput::metadata() {
  return *WithReader([&] { return &reader_->metadata(); });
}

}  // namespace tessera
