// How a picture goes through a network: what is put around it, how it is cut, how many rows of it
// are held at a time.
//
// Three pictures lie on top of each other. The extended one is the input with a border around it,
// made of its own pixels, so that what a network does at the border of its input happens outside
// of the picture. The tiles are cut from it. The own one is what the network makes of the extended
// one, at the model's own scale. The result is the part of the own one that shows the input,
// resampled if that is not of the size that is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pipeline/border.h"
#include "pipeline/picture.h"
#include "pipeline/resample.h"
#include "pipeline/tile_model.h"
#include "pipeline/tile_plan.h"
#include "pipeline/upscaler.h"

namespace tessera {

// One axis of the three.
struct ExtendedAxis {
  std::int64_t input = 0;      // pixels of the input
  std::int64_t border = 0;     // pixels of the extended picture before the input, and behind it
  std::int64_t own = 0;        // pixels of the own picture
  std::int64_t own_begin = 0;  // where the input begins in it
  double own_length = 0;       // of the input in it, exactly
  std::int64_t result = 0;     // pixels of the result

  std::int64_t extended() const { return input + 2 * border; }
  // From the own picture to the result.
  ResampleGeometry ResultGeometry() const;
  // From the extended picture's alpha to that of the result.
  ResampleGeometry AlphaGeometry() const;
};

struct UpscalePlan {
  ExtendedAxis x, y;
  Border border;
  TilePlan tiles;  // of the extended picture
  bool resampled = false;
  int own_channels = 3;  // of the own picture, where it is resampled; it has alpha only if a
                         // network makes it

  // Rows of the input that a tile needs, and the first one that it or a later tile needs.
  struct InputRows {
    Span rows;
    std::int64_t first_of_rest = 0;
  };
  std::vector<InputRows> input_rows;  // by tile
  // Rows that have to be held at a time, of the input, of the own picture (if it is resampled) and
  // of the result; the last without those that wait to be encoded together.
  std::int64_t held_input = 0, held_own = 0, held_result = 0;
  FillOptions fill;       // of transparent pixels of the input
  std::size_t bytes = 0;  // of tiles and own picture; an estimate
};

// Rows of the result that are resampled at a time.
inline constexpr std::int64_t kResampledRows = 64;

UpscalePlan PlanUpscale(const PictureFormat& in, const PictureFormat& out, const TileModel& model,
                        const TileOptions& tiles, const PictureOptions& picture);

}  // namespace tessera
