// Quantisation of float32 images, row-major or blocked, to uint8 in Layout::kChannelsLast, and
// back; one zero point, and one scale, or where it is quantised perhaps one for each channel. The
// numbers are those of QuantizeRow and DequantizeRow.
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
  // Null, or those to quantise with in place of `scale`: one for each channel, and any numbers
  // behind them up to a multiple of 16.
  const float* scales = nullptr;

  float ScaleOf(std::size_t channel) const { return scales == nullptr ? scale : scales[channel]; }
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
