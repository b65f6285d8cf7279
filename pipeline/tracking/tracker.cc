#include "pipeline/tracking/tracker.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "ops/error.h"
#include "ops/tensor.h"
#include "pipeline/tracking/point_ranking.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

struct Tracker::Impl {
  Impl(std::unique_ptr<SiameseNetwork> network_in, const TrackerConfig& config_in, int threads)
      : network(std::move(network_in)),
        config(config_in),
        ranking(config, network->map_side()),
        template_cutter(config.template_size, config.pixels),
        search_cutter(config.search_size, config.pixels),
        template_patch(DType::kFloat32, {1, 3, config.template_size, config.template_size}),
        search_patch(DType::kFloat32, {1, 3, config.search_size, config.search_size}),
        team(threads) {}

  // The side of the square around the target that becomes the template.
  double TemplateSide() const {
    const double context = config.context * (state.width + state.height);
    return std::sqrt((state.width + context) * (state.height + context));
  }

  void SetFrameSize(const FrameView& frame) {
    if (frame.width == frame_width && frame.height == frame_height) return;
    frame_width = frame.width;
    frame_height = frame.height;
  }

  template <typename Work>
  auto Timed(Work&& work) {
    const Clock::time_point begin = Clock::now();
    struct AtEnd {
      Impl& impl;
      Clock::time_point begin;
      ~AtEnd() {
        impl.network_seconds += std::chrono::duration<double>(Clock::now() - begin).count();
      }
    } at_end{*this, begin};
    return work();
  }

  std::unique_ptr<SiameseNetwork> network;
  const TrackerConfig config;
  const PointRanking ranking;
  PatchCutter template_cutter, search_cutter;
  const Tensor template_patch, search_patch;
  ThreadTeam team;

  std::int64_t frame_width = 0, frame_height = 0;
  std::array<std::uint8_t, 3> fill = {};  // beyond the frame
  bool ready = false;                     // Init has been called
  State state;
  Step step;
  double network_seconds = 0;
};

Tracker::Tracker(std::unique_ptr<SiameseNetwork> network, const TrackerConfig& config, int threads)
    : impl_(std::make_unique<Impl>(std::move(network), config, threads)) {}
Tracker::~Tracker() = default;
Tracker::Tracker(Tracker&&) noexcept = default;

const TrackerConfig& Tracker::config() const { return impl_->config; }
const Tracker::State& Tracker::state() const { return impl_->state; }
const Tracker::Step& Tracker::last_step() const { return impl_->step; }
double Tracker::network_seconds() const { return impl_->network_seconds; }
void Tracker::SetState(const State& state) { impl_->state = state; }

void Tracker::Init(const FrameView& frame, const Box& box) {
  Impl& t = *impl_;
  t.SetFrameSize(frame);
  t.state = {box.x + (box.width - 1) / 2, box.y + (box.height - 1) / 2, box.width, box.height};
  const std::array<double, 3> mean = MeanColour(frame);
  std::transform(mean.begin(), mean.end(), t.fill.begin(),
                 [](double level) { return static_cast<std::uint8_t>(level); });
  const auto side = static_cast<std::int64_t>(std::nearbyint(t.TemplateSide()));
  t.template_cutter.Cut(frame, WindowAround(t.state.cx, t.state.cy, side), t.fill,
                        t.template_patch.data<float>());
  t.network_seconds = 0;
  t.Timed([&] { t.network->SetTemplate(t.template_patch.view(), t.team); });
  t.ready = true;
}

TrackResult Tracker::Update(const FrameView& frame) {
  Impl& t = *impl_;
  t.SetFrameSize(frame);
  const double template_side = t.TemplateSide();
  const double scale = t.config.template_size / template_side;  // patch pixels per frame pixel
  const auto side = static_cast<std::int64_t>(
      std::nearbyint(template_side * t.config.search_size / t.config.template_size));
  t.step.window = WindowAround(t.state.cx, t.state.cy, side);
  t.search_cutter.Cut(frame, t.step.window, t.fill, t.search_patch.data<float>());
  t.network_seconds = 0;
  const SiameseNetwork::Maps maps =
      t.Timed([&] { return t.network->Search(t.search_patch.view(), t.team); });
  const PointChoice best = t.ranking.Choose(maps, t.state.width * scale, t.state.height * scale,
                                            t.config.window_influence);
  t.step.row = best.row;
  t.step.column = best.column;
  t.step.score = best.score;
  t.step.penalty = best.penalty;
  t.step.rank_margin = best.rank_margin;
  const double rate = t.config.rate * best.penalty * best.score;
  const auto length = [&](double before, double found, std::int64_t limit) {
    const double mixed = (1 - rate) * before + rate * found / scale;
    return std::max(t.config.min_side, std::min(mixed, static_cast<double>(limit)));
  };
  t.state.cx = std::clamp(t.state.cx + best.dx / scale, 0.0, static_cast<double>(frame.width));
  t.state.cy = std::clamp(t.state.cy + best.dy / scale, 0.0, static_cast<double>(frame.height));
  t.state.width = length(t.state.width, best.width, frame.width);
  t.state.height = length(t.state.height, best.height, frame.height);
  return {t.state.box(), best.score, false};
}

}  // namespace tessera
