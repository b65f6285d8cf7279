#include "pipeline/tracking/tracker.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "engine/thread_team.h"
#include "ops/error.h"
#include "ops/tensor.h"
#include "pipeline/tracking/point_ranking.h"
#include "pipeline/tracking/presence.h"
#include "pipeline/tracking/search_path.h"

namespace tessera {
namespace {

// Adds the time of its life to a sum of seconds.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += std::chrono::duration<double>(Clock::now() - begin_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double& seconds_;
  const Clock::time_point begin_ = Clock::now();
};

// Of the size that is remembered, for a frame.
constexpr double kSlowestShrinking = 0.99;

std::int64_t WholeSide(double side) {
  constexpr double kMost = 1 << 30;  // far beyond any frame
  return static_cast<std::int64_t>(std::clamp(std::nearbyint(side), 1.0, kMost));
}

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
        team(threads),
        presence(config.lost_below, config.found_above) {}

  // What was seen in a search window.
  struct Look {
    PointChoice choice;
    double scale = 1;  // patch pixels per pixel of the frame
    double cx = 0, cy = 0;
  };

  // The side of the square around the target that becomes the template.
  double TemplateSide() const {
    const double context = config.context * (state.width + state.height);
    return std::sqrt((state.width + context) * (state.height + context));
  }
  double SearchSide() const { return TemplateSide() * config.search_size / config.template_size; }

  void SetFrameSize(const FrameView& frame);
  void StartSearch();
  Look LookAt(const FrameView& frame, double cx, double cy, double enlargement,
              double window_influence);
  // The target is where it was seen.
  void Follow(const Look& look);
  // Remembers the state, as one that leaves no doubt.
  void SetSeen();
  // As far as it fits, the box of `state` within the frame.
  Box BoxInFrame() const;
  TrackResult UpdateTracked(const FrameView& frame);
  TrackResult UpdateLost(const FrameView& frame);

  std::unique_ptr<SiameseNetwork> network;
  const TrackerConfig config;
  const PointRanking ranking;
  PatchCutter template_cutter, search_cutter;
  const Tensor template_patch, search_patch;
  ThreadTeam team;

  std::int64_t frame_width = 0, frame_height = 0;
  double min_width = 0, min_height = 0;   // of a box; they change with the frame's size
  std::array<std::uint8_t, 3> fill = {};  // beyond the frame
  bool ready = false;                     // there is a template
  State state;
  Step step;
  double network_seconds = 0;

  // Whether the target is there.
  Presence presence;
  State seen;                      // the last one without doubt
  std::optional<SearchPath> path;  // while it is lost
};

void Tracker::Impl::SetFrameSize(const FrameView& frame) {
  if (frame.width == frame_width && frame.height == frame_height) return;
  const auto width = static_cast<double>(frame.width), height = static_cast<double>(frame.height);
  if (frame_width > 0) {
    // A stream that changes its resolution shows the same scene.
    const double x_scale = width / static_cast<double>(frame_width),
                 y_scale = height / static_cast<double>(frame_height);
    for (State* s : {&state, &seen}) {
      s->cx *= x_scale;
      s->cy *= y_scale;
      s->width *= x_scale;
      s->height *= y_scale;
    }
    min_width *= x_scale;
    min_height *= y_scale;
  } else {
    min_width = min_height = config.min_side;
  }
  frame_width = frame.width;
  frame_height = frame.height;
  if (path) StartSearch();
  template_cutter.Reserve(frame.width);
  search_cutter.Reserve(frame.width);
}

void Tracker::Impl::StartSearch() {
  path.emplace(static_cast<double>(frame_width), static_cast<double>(frame_height), state.cx,
               state.cy, SearchSide());
}

Tracker::Impl::Look Tracker::Impl::LookAt(const FrameView& frame, double cx, double cy,
                                          double enlargement, double window_influence) {
  Look look{.choice = {},
            .scale = config.template_size / (TemplateSide() * enlargement),
            .cx = cx,
            .cy = cy};
  step.window = WindowAround(cx, cy, WholeSide(SearchSide() * enlargement));
  search_cutter.Cut(frame, step.window, fill, search_patch.data<float>());
  SiameseNetwork::Maps maps;
  {
    const Stopwatch watch(network_seconds);
    maps = network->Search(search_patch.view(), team);
  }
  look.choice =
      ranking.Choose(maps, state.width * look.scale, state.height * look.scale, window_influence);
  step.row = look.choice.row;
  step.column = look.choice.column;
  step.score = look.choice.score;
  step.penalty = look.choice.penalty;
  step.rank_margin = look.choice.rank_margin;
  return look;
}

void Tracker::Impl::Follow(const Look& look) {
  const PointChoice& choice = look.choice;
  if (!choice.found()) return;
  const auto width = static_cast<double>(frame_width), height = static_cast<double>(frame_height);
  const double rate = config.rate * choice.penalty * choice.score;
  const auto length = [&](double before, double found, double least, double most) {
    return std::min(std::max((1 - rate) * before + rate * found / look.scale, least), most);
  };
  state.cx = std::clamp(look.cx + choice.dx / look.scale, 0.0, width);
  state.cy = std::clamp(look.cy + choice.dy / look.scale, 0.0, height);
  state.width = length(state.width, choice.width, min_width, width);
  state.height = length(state.height, choice.height, min_height, height);
}

void Tracker::Impl::SetSeen() {
  const Box box = state.box();
  const bool whole = box.x >= 0 && box.y >= 0 &&
                     box.x + box.width <= static_cast<double>(frame_width) &&
                     box.y + box.height <= static_cast<double>(frame_height);
  // The box of a target that goes behind something shrinks to the part that is seen, at the frame's
  // border or where the score still leaves no doubt. What comes back has its whole size.
  const double keep = whole ? kSlowestShrinking : 1;
  const State before = seen;
  seen = state;
  seen.width = std::max(state.width, keep * before.width);
  seen.height = std::max(state.height, keep * before.height);
}

Box Tracker::Impl::BoxInFrame() const {
  Box box = state.box();
  const auto move = [](double begin, double length, double limit) {
    return length < limit ? std::clamp(begin, 0.0, limit - length) : (limit - length) / 2;
  };
  box.x = move(box.x, box.width, static_cast<double>(frame_width));
  box.y = move(box.y, box.height, static_cast<double>(frame_height));
  return box;
}

TrackResult Tracker::Impl::UpdateTracked(const FrameView& frame) {
  const Look look = LookAt(frame, state.cx, state.cy, 1, config.window_influence);
  const double score = look.choice.score;
  Follow(look);
  presence.Followed(score);
  if (!presence.doubted()) SetSeen();
  if (!presence.lost()) return {state.box(), score, false};
  // In the frames of doubt it may have followed anything.
  state = seen;
  StartSearch();
  return {BoxInFrame(), score, true};
}

TrackResult Tracker::Impl::UpdateLost(const FrameView& frame) {
  const SearchPath::Place place = path->Next();
  Look look = LookAt(frame, place.x, place.y, place.enlargement, 0);
  if (place.enlargement != place.closer && look.choice.found()) {
    const auto there = [](double middle, double offset, std::int64_t limit) {
      return std::clamp(middle + offset, 0.0, static_cast<double>(limit));
    };
    look = LookAt(frame, there(place.x, look.choice.dx / look.scale, frame_width),
                  there(place.y, look.choice.dy / look.scale, frame_height), place.closer, 0);
  }
  if (!presence.Found(look.choice.score)) return {BoxInFrame(), look.choice.score, true};
  path.reset();
  Follow(look);
  seen = state;
  return {state.box(), look.choice.score, false};
}

Tracker::Tracker(std::unique_ptr<SiameseNetwork> network, const TrackerConfig& config, int threads)
    : impl_(std::make_unique<Impl>(std::move(network), config, threads)) {
  // The network's first calls allocate.
  Impl& t = *impl_;
  const auto clear = [](const Tensor& patch) {
    std::fill_n(patch.data<float>(), patch.shape().NumElements(), 0.0F);
  };
  clear(t.template_patch);
  clear(t.search_patch);
  t.network->SetTemplate(t.template_patch.view(), t.team);
  t.network->Search(t.search_patch.view(), t.team);
}
Tracker::~Tracker() = default;
Tracker::Tracker(Tracker&&) noexcept = default;
Tracker& Tracker::operator=(Tracker&&) noexcept = default;

const TrackerConfig& Tracker::config() const { return impl_->config; }
const Tracker::State& Tracker::state() const { return impl_->state; }
const Tracker::Step& Tracker::last_step() const { return impl_->step; }
double Tracker::network_seconds() const { return impl_->network_seconds; }
void Tracker::SetState(const State& state) {
  impl_->state = impl_->seen = state;
  impl_->presence.Reset();
  impl_->path.reset();
  impl_->frame_width = impl_->frame_height = 0;  // it is the next frame's, whatever size that has
}

void Tracker::Init(const FrameView& frame, const Box& box) {
  Impl& t = *impl_;
  const auto width = static_cast<double>(frame.width), height = static_cast<double>(frame.height);
  Require(IsFinite(box), "the target's box holds a value that is no finite number");
  Require(box.width > 0 && box.height > 0, "the target's box is empty: ", box.width, "x",
          box.height);
  Require(box.x < width && box.y < height && box.x + box.width > 0 && box.y + box.height > 0,
          "the target's box lies outside of the frame of ", frame.width, "x", frame.height);
  // What is larger than the frame is cut to it, as it will be in later frames.
  const auto cut = [](double begin, double length, double limit) -> std::pair<double, double> {
    if (length <= limit) return {begin, length};
    const double from = std::max(begin, 0.0);
    return {from, std::min(begin + length, limit) - from};
  };
  const auto [x, w] = cut(box.x, box.width, width);
  const auto [y, h] = cut(box.y, box.height, height);
  SetState({x + (w - 1) / 2, y + (h - 1) / 2, w, h});
  t.SetFrameSize(frame);
  const std::array<double, 3> mean = MeanColour(frame);
  std::transform(mean.begin(), mean.end(), t.fill.begin(),
                 [](double level) { return static_cast<std::uint8_t>(level); });
  t.template_cutter.Cut(frame, WindowAround(t.state.cx, t.state.cy, WholeSide(t.TemplateSide())),
                        t.fill, t.template_patch.data<float>());
  t.network_seconds = 0;
  {
    const Stopwatch watch(t.network_seconds);
    t.network->SetTemplate(t.template_patch.view(), t.team);
  }
  t.ready = true;
}

TrackResult Tracker::Update(const FrameView& frame) {
  Impl& t = *impl_;
  Require(t.ready, "a tracker is told first where its target is");
  Require(frame.width > 0 && frame.height > 0, "a frame has no pixels");
  t.SetFrameSize(frame);
  t.network_seconds = 0;
  return t.path ? t.UpdateLost(frame) : t.UpdateTracked(frame);
}

}  // namespace tessera
