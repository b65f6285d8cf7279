// What a picture file says beside its pixels.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/image_format.h"
#include "pipeline/picture.h"

namespace tessera {

struct Metadata {
  std::string icc = {};   // ICC profile (ICC.1:2022)
  std::string exif = {};  // EXIF block (Exif 2.32): begins with the byte order of its TIFF header
  std::string xmp = {};   // XMP packet: XML in UTF-8

  struct Density {
    double x = 0, y = 0;  // pixels per metre
  };
  std::optional<Density> density = std::nullopt;

  // PNG's own description of its colours (PNG specification, section 11.3.2).
  std::optional<double> gamma = std::nullopt;     // gAMA: of the file, like 0.45455
  std::optional<int> srgb_intent = std::nullopt;  // sRGB: 0 to 3
  std::optional<std::array<double, 8>> chromaticity =
      std::nullopt;  // cHRM: x, y of white, red, green, blue
  // cICP: primaries, transfer, matrix, full range (ITU-T H.273); it counts before all others.
  std::optional<std::array<std::uint8_t, 4>> cicp = std::nullopt;

  struct Text {
    std::string keyword;  // Latin-1, 1 to 79 bytes
    std::string value;    // UTF-8
  };
  std::vector<Text> text = {};
};

// The keyword of what a JPEG has as its comment.
inline constexpr std::string_view kCommentKeyword = "Comment";

// What of `metadata`, as read with one picture, goes with the picture `output` made of it into a
// file of that format. What it says of the pixels is corrected: they are turned and have another
// size, no thumbnail shows them. What is damaged, is wrong for these channels (a profile of other
// colours) or does not fit in the format is left out, and `notes` get a line for the user on each
// such thing.
Metadata AdaptMetadata(Metadata metadata, const PictureFormat& output, ImageFormat format,
                       std::vector<std::string>& notes);

}  // namespace tessera
