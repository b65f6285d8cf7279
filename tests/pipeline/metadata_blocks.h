// Blocks of metadata, made by hand, for tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

inline std::string NumberBytes(std::uint64_t value, std::size_t size, bool big_endian) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i)
    bytes += static_cast<char>(value >> 8 * (big_endian ? size - 1 - i : i) & 0xFF);
  return bytes;
}

struct ExifSpec {
  bool big_endian = false;
  std::uint32_t orientation = 6;
  std::uint32_t dots_per_inch = 300;
};
inline constexpr std::uint32_t kExifShort = 3, kExifLong = 4;
inline constexpr const char* kMakerNote = "the maker's own";
inline constexpr const char* kThumbnail = "a small picture";

// Where ExifBlock has things.
inline constexpr std::size_t kExifFirst = 8, kExifDetails = 110, kExifSecond = 190;

// What a camera writes for a picture of 3000x2000 pixels: the first directory with both sizes as
// SHORTs, that of the details with PixelXDimension as a SHORT and PixelYDimension as a LONG, a
// maker's note, and a thumbnail.
inline std::string ExifBlock(const ExifSpec& spec) {
  const auto number = [&](std::uint64_t value, std::size_t size) {
    return NumberBytes(value, size, spec.big_endian);
  };
  const auto entry = [&](std::uint64_t tag, std::uint64_t type, std::uint64_t count,
                         std::uint64_t value) {
    const bool is_short = type == kExifShort && count == 1;
    return number(tag, 2) + number(type, 2) + number(count, 4) +
           (is_short ? number(value, 2) + number(0, 2) : number(value, 4));
  };
  const auto at = [](std::string& block, std::size_t offset) { block.resize(offset, '\0'); };
  std::string block = spec.big_endian ? "MM" : "II";
  block += number(42, 2) + number(kExifFirst, 4);
  block += number(7, 2) + entry(256, kExifShort, 1, 3000) + entry(257, kExifShort, 1, 2000) +
           entry(274, kExifShort, 1, spec.orientation) + entry(282, 5, 1, 98) +
           entry(283, 5, 1, 98) + entry(296, kExifShort, 1, 2) +
           entry(34665, kExifLong, 1, kExifDetails) + number(kExifSecond, 4);
  at(block, 98);
  block += number(spec.dots_per_inch, 4) + number(1, 4);
  at(block, kExifDetails);
  block += number(3, 2) + entry(37500, 7, 15, 160) + entry(40962, kExifShort, 1, 3000) +
           entry(40963, kExifLong, 1, 2000) + number(0, 4);
  at(block, 160);
  block += kMakerNote;
  at(block, kExifSecond);
  block +=
      number(2, 2) + entry(513, kExifLong, 1, 220) + entry(514, kExifLong, 1, 15) + number(0, 4);
  at(block, 220);
  return block + kThumbnail;
}

struct ExifValue {
  std::uint64_t type, value;
  bool operator==(const ExifValue&) const = default;
};
// A tag's value of the directory at an offset.
inline std::optional<ExifValue> ValueOf(const std::string& block, std::size_t directory,
                                        std::uint64_t tag) {
  const auto number = [&](std::size_t at, std::size_t size) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t from = block[0] == 'M' ? at + i : at + size - 1 - i;
      value = value << 8 | static_cast<unsigned char>(block.at(from));
    }
    return value;
  };
  for (std::size_t i = 0; i < number(directory, 2); ++i) {
    const std::size_t entry = directory + 2 + 12 * i;
    if (number(entry, 2) != tag) continue;
    const std::uint64_t type = number(entry + 2, 2);
    return ExifValue{type, number(entry + 8, type == kExifShort ? 2 : 4)};
  }
  return std::nullopt;
}

// A profile that has a header and `tags`: the table, its length in front (ICC.1:2022, section 7.3),
// and what it points to.
inline std::string IccBlock(const std::string& colour_space,
                            const std::string& tags = std::string(4, '\0')) {
  std::string profile = NumberBytes(128 + tags.size(), 4, true) + "lcms" + "\x04\x30" +
                        std::string(2, '\0') + "mntr" + colour_space + "XYZ ";
  profile.resize(36, '\0');
  profile += "acsp";
  profile.resize(68, '\0');
  // The profile connection space's white: D50.
  profile +=
      NumberBytes(0xF6D6, 4, true) + NumberBytes(0x10000, 4, true) + NumberBytes(0xD32D, 4, true);
  profile.resize(128, '\0');
  return profile + tags;
}

inline const std::string kXmpPacket =
    "<?xpacket begin='' id='W5M0MpCehiHzreSzNTczkc9d'?>\n"
    "<x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:RDF "
    "xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>\n"
    "<rdf:Description rdf:about='' xmlns:tiff='http://ns.adobe.com/tiff/1.0/' "
    "xmlns:exif=\"http://ns.adobe.com/exif/1.0/\" tiff:Orientation=\"6\" "
    "exif:PixelXDimension = '3000'>\n"
    "<tiff:ImageWidth>3000</tiff:ImageWidth><tiff:ImageLength>2000</tiff:ImageLength>"
    "<exif:PixelYDimension>2000</exif:PixelYDimension><tiff:Make>A \xC3\xA9 maker</tiff:Make>\n"
    "</rdf:Description></rdf:RDF></x:xmpmeta>\n<?xpacket end='w'?>";

}  // namespace tessera
