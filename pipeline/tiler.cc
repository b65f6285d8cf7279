#include "pipeline/tiler.h"

#include <algorithm>
#include <numeric>

#include "ops/error.h"

namespace tessera {
namespace {

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t RoundDownTo(std::int64_t a, std::int64_t b) { return a / b * b; }
std::int64_t RoundUpTo(std::int64_t a, std::int64_t b) { return CeilDiv(a, b) * b; }

}  // namespace

AxisCut::AxisCut(std::int64_t length, const ReceptiveField::Axis& field,
                 const AxisCutOptions& options)
    : scale_num_(field.scale_num),
      scale_den_(field.scale_den),
      before_(options.halo.value_or(field.before + kGridMargin)),
      after_(options.halo.value_or(field.after + kGridMargin)),
      exact_before_(std::max(field.before, field.exact_before)),
      exact_after_(std::max(field.after, field.exact_after)),
      fixed_input_(options.fixed_input) {
  // A crop may start at these only: the network's own steps, and whole output pixels.
  const std::int64_t unit = std::lcm<std::int64_t>(field.alignment, scale_den_);
  before_ = RoundUpTo(before_, scale_den_);
  output_ = (2 * length * scale_num_ + scale_den_) / (2 * scale_den_);
  Require(output_ > 0, length, " pixels are too few for this model's scale of ", scale_num_, "/",
          scale_den_);
  if (!fixed_input_) {
    grid_ = unit * kTileGrid;
    padded_ = RoundUpTo(length, unit);
  } else {
    // One tile size only: there is no other rounding to agree with.
    grid_ = unit;
    const std::int64_t fixed = *fixed_input_;
    Require(fixed >= grid_ && fixed % scale_den_ == 0, "the model's fixed input of ", fixed,
            " pixels does not go with its steps of ", grid_);
    padded_ = fixed + RoundUpTo(std::max<std::int64_t>(0, length - fixed), grid_);
    // A quarter of the input at least is the tile's own, whatever the field.
    const std::int64_t widest =
        std::min(fixed * 3 / 8, (fixed - grid_) / 2) / scale_den_ * scale_den_;
    before_ = std::min(before_, widest);
    after_ = std::min(after_, widest);
  }
  steps_ = std::max<std::int64_t>(0, padded_ - before_ - after_) / grid_;
}

std::vector<std::int64_t> AxisCut::Counts() const {
  if (fixed_input_) return {CountFor(*fixed_input_)};
  std::vector<std::int64_t> counts;
  // The longest tile has ceil(steps / count) steps of its own; each value of that once.
  for (std::int64_t own = std::max<std::int64_t>(1, steps_); own >= 1;) {
    const std::int64_t count = std::max<std::int64_t>(1, CeilDiv(steps_, own));
    counts.push_back(count);
    own = std::min(own, CeilDiv(std::max<std::int64_t>(1, steps_), count)) - 1;
  }
  return counts;
}

std::int64_t AxisCut::CountFor(std::int64_t own) const {
  if (fixed_input_) {
    const std::int64_t own_steps = (*fixed_input_ - before_ - after_) / grid_;
    return 1 + CeilDiv(LastStart(0) / grid_, own_steps);
  }
  return std::max<std::int64_t>(1, CeilDiv(steps_, std::max<std::int64_t>(1, own / grid_)));
}

// Where the last tile starts. The tiles before it start at about equal distances, which are at most
// ceil(steps / count) grid steps: then their own parts cover the axis.
std::int64_t AxisCut::LastStart(std::int64_t count) const {
  if (fixed_input_) return padded_ - *fixed_input_;
  return (count - 1) * steps_ / count * grid_;
}

std::int64_t AxisCut::TileLength(std::int64_t count) const { return padded_ - LastStart(count); }

std::vector<AxisCut::Piece> AxisCut::Pieces(std::int64_t count) const {
  const std::int64_t last = LastStart(count) / grid_, tile = TileLength(count);
  std::vector<Piece> pieces(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    Piece& piece = pieces[static_cast<std::size_t>(i)];
    piece.input = count == 1 ? 0 : i * last / (count - 1) * grid_;
    piece.output = piece.input * scale_num_ / scale_den_;
    piece.end = output_;
    if (i == 0) continue;
    // Two neighbours meet in the middle of what both of them know.
    Piece& previous = pieces[static_cast<std::size_t>(i - 1)];
    const std::int64_t first = piece.input + before_;
    const std::int64_t past = previous.input + tile - after_;
    const std::int64_t meet = first + (past - first) / 2 / scale_den_ * scale_den_;
    previous.end = piece.begin = meet * scale_num_ / scale_den_;
  }
  return pieces;
}

std::int64_t AxisCut::LongestOutput(std::int64_t count) const {
  std::int64_t longest = 0;
  for (const Piece& piece : Pieces(count)) longest = std::max(longest, piece.end - piece.begin);
  return longest;
}

std::int64_t AxisCut::ExactLength(std::int64_t own) const {
  // Wherever the own pixels begin, the input begins at a multiple of the grid.
  const std::int64_t needed = exact_before_ + (grid_ - 1) + own + exact_after_;
  return padded_ - RoundDownTo(std::max<std::int64_t>(0, padded_ - needed), grid_);
}

std::vector<AxisCut::Piece> AxisCut::ExactPieces(std::int64_t begin, std::int64_t end,
                                                 std::int64_t length) const {
  std::vector<Piece> pieces;
  while (begin < end) {
    Piece piece{.begin = begin, .end = end};
    const std::int64_t first = begin * scale_den_ / scale_num_ - exact_before_;
    piece.input = std::min(RoundDownTo(std::max<std::int64_t>(0, first), grid_), padded_ - length);
    piece.output = piece.input * scale_num_ / scale_den_;
    if (piece.input + length < padded_) {
      const std::int64_t past = RoundDownTo(piece.input + length - exact_after_, scale_den_);
      piece.end = std::min(end, past * scale_num_ / scale_den_);
    }
    pieces.push_back(piece);
    begin = piece.end;
  }
  return pieces;
}

Tiling MakeTiling(const AxisCut& x, std::int64_t columns, const AxisCut& y, std::int64_t rows) {
  Tiling tiling{.output_width = x.output_length(),
                .output_height = y.output_length(),
                .tile_width = x.TileLength(columns),
                .tile_height = y.TileLength(rows)};
  const std::vector<AxisCut::Piece> across = x.Pieces(columns);
  for (const AxisCut::Piece& v : y.Pieces(rows)) {
    for (const AxisCut::Piece& h : across) {
      tiling.tiles.push_back({.input = {h.input, v.input, tiling.tile_width, tiling.tile_height},
                              .output_x = h.output,
                              .output_y = v.output,
                              .output = {h.begin, v.begin, h.end - h.begin, v.end - v.begin}});
    }
  }
  return tiling;
}

}  // namespace tessera
