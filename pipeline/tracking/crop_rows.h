// The vector kernels of crop.h: the two passes of scaling, row by row, and sums of rows.
#pragma once

#include <array>
#include <cstdint>

namespace tessera {

// Output columns are computed in groups of so many.
inline constexpr std::int64_t kCropGroup = 16;

// The pixels of a source row that the output columns are made of, and their weights, for `columns`
// columns, a multiple of kCropGroup. Columns are not in their order: see CropColumn. Everything
// that follows is aligned to vectors.
struct CropTaps {
  std::int64_t columns = 0;
  // The two neighbours of each column, 8 bytes a column: B, G, R, B, G, R and two that do not
  // matter.
  const std::uint8_t* pairs = nullptr;
  // Weights are 32 * high + low, so that 16 bits hold the products with levels. For two columns at
  // a time: theirs, each twice, and the same again; first all of the left neighbours, then, after
  // 4 * columns, all of the right ones.
  const std::int16_t* high = nullptr;
  const std::int16_t* low = nullptr;
};

// The column at that place of CropTaps. The first half of the places are columns 0, 1, 4, 5, 8, 9
// and so on, the second half the others: vectors of both halves then interleave to columns in
// their order, whatever the length of vectors.
constexpr std::int64_t CropColumn(std::int64_t place, std::int64_t columns) {
  const std::int64_t half = columns / 2, in_half = place % half;
  return in_half / 2 * 4 + in_half % 2 + place / half * 2;
}

// A row scaled horizontally: (weight * left + weight * right) / 16, rounded down, for each column
// its B and G, then, after 2 * columns values, for each column its R and 0.
void ScaleCropRow(const CropTaps& taps, std::int16_t* scaled);

// Where rows of the output go to.
struct CropPlanes {
  std::array<float*, 3> row;  // B, G, R
  std::array<float, 3> mean, factor;
};

// (level - mean) * factor of the levels between two scaled rows. Writes `count` values a row,
// rounded up to a whole vector, kCropGroup at the most.
void BlendCropRows(const std::int16_t* above, const std::int16_t* below, int weight_above,
                   int weight_below, std::int64_t columns, std::int64_t count,
                   const CropPlanes& planes);

// Adds the row's levels, interleaved B, G, R, to sums.
void AddRow(const std::uint8_t* row, std::int64_t width, std::array<std::uint64_t, 3>& sums);

}  // namespace tessera
