// A picture through a network, tile by tile.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "pipeline/picture.h"
#include "pipeline/tile_model.h"
#include "pipeline/tile_plan.h"

namespace tessera {

// Tiles done, tiles in all. Called after each tile, by one thread at a time.
using TileProgress = std::function<void(std::size_t done, std::size_t total)>;

// How a picture is upscaled while parts of it are still being read, or written already. Both are
// called by several threads at a time.
struct RowFlow {
  // Returns when rows [0, end) of the input are there. Empty: all are.
  std::function<void(std::int64_t end)> need = {};
  // Rows [0, end) of the result are complete.
  std::function<void(std::int64_t end)> done = {};
};

class Upscaler {
 public:
  Upscaler(std::unique_ptr<TileModel> model, const TileOptions& options)
      : model_(std::move(model)), options_(options) {}

  const TileModel& model() const { return *model_; }
  int threads() const { return options_.threads; }

  // The size at the model's own scale: width (height) times it, rounded.
  struct Size {
    std::int64_t width, height;
  };
  Size OwnSize(std::int64_t width, std::int64_t height) const;

  // Upscales `in` to the size of `out`, resampling (Lanczos) if that is not the model's own, and
  // fills `out` from top to bottom, more or less. Colour goes through the network. Grey goes
  // through it as RGB (or as one plane, if the model takes that) and is turned to grey again. Alpha
  // is resampled (bicubic) from `in`. For a given tile size the result is the same for every number
  // of workers and threads. Throws Error if the network refuses the size or its result is not
  // finite. Thread-safe.
  void Upscale(const Picture& in, const Picture& out, const RowFlow& flow = {},
               const TileProgress& progress = {}) const;
  // The same for a picture that is there, into a new one.
  Picture Upscale(const Picture& in, const PictureFormat& out,
                  const TileProgress& progress = {}) const;

 private:
  std::unique_ptr<TileModel> model_;
  TileOptions options_;
};

}  // namespace tessera
