// Pictures from files, a row at a time.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/picture.h"

namespace tessera {

// An open picture. Palettes are looked up, 1, 2 and 4-bit grey is widened to 8 bits, transparency
// by colour becomes alpha, CMYK becomes RGB, a JPEG is turned as its EXIF orientation says. Errors
// say what is wrong; who knows the file's name puts it in front (NamingFile).
class ImageReader {
 public:
  virtual ~ImageReader() = default;

  const PictureFormat& format() const { return format_; }
  // What is wrong with the file but does not keep it from being read.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // The next row, top to bottom: format().RowBytes() bytes. To be called format().height times.
  virtual void ReadRow(std::byte* row) = 0;
  // Reads what follows the last row. Throws Error if the file is cut off there.
  virtual void Finish() {}

 protected:
  PictureFormat format_;
  std::vector<std::string> warnings_;
};

// Opens a picture and reads its header. What the file holds decides how it is read, not its name.
// Throws Error for files that cannot be read, are no pictures, or claim more than kMaxInputPixels;
// nothing of the claimed size is allocated before that is known.
std::unique_ptr<ImageReader> OpenImage(const std::filesystem::path& path);

// Reads all rows and what follows them.
Picture ReadAll(ImageReader& reader);

struct PictureFile {
  Picture picture;
  std::vector<std::string> warnings;
};
// Reads a whole file. Errors name it.
PictureFile ReadPicture(const std::filesystem::path& path);

}  // namespace tessera
