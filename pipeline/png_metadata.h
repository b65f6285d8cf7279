// Metadata in chunks of PNG files (PNG specification, third edition, section 11.3).
//
// libpng has functions for most of them. But it makes one colour space of gAMA, cHRM, sRGB and iCCP
// and tells that, not the file; it gets to the chunks behind the pixels when the output has long
// been begun; and it limits the size of one text, not of all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/metadata.h"

namespace tessera {

struct PngChunk {
  std::string name, data;
};

// The names of the chunks that are read here, each with a zero behind it.
inline constexpr std::string_view kPngMetadataChunks(
    "gAMA\0cHRM\0sRGB\0cICP\0iCCP\0pHYs\0eXIf\0tEXt\0zTXt\0iTXt\0acTL\0", 55);
bool IsPngMetadata(std::string_view name);

// Of all metadata of a file together, packed and unpacked; what goes beyond it is left out.
inline constexpr std::size_t kMaxPngMetadataBytes = std::size_t{64} << 20;
inline constexpr const char* kTooMuchPngMetadata = "its metadata are too large: left out in part";

// What chunks say. Of those that may be there once, the first counts. Damaged ones are left out,
// with a warning.
Metadata ParsePngMetadata(const std::vector<PngChunk>& chunks, std::vector<std::string>& warnings);

// In the order in which they may stand between IHDR and IDAT.
std::vector<PngChunk> MakePngMetadata(const Metadata& metadata);

struct PngScan {
  std::vector<PngChunk> metadata;  // intact chunks from all over the file
  std::int64_t image_bytes = 0;    // in its IDAT chunks, as far as they are there
};
// Goes through the chunks of a file, which stands at its start, and back there. Of most chunks the
// heads only are read. A file that breaks off is scanned up to there. nullopt if the file cannot be
// sought in.
std::optional<PngScan> ScanPng(std::FILE* file, std::vector<std::string>& warnings);

}  // namespace tessera
