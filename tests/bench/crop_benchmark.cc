// Cutting patches of frames, against OpenCV's resize and conversion to planes. One thread.
#include <benchmark/benchmark.h>

#include <opencv2/imgproc.hpp>
#include <random>
#include <vector>

#include "pipeline/tracking/crop.h"
#include "simd/cpu_target.h"

namespace tessera {
namespace {

constexpr std::int64_t kWidth = 1280, kHeight = 960;

const std::vector<std::uint8_t>& Pixels() {
  static const std::vector<std::uint8_t> pixels = [] {
    std::vector<std::uint8_t> p(static_cast<std::size_t>(3 * kWidth * kHeight));
    std::minstd_rand random(1);
    for (std::uint8_t& v : p) v = static_cast<std::uint8_t>(random() >> 8);
    return p;
  }();
  return pixels;
}

FrameView Frame() { return {Pixels().data(), kWidth, kHeight, 3 * kWidth}; }

void Cut(benchmark::State& state, std::int64_t x) {
  const std::int64_t side = state.range(0), out = state.range(1);
  PatchCutter cutter(out, {});
  cutter.Reserve(side);
  std::vector<float> planes(static_cast<std::size_t>(3 * out * out));
  for (auto _ : state) {
    cutter.Cut(Frame(), {x, 30, side}, {1, 2, 3}, planes.data());
    benchmark::DoNotOptimize(planes.data());
  }
}
void CutInside(benchmark::State& state) { Cut(state, 40); }
void CutAtTheBorder(benchmark::State& state) { Cut(state, -20); }

void OpenCv(benchmark::State& state) {
  const int side = static_cast<int>(state.range(0)), out = static_cast<int>(state.range(1));
  cv::setNumThreads(1);
  const cv::Mat frame(static_cast<int>(kHeight), static_cast<int>(kWidth), CV_8UC3,
                      const_cast<std::uint8_t*>(Pixels().data()));
  std::vector<float> planes(static_cast<std::size_t>(3 * out * out));
  std::vector<cv::Mat> views;
  for (int c = 0; c < 3; ++c) views.emplace_back(out, out, CV_32F, planes.data() + c * out * out);
  cv::Mat scaled, floats;
  for (auto _ : state) {
    cv::resize(frame({40, 30, side, side}), scaled, {out, out}, 0, 0, cv::INTER_LINEAR);
    scaled.convertTo(floats, CV_32F);
    cv::split(floats, views);
    benchmark::DoNotOptimize(planes.data());
  }
}

void Mean(benchmark::State& state) {
  FrameView frame = Frame();
  frame.height = 720;
  for (auto _ : state) benchmark::DoNotOptimize(MeanColour(frame));
}

void Sides(benchmark::internal::Benchmark* b) {
  for (const std::int64_t side : {60, 130, 255, 400, 900}) b->Args({side, 255});
  b->Args({200, 127})->Unit(benchmark::kMicrosecond);
}
BENCHMARK(CutInside)->Apply(Sides);
BENCHMARK(CutAtTheBorder)->Apply(Sides);
BENCHMARK(OpenCv)->Apply(Sides);
BENCHMARK(Mean)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::AddCustomContext("target", tessera::CpuTargetName());
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
