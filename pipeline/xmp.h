// XMP packets: RDF in XML (ISO 16684-1).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

// Whether it may be a packet at all: begins as XML, and has one of the elements that are around all
// else. It is not parsed.
bool LooksLikeXmp(std::string_view xmp);

// Makes a packet that came with one picture true of another, as PatchExif does for EXIF: the values
// of tiff:Orientation, tiff:ImageWidth, tiff:ImageLength, exif:PixelXDimension and
// exif:PixelYDimension where they are there, as attributes or as elements. All else is kept to the
// byte. Any bytes may be given.
void PatchXmp(std::string& xmp, std::int64_t width, std::int64_t height);

}  // namespace tessera
