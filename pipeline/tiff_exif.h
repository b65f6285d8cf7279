// EXIF of TIFF files: there it is no block of its own but tags among and beside those of the
// picture.
#pragma once

#include <cstdint>
#include <string>

#include "pipeline/tiff_tags.h"

namespace tessera {

// Whether a tag of the first directory describes the picture (who made it, with what, when) and not
// how its pixels are stored.
bool IsDescriptiveTag(std::uint16_t tag);

struct CollectedExif {
  std::string block;  // as Metadata::exif; empty if there are no such tags
  bool damaged = false;
};
// The descriptive tags of the file's first directory and all of its EXIF and GPS directories, as an
// EXIF block (Exif 2.32, section 4.5) in the byte order of the file. Orientation, resolution and
// sizes are left to the picture.
CollectedExif CollectExif(const TiffSource& tiff);

}  // namespace tessera
