// Tags of TIFF files, and of EXIF blocks, which are built like them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tessera {

inline constexpr std::uint16_t kTiffOrientation = 274;
inline constexpr std::uint16_t kTiffSamplesPerPixel = 277;
inline constexpr std::uint16_t kTiffExtraSamples = 338;

// The first value of a tag of type SHORT in the first directory of `tiff` (TIFF 6.0, section 2), or
// nullopt if it is not there or the data are damaged.
std::optional<std::uint16_t> TiffShort(std::span<const std::byte> tiff, std::uint16_t tag);

}  // namespace tessera
