#include "pipeline/result_rows.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "ops/error.h"
#include "pipeline/resample.h"
#include "pipeline/result_alpha.h"
#include "pipeline/row_window.h"

namespace tessera {
namespace {

// The part of `planes`, which begin at `from`, that begins at `to`.
PlanesView Part(PlanesView planes, const Rect& from, const Rect& to) {
  const std::int64_t x = to.x - from.x, y = to.y - from.y;
  for (int c = 0; c < planes.colours; ++c) planes.colour[c] += y * planes.stride + x;
  if (planes.alpha != nullptr) planes.alpha += y * planes.alpha_stride + x;
  return planes;
}

Rect Intersection(const Rect& a, const Rect& b) {
  const std::int64_t x = std::max(a.x, b.x), y = std::max(a.y, b.y);
  return {x, y, std::min(a.right(), b.right()) - x, std::min(a.bottom(), b.bottom()) - y};
}

// The result, and who takes its rows.
class Result {
 public:
  Result(const UpscalePlan& plan, const Picture& in, const Picture& picture,
         const PictureOptions& options, const RowFlow& flow)
      : picture_(picture), options_(options), flow_(flow), window_(picture) {
    if (in.format().HasAlpha()) alpha_.emplace(in, plan);
  }

  const Picture& picture() const { return picture_; }

  void WaitForRoom(std::int64_t end, Parallel& parallel) {
    window_.WaitForRoom(end, [&] { HandOn(parallel); });
  }
  [[nodiscard]] std::optional<Place> Write(const Rect& rect, PlanesView planes) const {
    std::vector<float> alpha;
    if (alpha_) alpha_->Apply(rect, alpha, planes);
    return WritePlanes(planes, rect, picture_, options_.background);
  }
  void Add(const Rect& rect, Parallel& parallel) {
    if (window_.Add(rect)) HandOn(parallel);
  }
  void Cancel(const std::exception_ptr& error) { window_.Cancel(error); }

 private:
  void HandOn(Parallel& parallel) {
    const std::int64_t complete = window_.complete();
    window_.Release(flow_.done ? flow_.done(complete, parallel) : complete);
  }

  const Picture& picture_;
  const PictureOptions& options_;
  const RowFlow& flow_;
  std::optional<ResultAlpha> alpha_;
  RowWindow window_;
};

// The model's own size is what is wanted.
class DirectRows final : public ResultRows {
 public:
  DirectRows(const UpscalePlan& plan, const Picture& in, const Picture& result,
             const PictureOptions& options, const RowFlow& flow)
      : shown_{plan.x.own_begin, plan.y.own_begin, result.width(), result.height()},
        result_(plan, in, result, options, flow) {}

  std::optional<Place> Put(const Rect& rect, const PlanesView& planes,
                           Parallel& parallel) override {
    const Rect part = Intersection(rect, shown_);
    if (part.width <= 0 || part.height <= 0) return std::nullopt;
    const Rect to{part.x - shown_.x, part.y - shown_.y, part.width, part.height};
    result_.WaitForRoom(to.bottom(), parallel);
    if (const auto bad = result_.Write(to, Part(planes, rect, part))) return bad;
    result_.Add(to, parallel);
    return std::nullopt;
  }

  std::int64_t FirstInputRow() const override { return std::numeric_limits<std::int64_t>::max(); }
  void Cancel(const std::exception_ptr& error) override { result_.Cancel(error); }

 private:
  Rect shown_;  // of the own picture
  Result result_;
};

// Collects rows of the own picture, clamped to [0, 1] before the kernel spreads what overshoots, in
// 16 bits, and resamples them when those that a row of the result is made of are complete.
class ResampledRows final : public ResultRows {
 public:
  ResampledRows(const UpscalePlan& plan, const Picture& in, const Picture& result,
                const PictureOptions& options, const RowFlow& flow)
      : own_({.width = plan.x.own,
              .height = plan.y.own,
              .channels = plan.own_channels,
              .bit_depth = 16},
             plan.held_own),
        plan_(plan),
        own_window_(own_),
        result_(plan, in, result, options, flow),
        resampler_(plan.x.ResultAxis(), plan.y.ResultAxis()) {
    if (in.format().HasAlpha()) alpha_rows_.emplace(plan.y.AlphaAxis());
  }

  std::optional<Place> Put(const Rect& rect, const PlanesView& planes,
                           Parallel& parallel) override {
    own_window_.WaitForRoom(rect.bottom(), [&] { Resample(parallel); });
    if (const auto bad = WritePlanes(planes, rect, own_))
      return Place{bad->x - plan_.x.own_begin, bad->y - plan_.y.own_begin};
    if (own_window_.Add(rect)) Resample(parallel);
    return std::nullopt;
  }

  std::int64_t FirstInputRow() const override {
    const std::int64_t next = next_;
    if (!alpha_rows_ || next == result_.picture().height())
      return std::numeric_limits<std::int64_t>::max();
    const Span rows = alpha_rows_->Inputs({next, next + 1});
    return BorderSources({rows.begin - plan_.y.border, rows.end - plan_.y.border}, plan_.y.input,
                         plan_.border.y)
        .begin;
  }

  void Cancel(const std::exception_ptr& error) override {
    own_window_.Cancel(error);
    result_.Cancel(error);
  }

 private:
  // What can be resampled is, by one thread at a time with its team.
  void Resample(Parallel& parallel) {
    std::unique_lock lock(mutex_);
    again_ = true;
    if (resampling_) return;
    resampling_ = true;
    while (std::exchange(again_, false)) {
      lock.unlock();
      const std::int64_t complete = own_window_.complete(), height = result_.picture().height();
      while (next_ < height) {
        std::int64_t end = next_;
        while (end < std::min(height, next_ + kResampledRows) && NeededRows(end) <= complete) ++end;
        if (end == next_) break;
        ResampleRows(next_, end, parallel);
        next_ = end;
      }
      // Rows that nobody needs, but that are still to be written, have to stay: they would be
      // written over others.
      const std::int64_t first = next_ < height ? resampler_.y().First(next_) : own_.height();
      own_window_.Release(std::min(first, complete));
      lock.lock();
    }
    resampling_ = false;
  }

  // Rows of the own picture that have to be complete for a row of the result. Where they are, the
  // rows of the input that they show are there.
  std::int64_t NeededRows(std::int64_t y) const {
    std::int64_t end = resampler_.y().Inputs({y, y + 1}).end;
    if (alpha_rows_) {
      const double scale = plan_.y.own_length / static_cast<double>(plan_.y.input);
      const double alpha = static_cast<double>(alpha_rows_->Inputs({y, y + 1}).end) * scale;
      end = std::max(end, static_cast<std::int64_t>(std::ceil(alpha)));
    }
    return std::min(end, own_.height());
  }

  void ResampleRows(std::int64_t begin, std::int64_t end, Parallel& parallel) {
    result_.WaitForRoom(end, parallel);
    const std::int64_t width = result_.picture().width();
    constexpr std::int64_t kRows = 8;  // that the resampler takes together
    parallel.For((end - begin + kRows - 1) / kRows, [&](std::int64_t i, int) {
      const std::int64_t top = begin + i * kRows;
      const Rect rect{0, top, width, std::min(kRows, end - top)};
      const Rect from = resampler_.Inputs(rect);
      const auto size = static_cast<std::size_t>(rect.width * rect.height);
      const int channels = own_.format().channels;
      std::vector<float> in(static_cast<std::size_t>(from.width * from.height));
      std::vector<float> out(size * static_cast<std::size_t>(channels));
      PlanesView planes{.colours = own_.format().ColourChannels(), .stride = width};
      for (int c = 0; c < channels; ++c) {
        float* plane = out.data() + size * static_cast<std::size_t>(c);
        ReadChannel(own_, c, from, in.data());
        resampler_.Run(in.data(), from.width, rect, plane, width);
        if (c < planes.colours) planes.colour[c] = plane;
      }
      if (own_.format().HasAlpha()) {
        planes.alpha = out.data() + size * static_cast<std::size_t>(planes.colours);
        planes.alpha_stride = width;
      }
      const auto bad = result_.Write(rect, planes);
      Require(!bad, "resampling made a value that is no finite number");
    });
    result_.Add({0, begin, width, end - begin}, parallel);
  }

  Picture own_;
  const UpscalePlan& plan_;
  RowWindow own_window_;
  Result result_;
  Resampler resampler_;
  std::optional<ResampleAxis> alpha_rows_;
  std::mutex mutex_;
  bool resampling_ = false, again_ = false;
  std::atomic<std::int64_t> next_ = 0;  // row of the result
};

}  // namespace

std::unique_ptr<ResultRows> MakeResultRows(const UpscalePlan& plan, const Picture& in,
                                           const Picture& result, const PictureOptions& options,
                                           const RowFlow& flow) {
  if (plan.resampled) return std::make_unique<ResampledRows>(plan, in, result, options, flow);
  return std::make_unique<DirectRows>(plan, in, result, options, flow);
}

}  // namespace tessera
