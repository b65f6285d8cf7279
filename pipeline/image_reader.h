// Pictures from files, a row at a time.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/metadata.h"
#include "pipeline/picture.h"

namespace tessera {

// An open picture. Palettes are looked up, 1, 2 and 4-bit grey is widened to 8 bits, transparency
// by colour becomes alpha, CMYK becomes RGB, a picture is turned as its EXIF or TIFF orientation
// says. Errors say what is wrong; who knows the file's name puts it in front (NamingFile).
class ImageReader {
 public:
  virtual ~ImageReader() = default;

  const PictureFormat& format() const { return format_; }
  // What is wrong with the file but does not keep it from being read.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // As in the file: the orientation, which has been applied, is still told by its tags.
  const Metadata& metadata() const { return metadata_; }
  // Memory that the reader takes for pixels beside the row that is asked for: formats, and kinds of
  // PNG and JPEG, that cannot be read row by row are held whole.
  virtual std::size_t HeldBytes() const { return 0; }

  // The next row, top to bottom: format().RowBytes() bytes. To be called format().height times.
  virtual void ReadRow(std::byte* row) = 0;
  // Reads what follows the last row. Throws Error if the file is cut off there.
  virtual void Finish() {}

 protected:
  PictureFormat format_;
  Metadata metadata_;
  std::vector<std::string> warnings_;
};

struct ReadOptions {
  std::int64_t max_pixels = kMaxInputPixels;  // more is taken for a damaged header
};

// Opens a picture and reads its header. What the file holds decides how it is read, not its name.
// Throws Error for files that cannot be read, are no pictures, or claim more than max_pixels;
// nothing of the claimed size is allocated before that is known.
std::unique_ptr<ImageReader> OpenImage(const std::filesystem::path& path,
                                       const ReadOptions& options = {});

// Reads all rows and what follows them.
Picture ReadAll(ImageReader& reader);

struct PictureFile {
  Picture picture;
  std::vector<std::string> warnings;
};
// Reads a whole file. Errors name it.
PictureFile ReadPicture(const std::filesystem::path& path);

}  // namespace tessera
