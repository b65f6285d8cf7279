#include "pipeline/tiler.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "ops/error.h"

namespace tessera {
namespace {

using Axis = ReceptiveField::Axis;

// What every cut has to hold.
void CheckCut(const AxisCut& cut, std::int64_t length, const Axis& field, std::int64_t count,
              std::int64_t halo_before, std::int64_t halo_after, std::int64_t grid) {
  SCOPED_TRACE(StrCat("length ", length, ", scale ", field.scale_num, "/", field.scale_den,
                      ", field ", field.before, "+", field.after, ", alignment ", field.alignment,
                      ", ", count, " tiles"));
  const std::int64_t tile = cut.TileLength(count), padded = cut.padded_length();
  ASSERT_GE(padded, length);
  ASSERT_EQ(tile % field.alignment, 0);
  ASSERT_EQ(padded * field.scale_num % field.scale_den, 0);
  const auto pieces = cut.Pieces(count);
  ASSERT_EQ(pieces.size(), static_cast<std::size_t>(count));
  std::int64_t next = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const AxisCut::Piece& p = pieces[i];
    // The outputs are taken once each, in order.
    ASSERT_EQ(p.begin, next);
    ASSERT_GT(p.end, p.begin);
    next = p.end;
    // Inputs lie inside, on the grid, whole output pixels.
    ASSERT_GE(p.input, 0);
    ASSERT_LE(p.input + tile, padded);
    ASSERT_EQ(p.input % grid, 0);
    ASSERT_EQ(p.output * field.scale_den, p.input * field.scale_num);
    // The halo is there, or the border is.
    if (p.input > 0) {
      ASSERT_GE(p.begin * field.scale_den, (p.input + halo_before) * field.scale_num);
    }
    if (p.input + tile < padded) {
      ASSERT_LE(p.end * field.scale_den, (p.input + tile - halo_after) * field.scale_num);
    }
  }
  ASSERT_EQ(next, cut.output_length());
  ASSERT_EQ(pieces.front().input, 0);
  ASSERT_EQ(pieces.back().input + tile, padded);
}

TEST(AxisCut, HoldsItsRulesForRandomNetworksAndLengths) {
  std::mt19937 random(7);
  const auto in = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int i = 0; i < 5000; ++i) {
    Axis field{.scale_num = in(1, 4), .scale_den = 1, .before = in(0, 40), .after = in(0, 40)};
    field.alignment = std::array{1, 1, 2, 4, 5, 8}[static_cast<std::size_t>(in(0, 5))];
    if (in(0, 3) == 0) {
      field.scale_den = in(2, 4);
      field.scale_num = field.scale_den == 3 ? 2 : field.scale_den == 2 ? 3 : 1;
    }
    const std::int64_t length = in(2, i % 2 ? 60 : 2000);
    std::optional<std::int64_t> halo;
    if (in(0, 2) == 0) halo = in(0, 20);
    const AxisCut cut(length, field, {.halo = halo, .fixed_input = {}});
    const std::int64_t grid = std::lcm<std::int64_t>(field.alignment, field.scale_den) * kTileGrid;
    EXPECT_EQ(cut.output_length(),
              static_cast<std::int64_t>(std::floor(
                  static_cast<double>(length * field.scale_num) / field.scale_den + 0.5)));
    const std::int64_t own = in(1, 300);
    for (const std::int64_t count : {std::int64_t{1}, cut.CountFor(own)}) {
      CheckCut(cut, length, field, count, halo.value_or(field.before + kGridMargin),
               halo.value_or(field.after + kGridMargin), grid);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(AxisCut, ExactPiecesHaveTheirHalos) {
  std::mt19937 random(8);
  const auto in = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int i = 0; i < 2000; ++i) {
    Axis field{.scale_num = in(1, 4),
               .before = in(0, 20),
               .after = in(0, 20),
               .exact_before = in(20, 90),
               .exact_after = in(20, 90),
               .alignment = std::array{1, 2, 5}[static_cast<std::size_t>(in(0, 2))]};
    if (in(0, 3) == 0) field = {.scale_num = 3, .scale_den = 2, .exact_before = 30, .alignment = 2};
    const std::int64_t length = in(2, 1500), own = in(1, 300);
    SCOPED_TRACE(StrCat("length ", length, ", own ", own, ", scale ", field.scale_num, "/",
                        field.scale_den, ", alignment ", field.alignment));
    const AxisCut cut(length, field);
    const std::int64_t grid = std::lcm(field.alignment, field.scale_den) * kTileGrid;
    const std::int64_t size = cut.ExactLength(in(field.scale_den, 300)),
                       padded = cut.padded_length();
    ASSERT_LE(size, padded);
    for (const AxisCut::Piece& whole : cut.Pieces(cut.CountFor(own))) {
      std::int64_t next = whole.begin;
      for (const AxisCut::Piece& p : cut.ExactPieces(whole.begin, whole.end, size)) {
        ASSERT_EQ(p.begin, next);
        ASSERT_GT(p.end, p.begin);
        next = p.end;
        ASSERT_GE(p.input, 0);
        ASSERT_LE(p.input + size, padded);
        ASSERT_EQ(p.input % grid, 0);
        ASSERT_EQ(p.output * field.scale_den, p.input * field.scale_num);
        if (p.input > 0) {
          ASSERT_GE(p.begin * field.scale_den, (p.input + field.exact_before) * field.scale_num);
        }
        if (p.input + size < padded) {
          ASSERT_LE(p.end * field.scale_den,
                    (p.input + size - field.exact_after) * field.scale_num);
        }
      }
      ASSERT_EQ(next, whole.end);
    }
  }
}

TEST(AxisCut, TilesAreNotLargerThanAskedFor) {
  const Axis field{.scale_num = 4, .scale_den = 1, .before = 34, .after = 34};
  for (const std::int64_t length : {100, 543, 4000}) {
    const AxisCut cut(length, field);
    for (const std::int64_t own : {1, 12, 32, 96, 200, 1000}) {
      const std::int64_t count = cut.CountFor(own);
      const std::int64_t rounded = std::max<std::int64_t>(own, kTileGrid) / kTileGrid * kTileGrid;
      // Own pixels, halos, and what the axis is longer than a multiple of the grid.
      if (count > 1) {
        EXPECT_LT(cut.TileLength(count), rounded + 2 * 40 + kTileGrid);
      }
      // One tile less would be too few.
      if (count > 1) {
        EXPECT_GE(cut.TileLength(count - 1), rounded + 2 * 40);
      }
    }
  }
}

TEST(AxisCut, CountsMakeTilesShorterOneByOne) {
  const Axis field{.scale_num = 2, .scale_den = 1, .before = 10, .after = 10};
  for (const std::int64_t length : {1, 5, 33, 47, 64, 1000, 12345}) {
    const AxisCut cut(length, field);
    const auto counts = cut.Counts();
    ASSERT_EQ(counts.front(), 1);
    for (std::size_t i = 1; i < counts.size(); ++i) {
      EXPECT_GT(counts[i], counts[i - 1]);
      EXPECT_LT(cut.TileLength(counts[i]), cut.TileLength(counts[i - 1]));
      // The fewest tiles of that length.
      EXPECT_GT(cut.TileLength(counts[i] - 1), cut.TileLength(counts[i]));
    }
    EXPECT_LT(cut.TileLength(counts.back()), 2 * 16 + 2 * kTileGrid);
  }
}

TEST(AxisCut, HugeLengthsTakeNoTime) {
  const AxisCut cut(std::int64_t{1} << 30, {.scale_num = 4, .scale_den = 1});
  EXPECT_LT(cut.Counts().size(), 40000u);
}

TEST(AxisCut, FixedInputsCoverEveryLength) {
  const Axis field{.scale_num = 2, .scale_den = 1, .before = 5, .after = 7, .alignment = 4};
  for (const std::int64_t fixed : {16, 64, 192}) {
    for (std::int64_t length = 1; length < 500; length += 7) {
      const AxisCut cut(length, field, {.halo = {}, .fixed_input = fixed});
      const auto counts = cut.Counts();
      ASSERT_EQ(counts.size(), 1u);
      EXPECT_EQ(cut.TileLength(counts[0]), fixed);
      // In 16 there is no room for all of the halo.
      const bool all = fixed > 16;
      CheckCut(cut, length, field, counts[0], all ? 11 : 6, all ? 13 : 6, 4);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Tiling, PutsColumnsAndRowsTogether) {
  const Axis field{.scale_num = 2, .scale_den = 1, .before = 3, .after = 3};
  const AxisCut x(500, field), y(300, field);
  const Tiling tiling = MakeTiling(x, 4, y, 3);
  EXPECT_EQ(tiling.output_width, 1000);
  EXPECT_EQ(tiling.output_height, 600);
  ASSERT_EQ(tiling.tiles.size(), 12u);
  std::vector<int> taken(1000 * 600);
  for (const Tile& tile : tiling.tiles) {
    EXPECT_EQ(tile.input.width, tiling.tile_width);
    EXPECT_EQ(tile.input.height, tiling.tile_height);
    EXPECT_GE(tile.output.x, tile.output_x);
    EXPECT_GE(tile.output.y, tile.output_y);
    EXPECT_LE(tile.output.right(), tile.output_x + 2 * tile.input.width);
    EXPECT_LE(tile.output.bottom(), tile.output_y + 2 * tile.input.height);
    for (std::int64_t v = tile.output.y; v < tile.output.bottom(); ++v)
      for (std::int64_t h = tile.output.x; h < tile.output.right(); ++h)
        ++taken[static_cast<std::size_t>(v * 1000 + h)];
  }
  EXPECT_EQ(std::count(taken.begin(), taken.end(), 1), 1000 * 600);
}

TEST(AxisCut, RefusesScalesThatLeaveNothing) {
  EXPECT_THROW(AxisCut(1, {.scale_num = 1, .scale_den = 4}), Error);
}

}  // namespace
}  // namespace tessera
