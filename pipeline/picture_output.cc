#include "pipeline/picture_output.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "ops/error.h"
#include "pipeline/display_name.h"
#include "pipeline/require_system.h"

namespace tessera {

PictureOutput::PictureOutput(std::filesystem::path path, ImageFormat format, const Picture& picture,
                             const WriteOptions& options)
    : path_(std::move(path)), picture_(picture), strip_rows_(StripRows(format, picture.format())) {
  NamingFile(path_, [&] {
    if (path_ == "-") {
      Require(::isatty(STDOUT_FILENO) == 0, "is a terminal; redirect it to a file or a program");
    } else {
      file_.emplace(path_, options.overwrite);
    }
    writer_ = MakeImageWriter(format, picture.format(), options, file_ ? file_->stream() : stdout);
  });
}

std::int64_t PictureOutput::RowsDone(std::int64_t end, Parallel& parallel) {
  if (end < picture_.height()) NamingFile(path_, [&] { Encode(end, parallel); });
  const std::lock_guard lock(mutex_);
  // PNG's filters look at the row above.
  return std::max<std::int64_t>(0, written_ - 1);
}

void PictureOutput::Commit(Parallel& parallel) {
  NamingFile(path_, [&] {
    Encode(picture_.height(), parallel);
    writer_->Finish();
    if (file_) {
      file_->Commit();
    } else {
      RequireSystem(std::fflush(stdout) == 0, "cannot write");
    }
  });
}

std::int64_t PictureOutput::StripEnd(std::int64_t begin) const {
  return std::min(begin + strip_rows_, picture_.height());
}

void PictureOutput::Encode(std::int64_t end, Parallel& parallel) {
  {
    const std::lock_guard lock(mutex_);
    if (StripEnd(begun_) > end) return;
  }
  parallel.For(parallel.num_threads(), [&](std::int64_t, int) { EncodeStrips(end); });
}

void PictureOutput::EncodeStrips(std::int64_t end) {
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
