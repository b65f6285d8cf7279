#include "pipeline/tile_plan.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "ops/error.h"

namespace tessera {
namespace {

AxisCut CutOf(std::int64_t length, const ReceptiveField::Axis& field, bool local,
              std::optional<std::int64_t> fixed_input, const TileOptions& options) {
  AxisCutOptions cut{.halo = options.overlap, .fixed_input = fixed_input};
  if (options.exact) cut.halo = AxisCut(length, field).ExactHalo();
  const std::int64_t reach = std::max(field.before, field.after) + kGridMargin;
  if (!cut.halo && (!local || reach > kMaxDefaultHalo)) cut.halo = kMaxDefaultHalo;
  return AxisCut(length, field, cut);
}

struct Choice {
  std::int64_t columns = 1, rows = 1;
  int workers = 1;
};

std::size_t PictureBytes(const AxisCut& y, std::int64_t rows, const RowBytes& row_bytes) {
  const std::int64_t input = std::min(y.padded_length(), 2 * y.TileLength(rows));
  return static_cast<std::size_t>(input) * row_bytes.input +
         static_cast<std::size_t>(y.LongestOutput(rows)) * row_bytes.output;
}

// Time of a run on `threads` threads relative to one: not all of a network runs in parallel.
double Slowness(int threads) { return 1.0 / threads + 0.05 * (1 - 1.0 / threads); }

// What a run costs beside its pixels, in pixels.
constexpr double kRunOverhead = 2000;

// The cut and the number of workers that are done first, among those that fit into the memory.
Choice Fastest(const AxisCut& x, const AxisCut& y, const TileModel& model,
               const TileOptions& options, const RowBytes& row_bytes) {
  Choice best, smallest;
  double best_time = std::numeric_limits<double>::infinity();
  std::size_t smallest_bytes = std::numeric_limits<std::size_t>::max();
  const int first = options.workers > 0 ? std::min(options.workers, options.threads) : 1;
  const int last = options.workers > 0 ? first : options.threads;
  const std::vector<std::int64_t> all_columns = x.Counts(), all_rows = y.Counts();
  for (const std::int64_t rows : all_rows) {
    const std::int64_t height = y.TileLength(rows);
    const std::size_t picture_bytes = PictureBytes(y, rows, row_bytes);
    for (const std::int64_t columns : all_columns) {
      const std::int64_t width = x.TileLength(columns);
      const std::size_t bytes = model.RunBytes(width, height);
      const double work = static_cast<double>(width * height) + kRunOverhead;
      for (int workers = first; workers <= last; ++workers) {
        const std::int64_t busy = std::min<std::int64_t>(workers, columns * rows);
        const std::size_t all_bytes = picture_bytes + bytes * static_cast<std::size_t>(busy);
        if (all_bytes < smallest_bytes) {
          smallest_bytes = all_bytes;
          smallest = {columns, rows, static_cast<int>(busy)};
        }
        if (all_bytes > options.memory_bytes) break;
        const std::int64_t rounds = (columns * rows + busy - 1) / busy;
        const double time =
            static_cast<double>(rounds) * work * Slowness(options.threads / static_cast<int>(busy));
        if (time < best_time) {
          best_time = time;
          best = {columns, rows, static_cast<int>(busy)};
        }
      }
    }
  }
  return best_time < std::numeric_limits<double>::infinity() ? best : smallest;
}

// As many workers as there are tiles and threads, and memory for.
int WorkersFor(std::int64_t tiles, std::size_t bytes, const TileOptions& options) {
  std::int64_t workers = options.threads;
  if (options.workers > 0) {
    workers = std::min<std::int64_t>(workers, options.workers);
  } else {
    workers = std::min<std::int64_t>(
        workers, static_cast<std::int64_t>(options.memory_bytes / std::max<std::size_t>(1, bytes)));
  }
  return static_cast<int>(std::max<std::int64_t>(1, std::min(workers, tiles)));
}

}  // namespace

TilePlan PlanTiles(std::int64_t width, std::int64_t height, const TileModel& model,
                   const TileOptions& given, const RowBytes& row_bytes) {
  const ModelTraits& traits = model.traits();
  TileOptions options = given;
  options.threads = std::max(1, given.threads);
  Require(!options.exact || !traits.fixed_input, model.name(),
          ": takes inputs of one size; its tiles cannot be exact");
  Require(!options.exact || traits.local || options.tile == 0, model.name(),
          ": what it sees is not known; its tiles cannot be exact");
  std::optional<std::int64_t> fixed_width, fixed_height;
  if (traits.fixed_input) {
    fixed_width = traits.fixed_input->width;
    fixed_height = traits.fixed_input->height;
  }
  const AxisCut x = CutOf(width, traits.field.width, traits.local, fixed_width, options);
  const AxisCut y = CutOf(height, traits.field.height, traits.local, fixed_height, options);

  Choice choice;
  if (options.tile > 0 || traits.fixed_input) {
    choice.columns = x.CountFor(options.tile);
    choice.rows = y.CountFor(options.tile);
    choice.workers = WorkersFor(
        choice.columns * choice.rows,
        model.RunBytes(x.TileLength(choice.columns), y.TileLength(choice.rows)), options);
  } else if (traits.local || options.overlap) {
    choice = Fastest(x, y, model, options, row_bytes);
  }
  TilePlan plan{.tiling = MakeTiling(x, choice.columns, y, choice.rows),
                .workers = choice.workers,
                .threads = options.threads};
  if (plan.tiling.tiles.size() > 1 && traits.local && !traits.fixed_input && !options.overlap &&
      !options.exact) {
    const std::size_t picture_bytes = PictureBytes(y, choice.rows, row_bytes);
    const std::size_t bytes = options.memory_bytes - std::min(options.memory_bytes, picture_bytes);
    plan.exact =
        MakeExactCut(x, y, plan.tiling, model, bytes / static_cast<std::size_t>(plan.workers));
  }
  return plan;
}

}  // namespace tessera
