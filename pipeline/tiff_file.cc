#include "pipeline/tiff_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>

#include "pipeline/input_stream.h"
#include "pipeline/require_system.h"

namespace tessera {
namespace {

std::string Formatted(const char* format, va_list arguments) {
  char text[500];
  std::vsnprintf(text, sizeof(text), format, arguments);
  return text;
}

struct OptionsDeleter {
  void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
};

TiffFile& Self(void* self) { return *static_cast<TiffFile*>(self); }

}  // namespace

TiffFile::TiffFile(std::FILE* file, const char* mode, std::vector<std::string>& warnings)
    : file_(file), warnings_(warnings) {
  // Some of its messages go to those of the process, whatever handlers a file has.
  static const bool silent = [] {
    TIFFSetErrorHandler(nullptr);
    TIFFSetWarningHandler(nullptr);
    return true;
  }();
  static_cast<void>(silent);
  writing_ = mode[0] == 'w';
  in_memory_ = writing_ && !IsSeekable(file);
  const std::unique_ptr<TIFFOpenOptions, OptionsDeleter> options(TIFFOpenOptionsAlloc());
  if (options == nullptr) throw std::bad_alloc();
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), OnError, this);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), OnWarning, this);
  const auto close = [](thandle_t) { return 0; };
  tiff_ = TIFFClientOpenExt("", mode, this, Read, Write, Seek, close, Size, nullptr, nullptr,
                            options.get());
  Check(tiff_ != nullptr);
}

TiffFile::~TiffFile() { TIFFCleanup(tiff_); }

void TiffFile::Check(bool done) const {
  if (done) return;
  if (system_error_ != 0) throw Error(StrCat("cannot write: ", std::strerror(system_error_)));
  throw Error(message_.empty() ? "damaged" : message_);
}

void TiffFile::Finish() {
  Check(system_error_ == 0);  // libtiff does not look at all that fails
  if (!in_memory_) return;
  RequireSystem(std::fwrite(bytes_.data(), 1, bytes_.size(), file_) == bytes_.size(),
                "cannot write");
}

int TiffFile::OnError(TIFF*, void* self, const char*, const char* format, va_list arguments) {
  Self(self).message_ = Formatted(format, arguments);
  return 1;
}

int TiffFile::OnWarning(TIFF*, void* self, const char*, const char* format, va_list arguments) {
  // Many programs have tags of their own.
  if (std::string_view(format).starts_with("Unknown field with tag")) return 1;
  std::vector<std::string>& warnings = Self(self).warnings_;
  std::string text = Formatted(format, arguments);
  if (std::find(warnings.begin(), warnings.end(), text) == warnings.end())
    warnings.push_back(std::move(text));
  return 1;
}

tmsize_t TiffFile::Read(thandle_t self, void* to, tmsize_t size) {
  return static_cast<tmsize_t>(std::fread(to, 1, static_cast<std::size_t>(size), Self(self).file_));
}

tmsize_t TiffFile::Write(thandle_t self, void* from, tmsize_t size) {
  TiffFile& file = Self(self);
  const auto count = static_cast<std::size_t>(size);
  if (!file.in_memory_) {
    const std::size_t written = std::fwrite(from, 1, count, file.file_);
    if (written != count) file.KeepSystemError();
    return static_cast<tmsize_t>(written);
  }
  try {
    if (file.bytes_.size() < file.position_ + count) file.bytes_.resize(file.position_ + count);
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
    file.KeepSystemError();
    return 0;
  }
  std::memcpy(file.bytes_.data() + file.position_, from, count);
  file.position_ += count;
  return size;
}

toff_t TiffFile::Seek(thandle_t self, toff_t offset, int whence) {
  TiffFile& file = Self(self);
  if (!file.in_memory_) {
    if (file.SeekFile(static_cast<off_t>(offset), whence))
      return static_cast<toff_t>(::ftello(file.file_));
    return static_cast<toff_t>(-1);
  }
  const toff_t from = whence == SEEK_SET   ? 0
                      : whence == SEEK_CUR ? file.position_
                                           : file.bytes_.size();
  file.position_ = from + offset;
  return file.position_;
}

toff_t TiffFile::Size(thandle_t self) {
  TiffFile& file = Self(self);
  if (file.in_memory_) return file.bytes_.size();
  const off_t position = ::ftello(file.file_);
  file.SeekFile(0, SEEK_END);
  const off_t size = ::ftello(file.file_);
  file.SeekFile(position, SEEK_SET);
  return static_cast<toff_t>(size);
}

// Writes what is in the stream's buffer before it moves.
bool TiffFile::SeekFile(off_t offset, int whence) {
  const bool done = ::fseeko(file_, offset, whence) == 0;
  if (!done) KeepSystemError();
  return done;
}

void TiffFile::KeepSystemError() {
  if (writing_ && system_error_ == 0) system_error_ = errno;
}

}  // namespace tessera
