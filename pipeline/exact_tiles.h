// Tiles whose result is that of the untiled run to the bit, for those where rounding would show.
//
// Fast convolutions round a pixel by others of its block, and so does the next layer: what lies
// beyond a tile's halo changes how its pixels are rounded. Mostly that is far less than an 8-bit
// level. But there are networks that answer halftone, noise and patterns of single pixels with
// values of hundreds and thousands, and rounding errors in proportion. Such a tile is run again
// with a halo for every block that has a say (ReceptiveField::Axis::exact_before). A tile's own
// result decides, so that the picture is the same for all numbers of workers and threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "pipeline/tile_model.h"
#include "pipeline/tiler.h"

namespace tessera {

// How the pixels of any tile of a tiling are cut into exact tiles, whose inputs all have one size.
struct ExactCut {
  AxisCut x, y;
  std::int64_t width = 0, height = 0;  // of their inputs

  // They take the pixels tile.output, once each.
  std::vector<Tile> TilesFor(const Tile& tile) const;
};

// Networks that need a wider halo than this have no exact tiles: these would cost too much.
inline constexpr std::int64_t kMaxExactHalo = 256;

// `bytes`: what a worker may take. Exact tiles have the size of the tiling's own where larger ones
// do not fit beside those, unless almost nothing would be left beside the halo.
std::optional<ExactCut> MakeExactCut(const AxisCut& x, const AxisCut& y, const Tiling& tiling,
                                     const TileModel& model, std::size_t bytes);

// Whether the result of a tile, all of it, holds values so far out of [0, 1] that its rounding may
// show.
bool RoundingMayShow(std::span<const float> result);

}  // namespace tessera
