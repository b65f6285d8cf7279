// Quantisation of float32 images, row-major or blocked, to uint8 in Layout::kChannelsLast, and
// back; one scale and zero point. The numbers are those of QuantizeRow and DequantizeRow.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/tensor.h"

namespace tessera {

// Scale and zero point of a uint8 tensor, and where some of its pixels are.
struct QuantizedPixels {
  float scale;
  std::int32_t zero_point;
  std::size_t channels, pixel_stride;  // ChannelsLastLayout's
  std::size_t count;                   // of pixels, one after the other
};

// Row-major: channel c of pixel x is planes[c * plane_stride + x].
void QuantizePlanes(const QuantizedPixels& p, const float* planes, std::size_t plane_stride,
                    std::uint8_t* pixels);
void DequantizeToPlanes(const QuantizedPixels& p, const std::uint8_t* pixels, float* planes,
                        std::size_t plane_stride);

// Blocked: channel c of pixel x is blocks[c / lanes * block_stride + x * lanes + c % lanes].
void QuantizeBlocks(const QuantizedPixels& p, const float* blocks, std::size_t block_stride,
                    std::uint8_t* pixels);
void DequantizeToBlocks(const QuantizedPixels& p, const std::uint8_t* pixels, float* blocks,
                        std::size_t block_stride);

}  // namespace tessera
