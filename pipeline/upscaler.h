// A picture through a network, tile by tile.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "pipeline/fill_transparent.h"
#include "pipeline/picture.h"
#include "pipeline/tile_model.h"
#include "pipeline/tile_plan.h"

namespace tessera {

// Tiles done, tiles in all. Called after each tile, by one thread at a time.
using TileProgress = std::function<void(std::size_t done, std::size_t total)>;

// How a picture is upscaled while parts of it are still being read, or written already. Both are
// called by several threads at a time.
struct RowFlow {
  // Returns when rows [begin, end) of the input are there; those before `begin` are done with.
  // Empty: all are there.
  std::function<void(std::int64_t begin, std::int64_t end)> need = {};
  // Rows [0, end) of the result are complete; may do with them what it wants, on the threads of
  // `parallel`. Returns how many of them it is done with.
  std::function<std::int64_t(std::int64_t end, Parallel& parallel)> done = {};
};

enum class AlphaMode : std::uint8_t { kBicubic, kModel };

// What is done with a picture beside its pixels' own way through the network.
struct PictureOptions {
  // The picture goes on beyond its right (lower) border with its left (upper) one: textures.
  bool wrap_x = false, wrap_y = false;
  // Networks pad with zeros at the border of what they are given, which shows 2 to 3 pixels deep.
  // They are given 10 pixels more on each side, by reflection, unless this is set.
  bool zero_edges = false;
  AlphaMode alpha = AlphaMode::kBicubic;
  // Behind transparent pixels, where the output has no alpha: RGB, 8 bits.
  std::array<std::uint8_t, 3> background = {255, 255, 255};
};

class Upscaler {
 public:
  Upscaler(std::unique_ptr<TileModel> model, const TileOptions& options,
           const PictureOptions& picture_options = {})
      : model_(std::move(model)), options_(options), picture_options_(picture_options) {}

  const TileModel& model() const { return *model_; }
  int threads() const { return options_.threads; }

  // How a picture will be done: what it takes.
  struct Plan {
    std::int64_t tiles = 0;
    std::int64_t tile_width = 0, tile_height = 0;  // of their inputs
    // Rows of the input and the result that are to be held at a time; of the result so many and
    // those beside that RowFlow::done is not done with when it returns.
    std::int64_t input_rows = 0, result_rows = 0;
    FillOptions fill = {};  // of transparent pixels of the input, before they are needed
    std::size_t bytes = 0;  // of all buffers but those of input and result, an estimate
  };
  Plan MakePlan(const PictureFormat& in, const PictureFormat& out) const;

  // The size at the model's own scale: width (height) times it, rounded.
  struct Size {
    std::int64_t width, height;
  };
  Size OwnSize(std::int64_t width, std::int64_t height) const;

  // Upscales `in` to the size of `out`, resampling (Lanczos) if that is not the model's own, and
  // fills `out` from top to bottom, more or less. Both may hold a window of their rows, as MakePlan
  // says. Colour goes through the network. Grey goes through it as RGB (or as one plane, if the
  // model takes that) and is turned to grey again. Alpha is resampled (bicubic) or goes through the
  // network as grey; where it is 0 or the maximum all around it stays so. For a given tile size the
  // result is the same for every number of workers and threads. Throws Error if the network refuses
  // the size or its result is not finite. Thread-safe.
  void Upscale(const Picture& in, const Picture& out, const RowFlow& flow = {},
               const TileProgress& progress = {}) const;
  // The same for a picture that is there, into a new one.
  Picture Upscale(const Picture& in, const PictureFormat& out,
                  const TileProgress& progress = {}) const;

 private:
  std::unique_ptr<TileModel> model_;
  TileOptions options_;
  PictureOptions picture_options_;
};

}  // namespace tessera
