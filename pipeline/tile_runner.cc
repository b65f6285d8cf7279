#include "pipeline/tile_runner.h"

#include <algorithm>

#include "pipeline/exact_tiles.h"

namespace tessera {
namespace {

// Index of the outputs of its run; those before are of the colours.
constexpr std::size_t kAlphaRun = 3;

}  // namespace

TileRunner::TileRunner(TileModel& model, const Picture& in, const UpscalePlan& plan,
                       AlphaMode alpha)
    : model_(model),
      in_(in),
      plan_(plan),
      alpha_by_model_(alpha == AlphaMode::kModel && in.format().HasAlpha()) {}

PlanesView TileRunner::Run(const Tile& tile, Workspace& work, Parallel& parallel) const {
  const int colours = in_.format().ColourChannels();
  PlanesView planes;
  if (model_.traits().channels == 1) {
    // Plane by plane.
    planes.colours = colours;
    for (int c = 0; c < colours; ++c) {
      const PlanesView plane = RunNetwork(tile, {c}, work, static_cast<std::size_t>(c), parallel);
      planes.colour[c] = plane.colour[0];
      planes.stride = plane.stride;
    }
  } else {
    const std::array<int, 3> channels =
        colours == 1 ? std::array<int, 3>{0, 0, 0} : std::array<int, 3>{0, 1, 2};
    planes = RunNetwork(tile, channels, work, 0, parallel);
  }
  if (alpha_by_model_) {
    const int channel = in_.format().channels - 1;
    const PlanesView grey =
        RunNetwork(tile, {channel, channel, channel}, work, kAlphaRun, parallel);
    planes.alpha = grey.colour[0];
    planes.alpha_stride = grey.stride;
    if (grey.colours == 3) {
      const std::int64_t width = tile.output.width;
      work.alpha.resize(static_cast<std::size_t>(width * tile.output.height));
      for (std::int64_t y = 0; y < tile.output.height; ++y) {
        const std::int64_t row = y * grey.stride;
        Luma(grey.colour[0] + row, grey.colour[1] + row, grey.colour[2] + row, width,
             work.alpha.data() + y * width);
      }
      planes.alpha = work.alpha.data();
      planes.alpha_stride = width;
    }
  }
  return planes;
}

bool TileRunner::RoundingMayShow(const Workspace& work) {
  return std::any_of(work.outputs.begin(), work.outputs.end(), [](const auto& outputs) {
    return !outputs.empty() &&
           tessera::RoundingMayShow(
               {outputs[0].template data<float>(), static_cast<std::size_t>(outputs[0].size())});
  });
}

PlanesView TileRunner::RunNetwork(const Tile& tile, std::array<int, 3> channels, Workspace& work,
                                  std::size_t run, Parallel& parallel) const {
  const int count = model_.traits().channels;
  const Rect& rect = tile.input;
  const Shape input{1, count, rect.height, rect.width};
  if (!work.input.view().present() || work.input.shape() != input)
    work.input = Tensor(DType::kFloat32, input);
  const Rect from{rect.x - plan_.x.border, rect.y - plan_.y.border, rect.width, rect.height};
  for (int c = 0; c < count; ++c) {
    float* plane = work.input.data<float>() + c * rect.width * rect.height;
    ReadChannel(in_, channels[static_cast<std::size_t>(c)], from, plane, plan_.border);
  }
  if (work.outputs.size() <= run) work.outputs.resize(run + 1);
  std::vector<Tensor>& outputs = work.outputs[run];
  model_.Run(work.input.view(), outputs, parallel);
  const Shape& shape = outputs[0].shape();
  PlanesView planes{.colours = count, .stride = shape[3]};
  const std::int64_t skipped =
      (tile.output.y - tile.output_y) * shape[3] + tile.output.x - tile.output_x;
  for (int c = 0; c < count; ++c)
    planes.colour[c] = outputs[0].data<float>() + c * shape[2] * shape[3] + skipped;
  return planes;
}

}  // namespace tessera
