#include "pipeline/exact_tiles.h"

#include <algorithm>

namespace tessera {

std::vector<Tile> ExactCut::TilesFor(const Tile& tile) const {
  const auto across = x.ExactPieces(tile.output.x, tile.output.right(), width);
  std::vector<Tile> tiles;
  for (const AxisCut::Piece& v : y.ExactPieces(tile.output.y, tile.output.bottom(), height)) {
    for (const AxisCut::Piece& h : across) {
      tiles.push_back({.input = {h.input, v.input, width, height},
                       .output_x = h.output,
                       .output_y = v.output,
                       .output = {h.begin, v.begin, h.end - h.begin, v.end - v.begin}});
    }
  }
  return tiles;
}

std::optional<ExactCut> MakeExactCut(const AxisCut& x, const AxisCut& y, const Tiling& tiling,
                                     const TileModel& model, std::size_t bytes) {
  if (std::max(x.ExactHalo(), y.ExactHalo()) > kMaxExactHalo) return std::nullopt;
  // The most input pixels that a tile has for itself.
  std::int64_t own_width = 1, own_height = 1;
  for (const Tile& tile : tiling.tiles) {
    own_width = std::max(own_width, x.InputLength(tile.output.width));
    own_height = std::max(own_height, y.InputLength(tile.output.height));
  }
  constexpr std::int64_t kMinOwn = 48;
  const std::size_t tile_bytes = model.RunBytes(tiling.tile_width, tiling.tile_height);
  ExactCut cut{.x = x, .y = y};
  for (std::int64_t parts = 1;; ++parts) {
    const std::int64_t part_width = (own_width + parts - 1) / parts;
    const std::int64_t part_height = (own_height + parts - 1) / parts;
    cut.width = std::max(tiling.tile_width, x.ExactLength(part_width));
    cut.height = std::max(tiling.tile_height, y.ExactLength(part_height));
    const bool same_size = cut.width == tiling.tile_width && cut.height == tiling.tile_height;
    if (same_size || tile_bytes + model.RunBytes(cut.width, cut.height) <= bytes ||
        std::max(part_width, part_height) <= kMinOwn) {
      return cut;
    }
  }
}

bool RoundingMayShow(std::span<const float> result) {
  // Photographs and drawings give -0.7 to 1.8 with all networks that we tried, and errors of 3e-5
  // there; 11 and errors of 6e-4 is the least that we saw beyond, where an 8-bit level is 4e-3.
  constexpr float kLow = -2, kHigh = 3;
  int far = 0;
  for (const float v : result) far |= (v >= kLow ? 0 : 1) | (v <= kHigh ? 0 : 1);
  return far != 0;
}

}  // namespace tessera
