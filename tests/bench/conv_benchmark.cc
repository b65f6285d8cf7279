// Speed of the convolution kernels other than Winograd's on one thread, and the share of the
// core's peak that they reach.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ops/conv.h"
#include "simd/cpu_target.h"
#include "tests/bench/fma_peak.h"

namespace tessera {
namespace {

enum class Which { kDirect, kPlanar, kDot, kDepthwise };

struct BenchCase {
  const char* name;
  Which which;
  Layout in, out;
  std::int64_t channels, out_channels, size, kernel, stride = 1, groups = 1;
  Combine combine = Combine::kNone;
};

ConvParams MakeParams(const BenchCase& c) {
  OpNode node{.name = c.name, .type = "FusedConv", .opset = 17, .attributes = {}};
  node.attributes.Set("strides", std::vector<std::int64_t>(2, c.stride));
  node.attributes.Set("pads", std::vector<std::int64_t>(4, c.kernel / 2));
  node.attributes.Set("group", c.groups);
  WriteEpilogue({.activation = Activation::kLeakyRelu, .alpha = 0.2f, .combine = c.combine},
                node.attributes);
  return ReadConvParams(node, {1, c.channels, c.size, c.size},
                        {c.out_channels, c.channels / c.groups, c.kernel, c.kernel});
}

Tensor Filled(const Shape& shape, Layout layout) {
  Tensor t(DType::kFloat32, shape, layout);
  std::fill_n(t.data<float>(), t.bytes() / sizeof(float), 0.01f);
  return t;
}

double ThreadSeconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void RunBench(benchmark::State& state, const BenchCase& c) {
  const ConvParams p = MakeParams(c);
  PackCache packs;
  const ConvConstants constants = {
      std::make_shared<Tensor>(Filled(
          {p.out_channels, p.in_channels / p.groups, c.kernel, c.kernel}, Layout::kRowMajor)),
      std::make_shared<Tensor>(Filled({p.out_channels}, Layout::kRowMajor)), nullptr};
  std::unique_ptr<Kernel> kernel;
  switch (c.which) {
    case Which::kDirect:
      kernel = MakeDirectConv(p, constants, c.in, c.out, packs);
      break;
    case Which::kPlanar:
      kernel = MakePlanarConv(p, constants, packs);
      break;
    case Which::kDot:
      kernel = MakeDotConv(p, constants, packs);
      break;
    case Which::kDepthwise:
      kernel = MakeDepthwiseConv(p, constants, packs);
      break;
  }
  const Shape out_shape = {1, p.out_channels, p.out_height, p.out_width};
  const Tensor x = Filled({1, p.in_channels, c.size, c.size}, c.in);
  const Tensor addend = Filled(out_shape, c.out), out = Filled(out_shape, c.out);
  const std::vector<TensorView> inputs = {x.view(), constants.weights->view(),
                                          constants.bias->view(), TensorView{}, addend.view()};
  const std::vector<TensorView> outputs = {out.view()};
  AlignedBuffer scratch(kernel->ScratchBytesPerThread());
  SerialParallel serial;
  const RunContext run{inputs, outputs, serial, scratch.data(), scratch.size()};

  // The fastest run, in time that the thread was really running: what the kernel can do, whatever
  // else the machine is busy with.
  double best = 1e9;
  for (auto _ : state) {
    const double start = ThreadSeconds();
    kernel->Run(run);
    const double seconds = ThreadSeconds() - start;
    best = std::min(best, seconds);
    state.SetIterationTime(seconds);
  }
  state.counters["GFLOPS"] = p.Flops() / best * 1e-9;
  state.counters["of_peak_%"] = 100 * p.Flops() * 1e-9 / best / FmaPeakGflops();
  state.counters["best_us"] = best * 1e6;
  state.SetLabel(std::string(kernel->name()) + " " + CpuTargetName());
}

constexpr Layout kRows = Layout::kRowMajor, kBlocks = Layout::kBlocked;
constexpr BenchCase kCases[] = {
    {"3x3_64_64_at_64", Which::kDirect, kBlocks, kBlocks, 64, 64, 64, 3},
    {"3x3_64_64_at_64_add", Which::kDirect, kBlocks, kBlocks, 64, 64, 64, 3, 1, 1, Combine::kAdd},
    {"3x3_64_64_at_256", Which::kDirect, kBlocks, kBlocks, 64, 64, 256, 3},
    {"3x3_48_48_at_128", Which::kDirect, kBlocks, kBlocks, 48, 48, 128, 3},
    {"3x3_192_32_at_64", Which::kDirect, kBlocks, kBlocks, 192, 32, 64, 3},
    {"3x3_256_256_at_16", Which::kDirect, kBlocks, kBlocks, 256, 256, 16, 3},
    {"strided_3x3_16_16_at_256", Which::kDirect, kBlocks, kBlocks, 16, 16, 256, 3, 2},
    {"strided_3x3_32_32_at_128", Which::kDirect, kBlocks, kBlocks, 32, 32, 128, 3, 2},
    {"strided_3x3_64_64_at_64", Which::kDirect, kBlocks, kBlocks, 64, 64, 64, 3, 2},
    {"strided_3x3_96_96_at_32", Which::kDirect, kBlocks, kBlocks, 96, 96, 32, 3, 2},
    {"1x1_16_72_at_64", Which::kDirect, kBlocks, kBlocks, 16, 72, 64, 1},
    {"1x1_24_96_at_32", Which::kDirect, kBlocks, kBlocks, 24, 96, 32, 1},
    {"1x1_88_24_at_32", Which::kDirect, kBlocks, kBlocks, 88, 24, 32, 1},
    {"1x1_40_240_at_16", Which::kDirect, kBlocks, kBlocks, 40, 240, 16, 1},
    {"1x1_240_40_at_16", Which::kDirect, kBlocks, kBlocks, 240, 40, 16, 1},
    {"1x1_96_96_at_16", Which::kDirect, kBlocks, kBlocks, 96, 96, 16, 1},
    {"1x1_64_64_at_64", Which::kDirect, kBlocks, kBlocks, 64, 64, 64, 1},
    {"1x1_192_48_at_256", Which::kDirect, kBlocks, kBlocks, 192, 48, 256, 1},
    {"first_3x3_3_16_at_255_stride2", Which::kDirect, kRows, kBlocks, 3, 16, 255, 3, 2},
    {"first_3x3_3_16_at_127_stride2", Which::kDirect, kRows, kBlocks, 3, 16, 127, 3, 2},
    {"first_3x3_3_64_at_64", Which::kDirect, kRows, kBlocks, 3, 64, 64, 3},
    {"first_3x3_3_64_at_256", Which::kDirect, kRows, kBlocks, 3, 64, 256, 3},
    {"first_3x3_11_16_at_256", Which::kDirect, kRows, kBlocks, 11, 16, 256, 3},
    {"last_3x3_64_48_at_128", Which::kDirect, kBlocks, kRows, 64, 48, 128, 3},
    {"last_3x3_64_3_at_256", Which::kDot, kBlocks, kRows, 64, 3, 256, 3},
    {"last_3x3_64_3_at_48", Which::kDot, kBlocks, kRows, 64, 3, 48, 3},
    {"last_1x1_96_4_at_16", Which::kDot, kBlocks, kRows, 96, 4, 16, 1},
    {"grouped_3x3_60_60_at_64", Which::kPlanar, kRows, kRows, 60, 60, 64, 3, 1, 10},
    {"depthwise_3x3_64_at_64", Which::kDepthwise, kBlocks, kBlocks, 64, 64, 64, 3, 1, 64},
    {"depthwise_3x3_16_at_16", Which::kDepthwise, kBlocks, kBlocks, 16, 16, 16, 3, 1, 16},
    {"depthwise_5x5_64_at_64", Which::kDepthwise, kBlocks, kBlocks, 64, 64, 64, 5, 1, 64},
    {"depthwise_5x5_64_at_16", Which::kDepthwise, kBlocks, kBlocks, 64, 64, 16, 5, 1, 64},
    {"depthwise_3x3_64_at_64_stride2", Which::kDepthwise, kBlocks, kBlocks, 64, 64, 64, 3, 2, 64},
    {"depthwise_5x5_64_at_64_stride2", Which::kDepthwise, kBlocks, kBlocks, 64, 64, 64, 5, 2, 64},
};

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  for (const tessera::BenchCase& c : tessera::kCases) {
    benchmark::RegisterBenchmark(c.name, [c](benchmark::State& s) { tessera::RunBench(s, c); })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::AddCustomContext("peak GFLOPS", std::to_string(tessera::FmaPeakGflops()));
  benchmark::RunSpecifiedBenchmarks();
}
