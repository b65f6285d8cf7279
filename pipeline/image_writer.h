// Pictures into files, a few rows at a time.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/image_format.h"
#include "pipeline/metadata.h"
#include "pipeline/picture.h"

namespace tessera {

struct WriteOptions {
  // JPEG: 1 to 100, default 95, chroma never subsampled. WebP: 1 to 100, lossless by default.
  std::optional<int> quality = std::nullopt;
  // PNG: zlib's effort, 0 to 9. By default what is quick and good for upscaled pictures.
  std::optional<int> png_level = std::nullopt;
  // What of it the format can hold is written; it has to fit the picture (see metadata.h).
  Metadata metadata = {};
  // Of a file that is there, or that others make meanwhile; else either is an Error.
  bool overwrite = true;
};

struct PackedStrip {
  std::string bytes;
  std::uint32_t checksum = 0;  // of what was packed, if the format has one
};

// A picture goes through two steps, strip by strip: PackStrip may be called for several strips at a
// time and in any order, WriteStrip for one at a time, from the top.
class ImageWriter {
 public:
  virtual ~ImageWriter() = default;

  // A line for the user on each thing of the metadata that turned out not to fit and was left out.
  const std::vector<std::string>& notes() const { return notes_; }

  // Rows [begin, end), a strip, as WriteStrip wants to have them. Nothing, where a format has to be
  // encoded from one end to the other.
  virtual PackedStrip PackStrip(const Picture& /*picture*/, std::int64_t /*begin*/,
                                std::int64_t /*end*/) const {
    return {};
  }
  virtual void WriteStrip(const Picture& picture, std::int64_t begin, std::int64_t end,
                          const PackedStrip& packed) = 0;
  // Completes the file. The stream belongs to the caller, who flushes and closes it.
  virtual void Finish() = 0;

 protected:
  std::vector<std::string> notes_;
};

// Starts a file on `out`. Throws Error, here and later, if `picture` is not HeldFormat(format,
// picture), exceeds MaxDimension(format), or cannot be written (reason of the system included).
std::unique_ptr<ImageWriter> MakeImageWriter(ImageFormat format, const PictureFormat& picture,
                                             const WriteOptions& options, std::FILE* out);

// Rows of a strip; the last one of a picture may have fewer.
std::int64_t StripRows(ImageFormat format, const PictureFormat& picture);

// Memory that a writer takes beside the rows that it is given; an estimate from above for what is
// encoded as a whole. A TIFF is, if `out` is a pipe or another thing that cannot seek.
std::size_t WriterBytes(ImageFormat format, const PictureFormat& picture, bool seekable = true);

// Writes a file: complete, or not at all (see atomic_file.h). Errors name it.
void WritePicture(const std::filesystem::path& path, ImageFormat format, const Picture& picture,
                  const WriteOptions& options = {});

}  // namespace tessera
