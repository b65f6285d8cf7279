// Which tiles, and who computes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "pipeline/exact_tiles.h"
#include "pipeline/tile_model.h"
#include "pipeline/tiler.h"

namespace tessera {

struct TileOptions {
  // Pixels of the input that a tile has for itself, along each axis; rounded down to the grid, at
  // least one step of it. 0: as the memory and the workers suggest.
  std::int64_t tile = 0;
  // Pixels around a tile that are computed and thrown away. Default: the network's receptive field
  // and kGridMargin, at most kMaxDefaultHalo.
  std::optional<std::int64_t> overlap = std::nullopt;
  // As many as it takes for the bytes of the untiled run (see exact_tiles.h); in place of overlap.
  // Throws Error for networks that take one size only.
  bool exact = false;
  int threads = 1;                                    // CPUs to use in all
  int workers = 0;                                    // tiles at a time; 0: as it suits
  std::size_t memory_bytes = std::size_t{768} << 20;  // for all buffers
};

// Deep residual networks could see hundreds of pixels far and use a few of them.
inline constexpr std::int64_t kMaxDefaultHalo = 64;

struct TilePlan {
  Tiling tiling;
  int workers = 1;
  int threads = 1;  // in all; worker i has ThreadsOf(i)
  // What to do with tiles whose RoundingMayShow: their exact tiles are run and taken instead. Only
  // where nothing else is asked for (an overlap) or needed (inputs of one size).
  std::optional<ExactCut> exact = std::nullopt;

  int ThreadsOf(int worker) const {
    return threads / workers + (worker < threads % workers ? 1 : 0);
  }
};

// Memory that the picture takes while it passes, beside the tiles' own: bytes of a row. Held are
// the input rows of two rows of tiles, and the output rows of one.
struct RowBytes {
  std::size_t input = 0, output = 0;
};

// The cut depends on `threads`, `workers` and memory only if `tile` is 0. A network that is not
// local gets one tile, unless tile or overlap are given. Where not even the smallest tiles fit into
// the memory, those are taken.
TilePlan PlanTiles(std::int64_t width, std::int64_t height, const TileModel& model,
                   const TileOptions& options, const RowBytes& row_bytes = {});

}  // namespace tessera
