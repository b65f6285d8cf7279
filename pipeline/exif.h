// EXIF blocks: TIFF directories without a picture (Exif 2.32, section 4.5). Any bytes may be given
// to these functions; they never read or write beyond them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pipeline/metadata.h"

namespace tessera {

// From XResolution, YResolution and ResolutionUnit, if they are there and make sense.
std::optional<Metadata::Density> ExifDensity(std::string_view exif);

// Makes a block that came with one picture true of another, of width x height pixels and turned as
// it is to be looked at: orientation 1, sizes where there are any, no thumbnail. In place: a
// maker's notes hold offsets into the block, which are not to move. False, and nothing is done, if
// the block is damaged.
bool PatchExif(std::string& exif, std::int64_t width, std::int64_t height);

}  // namespace tessera
