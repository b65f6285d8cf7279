#include "pipeline/picture_output.h"

#include <algorithm>
#include <utility>

#include "pipeline/display_name.h"

namespace tessera {

PictureOutput::PictureOutput(std::filesystem::path path, ImageFormat format, const Picture& picture,
                             const WriteOptions& options)
    : path_(std::move(path)), picture_(picture) {
  NamingFile(path_, [&] {
    file_.emplace(path_);
    writer_ = MakeImageWriter(format, picture.format(), options, file_->stream());
  });
}

void PictureOutput::RowsDone(std::int64_t end) {
  if (end < picture_.height()) NamingFile(path_, [&] { Encode(end); });
}

void PictureOutput::Commit(Parallel& parallel) {
  NamingFile(path_, [&] {
    parallel.For(parallel.num_threads(), [&](std::int64_t, int) { Encode(picture_.height()); });
    writer_->Finish();
    file_->Commit();
  });
}

std::int64_t PictureOutput::StripEnd(std::int64_t begin) const {
  return std::min(begin + writer_->StripRows(), picture_.height());
}

void PictureOutput::Encode(std::int64_t end) {
  std::unique_lock lock(mutex_);
  while (true) {
    const std::int64_t strip = begun_, strip_end = StripEnd(strip);
    if (strip == strip_end || strip_end > end) return;
    begun_ = strip_end;
    lock.unlock();
    PackedStrip packed = writer_->PackStrip(picture_, strip, strip_end);
    lock.lock();
    packed_.emplace(strip, std::move(packed));
    // One thread at a time writes, top to bottom, whatever is next by then.
    if (writing_) continue;
    writing_ = true;
    while (!packed_.empty() && packed_.begin()->first == written_) {
      const auto next = packed_.extract(packed_.begin());
      const std::int64_t next_end = StripEnd(next.key());
      lock.unlock();
      writer_->WriteStrip(picture_, next.key(), next_end, next.mapped());
      lock.lock();
      written_ = next_end;
    }
    writing_ = false;
  }
}

}  // namespace tessera
