// How a picture is cut into tiles that a network upscales one by one without showing it.
//
// A tile's input covers its own pixels and around them a halo: the pixels that the network looks
// at (its receptive field) and kGridMargin more. The border of the picture is the border of the
// network: a tile at the border reads up to it and no further, as the untiled run does. All tiles
// of a cut have inputs of the same size, so they take the same time, and the same plan and buffers
// serve them all; a tile at the border has no halo on that side and more pixels of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/session.h"
#include "pipeline/picture.h"

namespace tessera {

// Winograd kernels compute output pixels in blocks of 6x6 or 4x4 and round by a pixel's place in
// its block. Tiles whose inputs start at multiples of both, in the smallest of the network's
// layers, keep every pixel in its place.
inline constexpr std::int64_t kTileGrid = 12;
// Input pixels beyond the receptive field that share a block with it.
inline constexpr std::int64_t kGridMargin = 6;

struct AxisCutOptions {
  // Halo on each side, in place of the field's and the margin.
  std::optional<std::int64_t> halo = std::nullopt;
  // The only input length that the network accepts. The halo shrinks if it has to.
  std::optional<std::int64_t> fixed_input = std::nullopt;
};

// The ways to cut one axis, by the number of tiles. Lengths are input pixels unless they are said
// to be output pixels.
class AxisCut {
 public:
  AxisCut(std::int64_t length, const ReceptiveField::Axis& field,
          const AxisCutOptions& options = {});

  // The axis is extended to this length, at its end, for networks that work only on multiples of
  // something or on one length. What comes of the extension is cut off.
  std::int64_t padded_length() const { return padded_; }
  // Output pixels: length times scale, rounded.
  std::int64_t output_length() const { return output_; }

  // Numbers of tiles, ascending, that are worth a thought: each makes the tiles shorter.
  std::vector<std::int64_t> Counts() const;
  // The fewest tiles with at most `own` pixels beside their halos, in steps of the grid.
  std::int64_t CountFor(std::int64_t own) const;
  // Length of the input of each of `count` tiles.
  std::int64_t TileLength(std::int64_t count) const;

  struct Piece {
    std::int64_t input = 0;           // start of the tile's input
    std::int64_t output = 0;          // output pixel where the tile's output starts
    std::int64_t begin = 0, end = 0;  // output pixels that are taken from this tile
  };
  std::vector<Piece> Pieces(std::int64_t count) const;
  // The most output pixels that one of the pieces gives.
  std::int64_t LongestOutput(std::int64_t count) const;

  // Input pixels that so many output pixels are made of, rounded up.
  std::int64_t InputLength(std::int64_t output) const {
    return (output * scale_den_ + scale_num_ - 1) / scale_num_;
  }

  // How far around itself an input pixel matters to the bit, the farther side.
  std::int64_t ExactHalo() const { return std::max(exact_before_, exact_after_); }
  // Length of an input that gives `own` input pixels' output as the uncut axis would, to the bit.
  std::int64_t ExactLength(std::int64_t own) const;
  // The output pixels [begin, end) of one of Pieces from inputs of such a length, to the bit.
  std::vector<Piece> ExactPieces(std::int64_t begin, std::int64_t end, std::int64_t length) const;

 private:
  std::int64_t LastStart(std::int64_t count) const;

  std::int64_t scale_num_, scale_den_;
  std::int64_t grid_;  // tiles start at multiples of this
  std::int64_t before_, after_;
  std::int64_t exact_before_, exact_after_;
  std::int64_t padded_, output_;
  std::int64_t steps_;  // what is to be shared out: grid steps of the axis less one pair of halos
  std::optional<std::int64_t> fixed_input_ = std::nullopt;
};

struct Tile {
  Rect input;                               // of the padded picture
  std::int64_t output_x = 0, output_y = 0;  // where the network's output for `input` lies
  Rect output;                              // what is taken of it
};

struct Tiling {
  std::int64_t output_width = 0, output_height = 0;
  std::int64_t tile_width = 0, tile_height = 0;  // of every tile's input
  std::vector<Tile> tiles = {};                  // row by row
};
Tiling MakeTiling(const AxisCut& x, std::int64_t columns, const AxisCut& y, std::int64_t rows);

}  // namespace tessera
