#include "pipeline/quantization/tracker_samples.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "ops/error.h"

namespace tessera {
namespace {

constexpr std::size_t kTargets = 4;             // of a clip
constexpr std::int64_t kFramesApart = 5;        // where nobody knows how long a clip is
constexpr std::int64_t kFramesUnknownBox = 32;  // for which a target is taken to stay in its place

// Even sequences from -1 to 1, which begin at 0.
double Spread(int n, double step) {
  const double x = 0.5 + n * step;
  return 2 * (x - std::floor(x)) - 1;
}

}  // namespace

TrackerSampler::TrackerSampler(std::unique_ptr<SiameseNetwork> network, const TrackerConfig& config,
                               int threads)
    : config_(config),
      follows_(network != nullptr),
      tracker_(std::make_unique<PatchRecorder>(std::move(network), *tape_), config, threads) {}

void TrackerSampler::Start(const FrameView& frame, const Box& box) {
  tape_->recording = true;
  tracker_.Init(frame, box);
  tape_->recording = false;
}

void TrackerSampler::NoteSizes(std::size_t first, const Tracker::State& before) {
  const double scale = config_.search_size / static_cast<double>(std::max<std::int64_t>(
                                                 1, tracker_.last_step().window.side));
  for (std::size_t i = first; i < tape_->samples.searches.size(); ++i) {
    SearchSample& sample = tape_->samples.searches[i];
    sample.width = before.width * scale;
    sample.height = before.height * scale;
  }
}

void TrackerSampler::SearchAround(const FrameView& frame, const Box& box, int n) {
  // As far as targets move, and as much as they change, between frames and a little more.
  constexpr double kMoves = 0.4, kGrows = 0.25;
  const double scale = std::exp(kGrows * Spread(n, 0.6180339887498949));
  const Tracker::State state{box.x + box.width * (0.5 + kMoves * Spread(n, 0.7548776662466927)),
                             box.y + box.height * (0.5 + kMoves * Spread(n, 0.5698402909980532)),
                             box.width * scale, box.height * scale};
  tracker_.SetState(state);
  const std::size_t first = tape_->samples.searches.size();
  tape_->recording = true;
  tracker_.Update(frame);
  tape_->recording = false;
  NoteSizes(first, state);
  tracker_.SetState({box.x + 0.5 * box.width, box.y + 0.5 * box.height, box.width, box.height});
}

void TrackerSampler::AddFrame(const FrameView& frame, const Box& box, int searches) {
  Start(frame, box);
  for (int n = 0; n < searches; ++n) SearchAround(frame, box, n);
}

void TrackerSampler::AddClip(FrameSource& source, const std::string& name, const GroundTruth& known,
                             int searches) {
  const bool stays = !follows_ && known.size() <= 1;
  // Frames between two searches.
  std::int64_t frames = source.info().frames.value_or(kFramesApart * searches);
  if (stays) frames = std::min(frames, kFramesUnknownBox);
  const std::int64_t apart = std::max<std::int64_t>(1, frames / std::max(1, searches));
  const std::size_t before = tape_->samples.searches.size();
  const auto taken = [&] { return static_cast<int>(tape_->samples.searches.size() - before); };

  std::size_t targets = 0;
  std::optional<Box> box;  // of the target in the last frame
  bool lost = false;
  std::int64_t since = apart;  // frames since the last search
  Frame frame;
  while (taken() < searches && source.Read(frame)) {
    const FrameView view = frame.view();
    const auto found = known.find(frame.number);
    const bool is_known = found != known.end();
    if (is_known) {
      box = found->second;
      lost = false;
    }
    if (!box) continue;
    const int next = static_cast<int>(targets) * searches / static_cast<int>(kTargets);
    if (!lost && (is_known || follows_) && targets < kTargets && taken() >= next) {
      Start(view, *box);
      ++targets;
    }
    if (targets == 0) continue;
    const bool searches_now = ++since > apart;
    if (is_known || stays) {
      if (!searches_now) continue;
      SearchAround(view, *box, taken());
    } else if (follows_ && !lost) {
      const Tracker::State state = tracker_.state();
      const std::size_t first = tape_->samples.searches.size();
      tape_->recording = searches_now;
      const TrackResult result = tracker_.Update(view);
      tape_->recording = false;
      NoteSizes(first, state);
      box = result.box;
      lost = result.lost;
    }
    if (searches_now) since = 1;
  }
  Require(targets > 0, name, ": has no frame with a known box");
}

}  // namespace tessera
