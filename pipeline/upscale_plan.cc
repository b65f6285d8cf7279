#include "pipeline/upscale_plan.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace tessera {
namespace {

// Zero padding shows 2 to 3 pixels deep.
constexpr std::int64_t kReflected = 10;

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// How far a pixel of the result looks in the input: as far as the network does, and as the
// resampling does.
std::int64_t Reach(const ReceptiveField::Axis& field, bool local, double own_per_result) {
  std::int64_t reach = std::max(field.before, field.after) + kGridMargin;
  if (!local || reach > kMaxDefaultHalo) reach = kMaxDefaultHalo;
  const double support = 3 * std::max(1.0, own_per_result) + 1;  // Lanczos
  return reach + static_cast<std::int64_t>(std::ceil(support * field.scale_den / field.scale_num));
}

ExtendedAxis ExtendAxis(std::int64_t length, std::int64_t result, const ReceptiveField::Axis& field,
                        bool local, std::optional<std::int64_t> fixed_input, bool wrap,
                        bool zero_edges) {
  ExtendedAxis axis{.input = length, .result = result};
  axis.own_length = static_cast<double>(length) * field.scale_num / field.scale_den;
  if (wrap) {
    axis.border = Reach(field, local, axis.own_length / static_cast<double>(result));
  } else if (!zero_edges) {
    axis.border = kReflected;
    // A picture that fills the only size that a network takes is not to become four tiles.
    if (fixed_input && length <= *fixed_input)
      axis.border = std::min(axis.border, (*fixed_input - length) / 2 / field.scale_den);
  }
  axis.border = CeilDiv(axis.border, field.scale_den) * field.scale_den;
  axis.own_begin = axis.border * field.scale_num / field.scale_den;
  axis.own = AxisCut(axis.extended(), field).output_length();
  return axis;
}

// Rows of the input that a tile of the result is made of.
Span TileInputRows(const UpscalePlan& plan, const Tile& tile, const ResampleGeometry* alpha) {
  Span rows{tile.input.y, tile.input.bottom()};
  if (plan.tiles.exact) {
    const std::vector<Tile> exact = plan.tiles.exact->TilesFor(tile);
    rows = {std::min(rows.begin, exact.front().input.y),
            std::max(rows.end, exact.back().input.bottom())};
  }
  const std::int64_t begin = std::max<std::int64_t>(0, tile.output.y - plan.y.own_begin);
  const std::int64_t end = std::min(plan.y.result, tile.output.bottom() - plan.y.own_begin);
  if (alpha != nullptr && !plan.resampled && begin < end) {
    const Span more = alpha->Inputs({begin, end});
    rows = {std::min(rows.begin, more.begin), std::max(rows.end, more.end)};
  }
  return BorderSources({rows.begin - plan.y.border, rows.end - plan.y.border}, plan.y.input,
                       plan.border.y);
}

// The most rows that two tiles in work at a time lie apart: of neighbouring rows of tiles.
std::int64_t HeldInput(const UpscalePlan& plan) {
  const std::vector<Tile>& tiles = plan.tiles.tiling.tiles;
  std::size_t columns = 1;
  while (columns < tiles.size() && tiles[columns].output.y == tiles[0].output.y) ++columns;
  std::int64_t held = 1;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const std::size_t below = std::min(i + columns, tiles.size() - 1);
    const std::int64_t end = std::max(plan.input_rows[i].rows.end, plan.input_rows[below].rows.end);
    held = std::max(held, end - plan.input_rows[i].first_of_rest);
  }
  return held;
}

}  // namespace

ResampleGeometry ExtendedAxis::ResultGeometry() const {
  return {own, {static_cast<double>(own_begin), own_length}, result, ResampleKernel::kLanczos3};
}

ResampleGeometry ExtendedAxis::AlphaGeometry() const {
  return {extended(),
          {static_cast<double>(border), static_cast<double>(input)},
          result,
          ResampleKernel::kCatmullRom};
}

UpscalePlan PlanUpscale(const PictureFormat& in, const PictureFormat& out, const TileModel& model,
                        const TileOptions& tiles, const PictureOptions& picture) {
  const ModelTraits& traits = model.traits();
  std::optional<std::int64_t> fixed_width, fixed_height;
  if (traits.fixed_input) {
    fixed_width = traits.fixed_input->width;
    fixed_height = traits.fixed_input->height;
  }
  UpscalePlan plan;
  plan.x = ExtendAxis(in.width, out.width, traits.field.width, traits.local, fixed_width,
                      picture.wrap_x, picture.zero_edges);
  plan.y = ExtendAxis(in.height, out.height, traits.field.height, traits.local, fixed_height,
                      picture.wrap_y, picture.zero_edges);
  if (picture.wrap_x) plan.border.x = BorderMode::kWrap;
  if (picture.wrap_y) plan.border.y = BorderMode::kWrap;
  plan.fill = {.reach = Reach(traits.field.height, traits.local,
                              plan.y.own_length / static_cast<double>(out.height)),
               .wrap_x = picture.wrap_x,
               .wrap_y = picture.wrap_y};
  plan.resampled = static_cast<double>(out.width) != std::round(plan.x.own_length) ||
                   static_cast<double>(out.height) != std::round(plan.y.own_length);
  const bool alpha_by_model = in.HasAlpha() && picture.alpha == AlphaMode::kModel;
  plan.own_channels = in.ColourChannels() + (alpha_by_model ? 1 : 0);
  const PictureFormat own{
      .width = plan.x.own, .height = plan.y.own, .channels = plan.own_channels, .bit_depth = 16};

  plan.tiles = PlanTiles(
      plan.x.extended(), plan.y.extended(), model, tiles,
      {.input = in.RowBytes(), .output = plan.resampled ? own.RowBytes() : out.RowBytes()});

  std::optional<ResampleGeometry> alpha;
  if (in.HasAlpha()) alpha = plan.y.AlphaGeometry();
  std::int64_t tallest = 0;
  for (const Tile& tile : plan.tiles.tiling.tiles) {
    plan.input_rows.push_back({.rows = TileInputRows(plan, tile, alpha ? &*alpha : nullptr)});
    tallest = std::max(tallest, tile.output.height);
  }
  std::int64_t first = in.height;
  for (auto rows = plan.input_rows.rbegin(); rows != plan.input_rows.rend(); ++rows)
    first = rows->first_of_rest = std::min(first, rows->rows.begin);
  plan.held_input = HeldInput(plan);
  if (plan.resampled) {
    // A row of the result waits for rows below it, of the own picture and of the input's alpha.
    const double scale = plan.y.own_length / static_cast<double>(in.height);
    const std::int64_t alpha_taps = alpha ? alpha->taps() : 0;
    const auto alpha_rows = static_cast<std::int64_t>(static_cast<double>(alpha_taps) * scale);
    const std::int64_t own_rows = plan.y.ResultGeometry().taps() + alpha_rows + 1;
    plan.held_own = std::min(plan.y.own, tallest + own_rows);
    if (alpha) {
      const auto rows = static_cast<std::int64_t>(static_cast<double>(own_rows) / scale);
      plan.held_input = std::min(in.height, plan.held_input + alpha_taps + rows + 1);
    }
    plan.held_result = std::min(out.height, kResampledRows);
  } else {
    plan.held_result = std::min(out.height, tallest);
  }
  plan.bytes = model.RunBytes(plan.tiles.tiling.tile_width, plan.tiles.tiling.tile_height) *
                   static_cast<std::size_t>(plan.tiles.workers) +
               static_cast<std::size_t>(plan.held_own) * own.RowBytes();
  plan.bytes +=
      static_cast<std::size_t>(plan.y.own + out.height) * sizeof(std::int64_t);  // row_window.h
  if (plan.resampled)
    plan.bytes +=
        ResampleAxis::Bytes(plan.x.ResultGeometry()) + ResampleAxis::Bytes(plan.y.ResultGeometry());
  if (alpha)
    plan.bytes += ResampleAxis::Bytes(plan.x.AlphaGeometry()) + ResampleAxis::Bytes(*alpha);
  return plan;
}

}  // namespace tessera
