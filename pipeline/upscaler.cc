#include "pipeline/upscaler.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "engine/thread_team.h"
#include "ops/error.h"
#include "pipeline/exact_tiles.h"
#include "pipeline/planes.h"
#include "pipeline/quantise.h"
#include "pipeline/resample.h"
#include "pipeline/tile_workers.h"

namespace tessera {
namespace {

// The alpha of the result, any part of it.
class AlphaSource {
 public:
  AlphaSource(const Picture& in, std::int64_t width, std::int64_t height)
      : in_width_(in.width()),
        resampler_(in.width(), in.height(), width, height, ResampleKernel::kCatmullRom),
        alpha_(static_cast<std::size_t>(in.width() * in.height())) {
    ReadChannel(in, in.format().channels - 1, {0, 0, in.width(), in.height()}, alpha_.data());
  }

  // Adds the alpha of `rect` to the planes; `buffer` holds it.
  void Add(const Rect& rect, std::vector<float>& buffer, PlanesView& planes) const {
    buffer.resize(static_cast<std::size_t>(rect.width * rect.height));
    resampler_.Run(alpha_.data(), in_width_, rect, buffer.data(), rect.width);
    planes.alpha = buffer.data();
    planes.alpha_stride = rect.width;
  }

 private:
  std::int64_t in_width_;
  Resampler resampler_;
  std::vector<float> alpha_;
};

// Tells who wants to know which rows of the result are complete.
class CompleteRows {
 public:
  CompleteRows(const PictureFormat& result, const RowFlow& flow)
      : flow_(flow), missing_(static_cast<std::size_t>(result.height), result.width) {}

  // The pixels of `rect` are there.
  void Add(const Rect& rect) {
    std::unique_lock lock(mutex_);
    for (std::int64_t y = rect.y; y < rect.bottom(); ++y)
      missing_[static_cast<std::size_t>(y)] -= rect.width;
    const std::size_t before = complete_;
    while (complete_ < missing_.size() && missing_[complete_] == 0) ++complete_;
    const std::size_t complete = complete_;
    lock.unlock();
    if (complete > before && flow_.done) flow_.done(static_cast<std::int64_t>(complete));
  }

 private:
  const RowFlow& flow_;
  std::mutex mutex_;
  std::vector<std::int64_t> missing_;  // pixels of each row
  std::size_t complete_ = 0;           // rows
};

// Takes the network's output, part by part, to the result.
class Destination {
 public:
  virtual ~Destination() = default;
  // `planes` hold `rect` of the picture at the model's own size.
  virtual void Put(const Rect& rect, PlanesView planes) = 0;
};

// The model's own size is what is wanted.
class DirectDestination final : public Destination {
 public:
  DirectDestination(const Picture& result, const AlphaSource* alpha, CompleteRows& complete)
      : result_(result), alpha_(alpha), complete_(complete) {}

  void Put(const Rect& rect, PlanesView planes) override {
    std::vector<float> alpha_buffer;
    if (alpha_ != nullptr) alpha_->Add(rect, alpha_buffer, planes);
    WritePlanes(planes, rect, result_);
    complete_.Add(rect);
  }

 private:
  const Picture& result_;
  const AlphaSource* alpha_;
  CompleteRows& complete_;
};

// Collects the picture at the model's own size and resamples it when it is complete.
class ResampledDestination final : public Destination {
 public:
  ResampledDestination(int colours, std::int64_t width, std::int64_t height, const Picture& result,
                       const AlphaSource* alpha)
      : colours_(colours),
        width_(width),
        height_(height),
        result_(result),
        alpha_(alpha),
        samples_(static_cast<std::size_t>(colours * width * height) * sizeof(float)) {}

  void Put(const Rect& rect, PlanesView planes) override {
    for (int c = 0; c < colours_; ++c) {
      for (std::int64_t y = 0; y < rect.height; ++y) {
        // Clamped before the kernel spreads what overshoots.
        const std::int64_t bad = ClampToUnit(planes.colour[c] + y * planes.stride, rect.width,
                                             Plane(c) + (rect.y + y) * width_ + rect.x);
        Require(bad < 0, "the result holds a value that is no finite number at (", rect.x + bad,
                ", ", rect.y + y, ") of ", width_, "x", height_);
      }
    }
  }

  void Finish(Parallel& parallel, CompleteRows& complete) const {
    const Resampler resampler(width_, height_, result_.width(), result_.height(),
                              ResampleKernel::kLanczos3);
    constexpr std::int64_t kBand = 64;
    parallel.For((result_.height() + kBand - 1) / kBand, [&](std::int64_t i, int) {
      const std::int64_t top = i * kBand;
      const Rect band{0, top, result_.width(), std::min(kBand, result_.height() - top)};
      const auto size = static_cast<std::size_t>(band.width * band.height);
      std::vector<float> samples(size * static_cast<std::size_t>(colours_)), alpha_buffer;
      PlanesView planes{.colours = colours_, .stride = band.width};
      for (int c = 0; c < colours_; ++c) {
        float* plane = samples.data() + size * static_cast<std::size_t>(c);
        resampler.Run(Plane(c), width_, band, plane, band.width);
        planes.colour[c] = plane;
      }
      if (alpha_ != nullptr) alpha_->Add(band, alpha_buffer, planes);
      WritePlanes(planes, band, result_);
      complete.Add(band);
    });
  }

 private:
  float* Plane(int c) const { return samples_.As<float>() + c * width_ * height_; }

  int colours_;
  std::int64_t width_, height_;
  const Picture& result_;
  const AlphaSource* alpha_;
  AlignedBuffer samples_;
};

// What a worker keeps from tile to tile.
struct Workspace {
  Tensor input;
  std::vector<std::vector<Tensor>> outputs;  // one a run
};

// The planes of a picture go through the network in one run, or one by one.
class TileRunner {
 public:
  TileRunner(TileModel& model, const Picture& in)
      : model_(model),
        in_(in),
        model_channels_(model.traits().channels),
        runs_(model_channels_ == 3 ? 1 : in.format().ColourChannels()) {}

  int colours() const { return model_channels_ * runs_; }

  // The network's output for the tile, uncropped; it lies in `work`.
  PlanesView Run(const Tile& tile, Workspace& work, Parallel& parallel) const {
    const Rect& rect = tile.input;
    const Shape shape{1, model_channels_, rect.height, rect.width};
    if (!work.input.view().present() || work.input.shape() != shape)
      work.input = Tensor(DType::kFloat32, shape);
    work.outputs.resize(static_cast<std::size_t>(runs_));
    PlanesView planes{.colours = colours()};
    for (int run = 0; run < runs_; ++run) {
      for (int c = 0; c < model_channels_; ++c) {
        // Grey has the same plane for all.
        const int channel = in_.format().ColourChannels() == 1 ? 0 : run + c;
        ReadChannel(in_, channel, rect, work.input.data<float>() + c * rect.width * rect.height);
      }
      std::vector<Tensor>& outputs = work.outputs[static_cast<std::size_t>(run)];
      model_.Run(work.input.view(), outputs, parallel);
      const Shape& out = outputs[0].shape();
      planes.stride = out[3];
      for (int c = 0; c < model_channels_; ++c)
        planes.colour[run + c] = outputs[0].data<float>() + c * out[2] * out[3];
    }
    return planes;
  }

  // Of the last tile that was run there.
  bool RoundingMayShow(const Workspace& work) const {
    return std::any_of(work.outputs.begin(), work.outputs.end(), [](const auto& outputs) {
      return tessera::RoundingMayShow(
          {outputs[0].template data<float>(), static_cast<std::size_t>(outputs[0].size())});
    });
  }

 private:
  TileModel& model_;
  const Picture& in_;
  int model_channels_, runs_;
};

}  // namespace

Upscaler::Size Upscaler::OwnSize(std::int64_t width, std::int64_t height) const {
  const ReceptiveField& field = model_->traits().field;
  return {AxisCut(width, field.width).output_length(),
          AxisCut(height, field.height).output_length()};
}

Upscaler::Plan Upscaler::MakePlan(const PictureFormat& in, const PictureFormat& out) const {
  const TilePlan plan = PlanTiles(in.width, in.height, *model_, options_);
  const std::size_t tile_bytes = model_->RunBytes(plan.tiling.tile_width, plan.tiling.tile_height);
  return {.tiles = static_cast<std::int64_t>(plan.tiling.tiles.size()),
          .tile_width = plan.tiling.tile_width,
          .tile_height = plan.tiling.tile_height,
          .bytes = tile_bytes * static_cast<std::size_t>(plan.workers) +
                   in.RowBytes() * static_cast<std::size_t>(in.height) +
                   out.RowBytes() * static_cast<std::size_t>(out.height)};
}

Picture Upscaler::Upscale(const Picture& in, const PictureFormat& out,
                          const TileProgress& progress) const {
  Picture result(out);
  Upscale(in, result, {}, progress);
  return result;
}

void Upscaler::Upscale(const Picture& in, const Picture& out, const RowFlow& flow,
                       const TileProgress& progress) const {
  const TilePlan plan = PlanTiles(in.width(), in.height(), *model_, options_);
  const Tiling& tiling = plan.tiling;
  const auto need = [&](std::int64_t end) {
    if (flow.need) flow.need(std::min(end, in.height()));
  };
  CompleteRows complete(out.format(), flow);
  std::optional<AlphaSource> alpha;
  if (in.format().HasAlpha()) {
    need(in.height());
    alpha.emplace(in, out.width(), out.height());
  }
  const AlphaSource* alpha_source = alpha ? &*alpha : nullptr;

  const TileRunner runner(*model_, in);
  DirectDestination direct(out, alpha_source, complete);
  std::optional<ResampledDestination> resampled;
  if (out.width() != tiling.output_width || out.height() != tiling.output_height) {
    resampled.emplace(runner.colours(), tiling.output_width, tiling.output_height, out,
                      alpha_source);
  }
  Destination& destination = resampled ? static_cast<Destination&>(*resampled) : direct;

  std::vector<Workspace> workspaces(static_cast<std::size_t>(plan.workers));
  std::mutex mutex;
  std::size_t done = 0;
  ForEachTile(plan, [&](const Tile& tile, int worker, Parallel& parallel) {
    Workspace& work = workspaces[static_cast<std::size_t>(worker)];
    const auto run = [&](const Tile& t) {
      need(t.input.bottom());
      return runner.Run(t, work, parallel);
    };
    const auto put = [&](const Tile& t, PlanesView planes) {
      const std::int64_t skipped =
          (t.output.y - t.output_y) * planes.stride + t.output.x - t.output_x;
      for (int c = 0; c < planes.colours; ++c) planes.colour[c] += skipped;
      destination.Put(t.output, planes);
    };
    const PlanesView planes = run(tile);
    if (plan.exact && runner.RoundingMayShow(work)) {
      for (const Tile& exact : plan.exact->TilesFor(tile)) put(exact, run(exact));
    } else {
      put(tile, planes);
    }
    std::lock_guard lock(mutex);
    ++done;
    if (progress) progress(done, tiling.tiles.size());
  });
  workspaces.clear();
  if (resampled) {
    ThreadTeam team(plan.threads);
    resampled->Finish(team, complete);
  }
}

}  // namespace tessera
