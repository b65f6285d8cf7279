#include "pipeline/picture_input.h"

#include <algorithm>
#include <system_error>

#include "pipeline/display_name.h"

namespace tessera {

template <typename F>
auto PictureInput::WithReader(F&& f) {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  try {
    return NamingFile(path_, [&] {
      if (reader_ == nullptr) {
        reader_ = OpenImage(path_, options_);
        picture_ = Picture(reader_->format());
      }
      return f();
    });
  } catch (...) {
    error_ = std::current_exception();
    throw;
  }
}

const PictureFormat& PictureInput::format() { return picture().format(); }

const Picture& PictureInput::picture() {
  WithReader([] {});
  return picture_;
}

void PictureInput::NeedRows(std::int64_t end) {
  if (end <= rows_.load(std::memory_order_acquire)) return;
  WithReader([&] {
    const std::int64_t height = picture_.height();
    for (std::int64_t y = rows_; y < std::min(end, height); ++y) {
      reader_->ReadRow(picture_.Row(y));
      if (y + 1 == height) reader_->Finish();
      rows_.store(y + 1, std::memory_order_release);
    }
  });
}

bool PictureInput::ReadMore() {
  constexpr std::int64_t kRows = 16;
  const std::int64_t height = format().height;
  NeedRows(std::min(height, rows_ + kRows));
  return rows_ < height;
}

std::vector<std::string> PictureInput::Warnings() {
  return WithReader([&] { return reader_->warnings(); });
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
