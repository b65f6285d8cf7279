// Bytes between planes (row-major NCHW) and pixels (Layout::kChannelsLast).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera {

// pixels[x * pixel_stride + c] = planes[c * plane_stride + x] for x < count and c < channels; the
// other channels, up to the next multiple of 16 (4 where pixel_stride is 4), become zero. Channels
// may be those of a part of a pixel, which begins at a multiple of 16.
void BytePlanesToPixels(const std::uint8_t* planes, std::size_t plane_stride, std::size_t channels,
                        std::size_t count, std::uint8_t* pixels, std::size_t pixel_stride);

// The inverse: planes[c * plane_stride + x] = pixels[x * pixel_stride + c].
void BytePixelsToPlanes(const std::uint8_t* pixels, std::size_t pixel_stride, std::size_t channels,
                        std::size_t count, std::uint8_t* planes, std::size_t plane_stride);

}  // namespace tessera
