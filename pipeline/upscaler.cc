#include "pipeline/upscaler.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "ops/error.h"
#include "pipeline/result_rows.h"
#include "pipeline/tile_runner.h"
#include "pipeline/tile_workers.h"
#include "pipeline/upscale_plan.h"

namespace tessera {
namespace {

// The tiles of a picture that holds a window of its rows: which are done, which may begin.
class TileOrder {
 public:
  TileOrder(const UpscalePlan& plan, const Picture& in, const ResultRows& result)
      : plan_(plan),
        // A window of a picture with alpha holds more than that: the rows that colours under
        // transparency are filled from. Those are not the tiles' to run ahead by.
        held_(in.held_rows() < in.height() ? plan.held_input : in.height()),
        result_(result),
        done_(plan.input_rows.size()) {}

  // Returns when the tile's rows fit into the window together with those of earlier tiles that are
  // not done. Says which rows are needed still. The first tile that is not done never waits for
  // ever: the plan's window holds its rows beside what the result still looks at, which changes
  // only in Put, and every Put is followed by Done.
  Span WaitForTurn(std::size_t tile) {
    const Span& rows = plan_.input_rows[tile].rows;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return error_ || rows.end - FirstRow() <= held_; });
    if (error_) std::rethrow_exception(error_);
    return {FirstRow(), rows.end};
  }
  // Returns how many are done.
  std::size_t Done(std::size_t tile) {
    const std::lock_guard lock(mutex_);
    done_[tile] = true;
    while (first_ < done_.size() && done_[first_]) ++first_;
    changed_.notify_all();
    return ++count_;
  }
  void Cancel(const std::exception_ptr& error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
    changed_.notify_all();
  }

 private:
  std::int64_t FirstRow() const {
    return std::min(plan_.input_rows[first_].first_of_rest, result_.FirstInputRow());
  }

  const UpscalePlan& plan_;
  const std::int64_t held_;
  const ResultRows& result_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> done_;
  std::size_t first_ = 0, count_ = 0;  // the first that is not done; those that are
  std::exception_ptr error_;
};

}  // namespace

Upscaler::Size Upscaler::OwnSize(std::int64_t width, std::int64_t height) const {
  const ReceptiveField& field = model_->traits().field;
  return {AxisCut(width, field.width).output_length(),
          AxisCut(height, field.height).output_length()};
}

Upscaler::Plan Upscaler::MakePlan(const PictureFormat& in, const PictureFormat& out) const {
  const UpscalePlan plan = PlanUpscale(in, out, *model_, options_, picture_options_);
  const Tiling& tiling = plan.tiles.tiling;
  return {.tiles = static_cast<std::int64_t>(tiling.tiles.size()),
          .tile_width = tiling.tile_width,
          .tile_height = tiling.tile_height,
          .input_rows = plan.held_input,
          .result_rows = plan.held_result,
          .fill = plan.fill,
          .bytes = plan.bytes};
}

Picture Upscaler::Upscale(const Picture& in, const PictureFormat& out,
                          const TileProgress& progress) const {
  Picture result(out);
  Upscale(in, result, {}, progress);
  return result;
}

void Upscaler::Upscale(const Picture& in, const Picture& out, const RowFlow& flow,
                       const TileProgress& progress) const {
  const UpscalePlan plan =
      PlanUpscale(in.format(), out.format(), *model_, options_, picture_options_);
  const std::vector<Tile>& tiles = plan.tiles.tiling.tiles;
  const TileRunner runner(*model_, in, plan, picture_options_.alpha);
  const std::unique_ptr<ResultRows> result = MakeResultRows(plan, in, out, picture_options_, flow);
  TileOrder order(plan, in, *result);
  std::vector<TileRunner::Workspace> workspaces(static_cast<std::size_t>(plan.tiles.workers));
  std::mutex progress_mutex;

  const auto run = [&](const Tile& tile, int worker, Parallel& parallel) {
    const auto index = static_cast<std::size_t>(&tile - tiles.data());
    const Span rows = order.WaitForTurn(index);
    if (flow.need) flow.need(rows.begin, rows.end);
    TileRunner::Workspace& work = workspaces[static_cast<std::size_t>(worker)];
    const auto put = [&](const Rect& rect, const PlanesView& planes) {
      const auto bad = result->Put(rect, planes, parallel);
      if (!bad) return;
      throw Error(StrCat("the result holds a value that is no finite number at (", bad->x, ", ",
                         bad->y, "), in the tile for (", tile.input.x - plan.x.border, ", ",
                         tile.input.y - plan.y.border, ") to (", tile.input.right() - plan.x.border,
                         ", ", tile.input.bottom() - plan.y.border, ") of the input"));
    };
    const PlanesView planes = runner.Run(tile, work, parallel);
    if (plan.tiles.exact && TileRunner::RoundingMayShow(work)) {
      for (const Tile& exact : plan.tiles.exact->TilesFor(tile))
        put(exact.output, runner.Run(exact, work, parallel));
    } else {
      put(tile.output, planes);
    }
    const std::lock_guard lock(progress_mutex);
    const std::size_t done = order.Done(index);
    if (progress) progress(done, tiles.size());
  };
  ForEachTile(plan.tiles, [&](const Tile& tile, int worker, Parallel& parallel) {
    try {
      run(tile, worker, parallel);
    } catch (...) {
      // Others may wait for what this one should have done.
      order.Cancel(std::current_exception());
      result->Cancel(std::current_exception());
      throw;
    }
  });
}

}  // namespace tessera
