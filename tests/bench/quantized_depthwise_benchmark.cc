// Speed of the depthwise convolutions of bytes on one thread, beside those of floats.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "ops/quantized/quantized_conv.h"
#include "simd/cpu_target.h"

namespace tessera {
namespace {

struct BenchCase {
  const char* name;
  std::int64_t channels, size, kernel, stride;
};

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The fastest run.
void Measure(benchmark::State& state, const Kernel& kernel, const Tensor& x, const Tensor& y) {
  const std::vector<TensorView> inputs = {x.view()};
  const std::vector<TensorView> outputs = {y.view()};
  AlignedBuffer scratch(kernel.ScratchBytesPerThread());
  SerialParallel serial;
  const RunContext run{inputs, outputs, serial, scratch.data(), scratch.size()};
  double best = 1e9;
  for (auto _ : state) {
    const double start = Seconds();
    kernel.Run(run);
    const double seconds = Seconds() - start;
    best = std::min(best, seconds);
    state.SetIterationTime(seconds);
  }
  state.counters["best_us"] = best * 1e6;
  state.counters["GOPS"] = kernel.Flops() / best * 1e-9;
  state.SetLabel(std::string(kernel.name()) + " " + CpuTargetName());
}

Tensor Filled(DType type, const Shape& shape, Layout layout) {
  Tensor t(type, shape, layout);
  if (type == DType::kFloat32) {
    std::fill_n(t.data<float>(), t.bytes() / sizeof(float), 0.01f);
  } else {
    std::fill_n(t.data<std::uint8_t>(), t.bytes(), std::uint8_t{3});
  }
  return t;
}

void RunBench(benchmark::State& state, const BenchCase& c, bool quantized) {
  OpNode node{.name = c.name, .type = "QuantizedConv", .opset = 17, .attributes = {}};
  node.attributes.Set("strides", std::vector<std::int64_t>(2, c.stride));
  node.attributes.Set("pads", std::vector<std::int64_t>(4, c.kernel / 2));
  node.attributes.Set("group", c.channels);
  WriteEpilogue({.activation = Activation::kRelu}, node.attributes);
  if (quantized) WriteQuantization({0.1f, 0}, "y", node.attributes);
  const Shape x{1, c.channels, c.size, c.size}, w{c.channels, 1, c.kernel, c.kernel};
  const QuantizedConvParams p = ReadQuantizedConv(node, x, w, false);
  const Shape y{1, p.conv.out_channels, p.conv.out_height, p.conv.out_width};
  const auto constant = [](DType type, const Shape& shape) {
    return std::make_shared<Tensor>(Filled(type, shape, Layout::kRowMajor));
  };
  PackCache packs;
  if (quantized) {
    const auto kernel = MakeQuantizedDepthwiseConv(
        p, {constant(DType::kInt8, w), constant(DType::kFloat32, {c.channels}), nullptr, nullptr},
        packs);
    Measure(state, *kernel, Filled(DType::kUint8, x, Layout::kChannelsLast),
            Filled(DType::kUint8, y, Layout::kChannelsLast));
  } else {
    const auto kernel = MakeDepthwiseConv(
        p.conv, {constant(DType::kFloat32, w), constant(DType::kFloat32, {c.channels}), nullptr},
        packs);
    Measure(state, *kernel, Filled(DType::kFloat32, x, Layout::kBlocked),
            Filled(DType::kFloat32, y, Layout::kBlocked));
  }
}

constexpr BenchCase kCases[] = {
    {"3x3_96_at_64", 96, 64, 3, 1},           {"3x3_64_at_64", 64, 64, 3, 1},
    {"5x5_240_at_16", 240, 16, 5, 1},         {"3x3_72_at_64_stride2", 72, 64, 3, 2},
    {"3x3_96_at_128_stride2", 96, 128, 3, 2}, {"5x5_144_at_64_stride2", 144, 64, 5, 2},
    {"3x3_16_at_128", 16, 128, 3, 1},
};

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  using namespace tessera;
  for (const BenchCase& c : kCases) {
    for (const bool quantized : {false, true}) {
      const std::string name = std::string(c.name) + (quantized ? "_int8" : "_fp32");
      benchmark::RegisterBenchmark(
          name.c_str(), [c, quantized](benchmark::State& s) { RunBench(s, c, quantized); })
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
