// Headers of the formats that OpenCV decodes here: PNM, BMP, Sun raster, JPEG 2000. They are read
// before it sees them, as its decoders allocate whatever size a header claims.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "pipeline/image_reader.h"

namespace tessera {

struct OpenCvHeader {
  PictureFormat format;           // of what OpenCV makes of the file
  std::int64_t max_value = 0;     // of its samples, as OpenCV leaves them
  std::size_t decoder_bytes = 0;  // that OpenCV takes beside the picture, from above
  std::optional<Metadata::Density> density = std::nullopt;
};

// Makes `file` ready for OpenCV, too. Throws Error if it is none of these formats, of a kind that
// OpenCV cannot read or makes a wrong picture of, or too short for the size that it claims.
OpenCvHeader ParseOpenCvHeader(std::string& file, const ReadOptions& options);

}  // namespace tessera
