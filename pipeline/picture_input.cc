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
      if (reader_ == nullptr) reader_ = OpenImage(path_, options_);
      return f();
    });
  } catch (...) {
    error_ = std::current_exception();
    throw;
  }
}

void PictureInput::Allocate(std::int64_t rows) {
  const PictureFormat& format = reader_->format();
  picture_ = Picture(format, WindowRows(rows));
  if (format.HasAlpha()) fill_.emplace(picture_);
}

// A row is filled by its neighbours, and those above it may still be of use to the next.
std::int64_t PictureInput::RowsAround() const {
  return reader_->format().HasAlpha() ? 2 * TransparentFill::kReach : 0;
}

std::int64_t PictureInput::WindowRows(std::int64_t rows) const {
  return std::min(reader_->format().height, rows + RowsAround());
}

const PictureFormat& PictureInput::format() {
  return *WithReader([&] { return &reader_->format(); });
}

const Picture& PictureInput::picture() {
  WithReader([&] {
    if (picture_.bytes() == 0) Allocate(reader_->format().height);
  });
  return picture_;
}

void PictureInput::HoldRows(std::int64_t rows) {
  WithReader([&] {
    Require(picture_.bytes() == 0, "the rows that are held are settled");
    Allocate(rows);
  });
}

std::size_t PictureInput::MemoryBytes(std::int64_t rows) {
  return WithReader([&] {
    return static_cast<std::size_t>(WindowRows(rows)) * reader_->format().RowBytes() +
           reader_->HeldBytes();
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
    if (picture_.bytes() == 0) Allocate(reader_->format().height);
    begin_ = std::max(begin_, begin);
    const std::int64_t oldest = std::max<std::int64_t>(0, begin_ - RowsAround() / 2);
    while (complete_ < std::min(end, picture_.height())) {
      Require(read_ - picture_.held_rows() < oldest,
              "more rows are needed at a time than are held");
      ReadRow();
    }
  });
}

std::vector<std::string> PictureInput::Warnings() {
  return WithReader([&] { return reader_->warnings(); });
}

const Metadata& PictureInput::metadata() {
  return *WithReader([&] { return &reader_->metadata(); });
}

}  // namespace tessera
