// Quantisation of float32 images, row-major or blocked, to uint8 in Layout::kChannelsLast, and
// back; one scale and zero point. The numbers are those of QuantizeRow and DequantizeRow.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/tensor.h"

namespace tessera {

// Some pixels of a uint8 tensor, and its scale and zero point. There is at least one channel.
struct PixelRun {
  float scale;
  std::int32_t zero_point;
  std::size_t channels, pixel_stride;  // ChannelsLastLayout's
  std::size_t count;                   // of pixels, one after the other
};

// Row-major: channel c of pixel x is planes[c * plane_stride + x].
void QuantizePlanes(const PixelRun& p, const float* planes, std::size_t plane_stride,
                    std::uint8_t* pixels);
void DequantizeToPlanes(const PixelRun& p, const std::uint8_t* pixels, float* planes,
                        std::size_t plane_stride);

// Blocked: channel c of pixel x is blocks[c / lanes * block_stride + x * lanes + c % lanes].
void QuantizeBlocks(const PixelRun& p, const float* blocks, std::size_t block_stride,
                    std::uint8_t* pixels);
void DequantizeToBlocks(const PixelRun& p, const std::uint8_t* pixels, float* blocks,
                        std::size_t block_stride);

}  // namespace tessera
