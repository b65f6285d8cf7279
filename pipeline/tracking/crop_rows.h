// The vector kernels of crop.h: the two passes of scaling, row by row, and sums of rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tessera {

// Output columns are computed in groups of so many.
inline constexpr std::int64_t kCropGroup = 16;

// What the output columns are made of, for `columns` of them, a multiple of kCropGroup. Two columns
// are a block: the 16 bytes of a source row that hold the two neighbours of each. In each pair of
// neighbours one is near, the other one far; the far one's weight is at most a half. A block's 8
// values are B, G and B, G of its columns, then R, 0 and R, 0. All arrays are aligned to vectors.
struct CropTaps {
  std::int64_t columns = 0;
  // Bytes from the start of the row, two a block: its 16 bytes begin at the first one; if `apart`,
  // 8 bytes begin at either.
  const std::ptrdiff_t* offsets = nullptr;
  bool apart = false;
  // 16 a block: for each value the places of the far and of the near level in the block, with the
  // high bit set for 0.
  const std::uint8_t* places = nullptr;
  // 8 a block: -32 * weight of the far level, weights being 0 to 1024.
  const std::int16_t* weights = nullptr;
};

// Scales a row horizontally. `scaled` gets 128 times the levels, rounded down: B and G of each
// column, then, from 2 * columns on, R and 0 of each.
void ScaleCropRow(const CropTaps& taps, const std::uint8_t* row, std::int16_t* scaled);

// Where rows of the output go to.
struct CropPlanes {
  std::array<float*, 3> row;  // B, G, R
  std::array<float, 3> mean, factor;
};

// Blends two rows of so many scaled columns and writes (level - mean) * factor of the first `count`
// to the planes' rows. These end with a whole vector: up to kCropGroup - 1 more floats are written.
void BlendCropRows(const std::int16_t* above, const std::int16_t* below, int weight_above,
                   int weight_below, std::int64_t columns, std::int64_t count,
                   const CropPlanes& planes);

// Adds the row's levels, interleaved B, G, R, to sums.
void AddRow(const std::uint8_t* row, std::int64_t width, std::array<std::uint64_t, 3>& sums);

}  // namespace tessera
