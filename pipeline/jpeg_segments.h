// Where JPEG files keep metadata.
#pragma once

#include <cstddef>
#include <string_view>

namespace tessera {

// A segment's length, which counts itself, has two bytes.
inline constexpr std::size_t kJpegSegmentBytes = 65533;

// What the data of an APP1 segment begin with (Exif 2.32, section 4.7.2; XMP specification,
// part 3, section 1.1.3).
inline constexpr std::string_view kJpegExif("Exif\0\0", 6);
inline constexpr std::string_view kJpegXmp("http://ns.adobe.com/xap/1.0/\0", 29);
// Of a packet that one segment does not hold, the rest.
inline constexpr std::string_view kJpegExtendedXmp("http://ns.adobe.com/xmp/extension/\0", 35);

// An ICC profile is cut into up to 255 APP2 segments, numbered in 14 bytes of each (ICC.1:2010,
// annex B.4).
inline constexpr std::size_t kJpegIccBytes = 255 * (kJpegSegmentBytes - 14);

}  // namespace tessera
