#include "pipeline/picture_input.h"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "ops/error.h"
#include "pipeline/display_name.h"

namespace tessera {

template <typename F>
auto PictureInput::WithReader(F&& f) {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  try {
    return NamingFile(path_, [&] {
      if (reader_ == nullptr) Open();
      return f();
    });
  } catch (...) {
    error_ = std::current_exception();
    throw;
  }
}

void PictureInput::Open() {
  reader_ = OpenImage(path_, options_);
  const PictureFormat& format = reader_->format();
  picture_ = Picture(format, WindowRows(0));
  if (format.HasAlpha()) fill_.emplace(picture_);
}

// A row is filled by its neighbours, and those above it may still be of use to the next.
std::int64_t PictureInput::RowsAround() const {
  return reader_->format().HasAlpha() ? 2 * TransparentFill::kReach : 0;
}

std::int64_t PictureInput::WindowRows(std::int64_t rows) const {
  const PictureFormat& format = reader_->format();
  const auto ahead = static_cast<std::int64_t>(ahead_bytes_ / format.RowBytes());
  return std::min(format.height, std::max(rows, ahead) + RowsAround());
}

const PictureFormat& PictureInput::format() {
  return *WithReader([&] { return &reader_->format(); });
}

const Picture& PictureInput::picture() {
  WithReader([] {});
  return picture_;
}

void PictureInput::HoldRows(std::int64_t rows) {
  WithReader([&] {
    if (WindowRows(rows) <= picture_.held_rows()) return;
    Picture larger(picture_.format(), WindowRows(rows));
    for (std::int64_t y = std::max<std::int64_t>(0, read_ - picture_.held_rows()); y < read_; ++y)
      std::memcpy(larger.Row(y), picture_.Row(y), picture_.format().RowBytes());
    picture_ = std::move(larger);
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
    begin_ = std::max(begin_, begin);
    const std::int64_t oldest = std::max<std::int64_t>(0, begin_ - RowsAround() / 2);
    while (complete_ < std::min(end, picture_.height())) {
      Require(read_ - picture_.held_rows() < oldest,
              "more rows are needed at a time than are held");
      ReadRow();
    }
  });
}

bool PictureInput::ReadMore() {
  constexpr std::int64_t kRows = 16;
  return WithReader([&] {
    const std::int64_t oldest = std::max<std::int64_t>(0, begin_ - RowsAround() / 2);
    const std::int64_t end = std::min(picture_.height(), oldest + picture_.held_rows());
    for (std::int64_t i = 0; i < kRows && read_ < end; ++i) ReadRow();
    return read_ < end;
  });
}

std::vector<std::string> PictureInput::Warnings() {
  return WithReader([&] { return reader_->warnings(); });
}

const Metadata& PictureInput::metadata() {
  return *WithReader([&] { return &reader_->metadata(); });
}

ReadAhead::ReadAhead(PictureInput& input) {
  const auto read = [&input](const std::stop_token& stop) {
    try {
      while (!stop.stop_requested() && input.ReadMore()) {
      }
    } catch (...) {
      // Kept by `input`.
    }
  };
  try {
    thread_ = std::jthread(read);
  } catch (const std::system_error&) {
    // The system has no more threads: those who need the rows will read them.
  }
}

}  // namespace tessera
