// How long a tracker takes for a frame, and which share of it is not the network's: cutting the
// patch, choosing the point, following the box. Needs NanoTrack's networks in the shared folder.
#include <benchmark/benchmark.h>

#include <vector>

#include "ops/error.h"
#include "tests/pipeline/tracking/nanotrack.h"
#include "tests/pipeline/tracking/synthetic_clip.h"
#include "tests/pipeline/video/view_of.h"
#include "tests/shared_files.h"

namespace tessera {
namespace {

// NanoTrack state.range(0) on frames of state.range(1) x state.range(2).
void BM_Tracker(benchmark::State& state) {
  const auto shared = SharedFolder();
  if (!shared) {
    state.SkipWithError("no shared folder");
    return;
  }
  const int width = static_cast<int>(state.range(1)), height = static_cast<int>(state.range(2));
  const SyntheticClip clip({.width = width,
                            .height = height,
                            .frames = 30,
                            .path = {{0, 0.3 * width, 0.5 * height, 0.25 * height, 0},
                                     {29, 0.5 * width, 0.4 * height, 0.3 * height, 10}}});
  std::vector<ClipFrame> frames;
  for (int i = 0; i < clip.frames(); ++i) frames.push_back(clip.Render(i));
  Tracker tracker = LoadNanoTrack(*shared, static_cast<int>(state.range(0)));
  tracker.Init(ViewOf(frames[0].pixels), frames[0].box);
  // Forwards and backwards, so that the toy never jumps.
  std::size_t i = 0;
  const std::size_t last = frames.size() - 1;
  double network = 0;
  for (auto _ : state) {
    i = (i + 1) % (2 * last);
    benchmark::DoNotOptimize(tracker.Update(ViewOf(frames[i <= last ? i : 2 * last - i].pixels)));
    network += tracker.network_seconds();
  }
  using benchmark::Counter;
  state.counters["network"] = Counter(network, Counter::kAvgIterations);
  state.counters["frames/s"] = Counter(1, Counter::kIsIterationInvariantRate);
}
BENCHMARK(BM_Tracker)
    ->ArgNames({"v", "width", "height"})
    ->ArgsProduct({{1, 2, 3}, {320}, {240}})
    ->ArgsProduct({{1, 2, 3}, {1280}, {720}})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tessera

BENCHMARK_MAIN();
