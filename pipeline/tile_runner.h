// A tile of a picture through the network.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ops/parallel.h"
#include "ops/tensor.h"
#include "pipeline/planes.h"
#include "pipeline/tile_model.h"
#include "pipeline/upscale_plan.h"

namespace tessera {

// Thread-safe.
class TileRunner {
 public:
  // What a worker keeps from tile to tile.
  struct Workspace {
    Tensor input;
    std::vector<std::vector<Tensor>> outputs;  // one a run
    std::vector<float> alpha;
  };

  // All are to outlive this.
  TileRunner(TileModel& model, const Picture& in, const UpscalePlan& plan, AlphaMode alpha);

  // The own picture's part tile.output, with alpha if the network is to make it. It lies in `work`.
  PlanesView Run(const Tile& tile, Workspace& work, Parallel& parallel) const;

  // Whether it may in what the last Run has left there (see exact_tiles.h).
  static bool RoundingMayShow(const Workspace& work);

 private:
  // Runs the network on channels of the picture, as many as it takes. Returns its planes for
  // tile.output.
  PlanesView RunNetwork(const Tile& tile, std::array<int, 3> channels, Workspace& work,
                        std::size_t run, Parallel& parallel) const;

  TileModel& model_;
  const Picture& in_;
  const UpscalePlan& plan_;
  const bool alpha_by_model_;
};

}  // namespace tessera
