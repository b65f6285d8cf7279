// Rows of a PNG's image data, compressed on their own so that several strips can be at the same
// time.
#pragma once

#include <cstdint>
#include <optional>

#include "pipeline/image_writer.h"
#include "pipeline/picture.h"

namespace tessera {

// Rows of a strip of such a picture: enough that the cuts cost next to nothing.
std::int64_t PngStripRows(const PictureFormat& format);

// Filters (PNG specification, section 9; for each row the filter with the least sum of absolute
// differences) and deflates the rows [begin, end) of a picture: RowBytes() + 1 filtered bytes each,
// into whole bytes of raw deflate blocks (the last strip ends the stream) and their Adler-32.
// Strips one after the other, between a zlib header and the combined checksum, are the image data.
// `level`: of zlib, 0 to 9; by default what is quick and good for upscaled pictures.
PackedStrip PackPngStrip(const Picture& picture, std::int64_t begin, std::int64_t end,
                         std::optional<int> level = std::nullopt);

}  // namespace tessera
