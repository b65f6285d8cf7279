// Pictures into files, a row at a time.
#pragma once

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "pipeline/image_format.h"
#include "pipeline/picture.h"

namespace tessera {

struct WriteOptions {
  // JPEG: 1 to 100, default 95, chroma never subsampled. WebP: 1 to 100, lossless by default.
  std::optional<int> quality = std::nullopt;
};

class ImageWriter {
 public:
  virtual ~ImageWriter() = default;
  // The next row, top to bottom, as in Picture. To be called `height` times.
  virtual void WriteRow(const std::byte* row) = 0;
  // Completes the file. The stream belongs to the caller, who flushes and closes it.
  virtual void Finish() = 0;
};

// Starts a file on `out`. Throws Error, here and later, if `picture` is not HeldFormat(format,
// picture), exceeds MaxDimension(format), or cannot be written (reason of the system included).
std::unique_ptr<ImageWriter> MakeImageWriter(ImageFormat format, const PictureFormat& picture,
                                             const WriteOptions& options, std::FILE* out);

// Writes a file: complete, or not at all (see atomic_file.h). Errors name it.
void WritePicture(const std::filesystem::path& path, ImageFormat format, const Picture& picture,
                  const WriteOptions& options = {});

}  // namespace tessera
