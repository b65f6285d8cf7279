#include <cstring>
#include <utility>

#include "pipeline/codecs.h"

namespace tessera {
namespace {

class TurnedReader final : public ImageReader {
 public:
  TurnedReader(std::unique_ptr<ImageReader> stored, int orientation)
      : stored_(std::move(stored)), orientation_(orientation) {
    format_ = stored_->format();
    if (orientation >= 5) std::swap(format_.width, format_.height);
    metadata_ = stored_->metadata();
    warnings_ = stored_->warnings();
    // While it is turned, the picture is there twice.
    held_bytes_ =
        stored_->HeldBytes() + 2 * format_.RowBytes() * static_cast<std::size_t>(format_.height);
  }

  std::size_t HeldBytes() const override { return held_bytes_; }

  void ReadRow(std::byte* row) override {
    if (next_row_ == 0) {
      turned_ = Oriented(ReadAll(*stored_), orientation_);
      warnings_ = stored_->warnings();
      stored_.reset();
    }
    std::memcpy(row, turned_.Row(next_row_++), format_.RowBytes());
  }

 private:
  std::unique_ptr<ImageReader> stored_;
  int orientation_;
  std::size_t held_bytes_ = 0;
  Picture turned_;
  std::int64_t next_row_ = 0;
};

}  // namespace

std::unique_ptr<ImageReader> TurnReader(std::unique_ptr<ImageReader> stored, int orientation) {
  if (orientation == 1) return stored;
  return std::make_unique<TurnedReader>(std::move(stored), orientation);
}

}  // namespace tessera
