// libtiff on a stream, with its messages as Errors and warnings.
#pragma once

#include <sys/types.h>
#include <tiffio.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "ops/error.h"

namespace tessera {

class TiffFile {
 public:
  // `mode` as for TIFFOpen. The stream has to outlive this. One that is written and cannot seek
  // gets its bytes by Finish. Warnings are added to `warnings`. Throws Error if it cannot be
  // opened.
  TiffFile(std::FILE* file, const char* mode, std::vector<std::string>& warnings);
  TiffFile(const TiffFile&) = delete;
  TiffFile& operator=(const TiffFile&) = delete;
  ~TiffFile();

  TIFF* get() const { return tiff_; }
  // Throws Error unless `done`: with why writing failed, if it did, or what libtiff said last.
  void Check(bool done) const;
  // The file is complete, as far as libtiff is concerned. Throws Error if anything of it could not
  // be written.
  void Finish();

  // The value of a tag, or of its default, or nothing.
  template <typename T>
  T Value(std::uint32_t tag) const {
    T value{};
    TIFFGetFieldDefaulted(tiff_, tag, &value);
    return value;
  }
  template <typename... Values>
  void Set(std::uint32_t tag, Values... values) {
    Check(TIFFSetField(tiff_, tag, values...) == 1);
  }

 private:
  static int OnError(TIFF*, void* self, const char*, const char* format, va_list arguments);
  static int OnWarning(TIFF*, void* self, const char*, const char* format, va_list arguments);
  static tmsize_t Read(thandle_t self, void* to, tmsize_t size);
  static tmsize_t Write(thandle_t self, void* from, tmsize_t size);
  static toff_t Seek(thandle_t self, toff_t offset, int whence);
  static toff_t Size(thandle_t self);
  bool SeekFile(off_t offset, int whence);
  void KeepSystemError();

  std::FILE* file_;
  std::vector<std::string>& warnings_;
  std::string message_;
  int system_error_ = 0;  // the first one of writing
  bool writing_ = false, in_memory_ = false;
  std::string bytes_;  // if in memory
  std::size_t position_ = 0;
  TIFF* tiff_ = nullptr;
};

}  // namespace tessera
