// 3x3 convolutions in the sizes of super-resolution networks, one thread. GFLOPS counts the
// multiply-adds of the direct form; peak_share is its ratio to what the FMA units can do at most.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <vector>

#include "ops/conv.h"
#include "tests/bench/fma_peak.h"

namespace tessera {
namespace {

Tensor RandomTensor(const Shape& shape, Layout layout) {
  Tensor t(DType::kFloat32, shape, layout);
  std::minstd_rand random(1);
  std::uniform_real_distribution<float> uniform(-0.1f, 0.1f);
  std::generate_n(t.data<float>(), t.bytes() / sizeof(float), [&] { return uniform(random); });
  return t;
}

// Arguments: input channels, output channels, height, width. Layers of a network run one after
// the other, so several with weights of their own take turns between two buffers.
void BM_WinogradConv(benchmark::State& state) {
  constexpr int kLayers = 10;
  const std::int64_t in_channels = state.range(0), out_channels = state.range(1),
                     height = state.range(2), width = state.range(3);
  const ConvParams params{.batch = 1,
                          .in_channels = in_channels,
                          .in_height = height,
                          .in_width = width,
                          .out_channels = out_channels,
                          .out_height = height,
                          .out_width = width,
                          .kernel_h = 3,
                          .kernel_w = 3,
                          .stride_h = 1,
                          .stride_w = 1,
                          .dilation_h = 1,
                          .dilation_w = 1,
                          .pad_top = 1,
                          .pad_left = 1,
                          .pad_bottom = 1,
                          .pad_right = 1,
                          .groups = 1,
                          .epilogue = {.activation = Activation::kPRelu}};
  const auto constant = [](const Shape& shape) {
    return std::make_shared<const Tensor>(RandomTensor(shape, Layout::kRowMajor));
  };
  PackCache packs;
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (int i = 0; i < kLayers; ++i) {
    kernels.push_back(MakeWinogradConv(params,
                                       {.weights = constant({out_channels, in_channels, 3, 3}),
                                        .bias = constant({out_channels}),
                                        .slope = constant({out_channels})},
                                       packs));
  }
  const Tensor a = RandomTensor({1, in_channels, height, width}, Layout::kBlocked);
  const Tensor b = RandomTensor({1, out_channels, height, width}, Layout::kBlocked);
  const AlignedBuffer scratch(kernels[0]->ScratchBytesPerThread());
  SerialParallel serial;
  double best = 1e9;
  int i = 0;
  for (auto _ : state) {
    const bool swap = i % 2 == 1 && in_channels == out_channels;
    const TensorView inputs[] = {(swap ? b : a).view()};
    const TensorView outputs[] = {(swap ? a : b).view()};
    const auto start = std::chrono::steady_clock::now();
    kernels[i]->Run({inputs, outputs, serial, scratch.data(), 0});
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    state.SetIterationTime(seconds.count());
    best = std::min(best, seconds.count());
    i = (i + 1) % kLayers;
  }
  const double gflops = params.Flops() * 1e-9 / best;
  state.counters["min_ms"] = best * 1e3;
  state.counters["GFLOPS"] = gflops;
  state.counters["peak_share"] = gflops / FmaPeakGflops();
  state.SetLabel(std::string(kernels[0]->name()));
}

BENCHMARK(BM_WinogradConv)
    ->ArgNames({"in", "out", "h", "w"})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->Args({64, 64, 64, 64})
    ->Args({64, 64, 128, 128})
    ->Args({64, 64, 256, 256})
    ->Args({48, 48, 64, 64})
    ->Args({48, 48, 128, 128})
    ->Args({48, 48, 256, 256})
    ->Args({64, 32, 64, 64})
    ->Args({128, 32, 64, 64})
    ->Args({192, 32, 64, 64})
    ->Args({192, 64, 64, 64});

}  // namespace
}  // namespace tessera

BENCHMARK_MAIN();
