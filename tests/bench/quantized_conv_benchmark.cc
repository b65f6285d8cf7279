// Speed of the int8 convolution kernels on one thread, in multiply-adds times two a second.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "ops/quantized/quantized_conv.h"
#include "simd/cpu_target.h"

namespace tessera {
namespace {

struct BenchCase {
  const char* name;
  std::int64_t channels, out_channels, size, kernel, stride = 1;
  Activation activation = Activation::kRelu;
  bool addend = false, to_float = false;
};

QuantizedConvParams MakeParams(const BenchCase& c) {
  OpNode node{.name = c.name, .type = "QuantizedConv", .opset = 17, .attributes = {}};
  node.attributes.Set("strides", std::vector<std::int64_t>(2, c.stride));
  node.attributes.Set("pads", std::vector<std::int64_t>(4, c.kernel / 2));
  WriteEpilogue({.activation = c.activation, .alpha = 0.2f}, node.attributes);
  WriteQuantization({0.02f, 120}, "x", node.attributes);
  const bool relu = c.activation == Activation::kRelu;
  if (!c.to_float) WriteQuantization({0.5f, relu ? 0 : 120}, "y", node.attributes);
  return ReadQuantizedConv(node, {1, c.channels, c.size, c.size},
                           {c.out_channels, c.channels, c.kernel, c.kernel}, c.addend);
}

template <typename T>
Tensor Random(const Shape& shape, Layout layout) {
  std::mt19937 random(1);
  Tensor t(DTypeOf<T>(), shape, layout);
  std::generate_n(t.data<T>(), t.bytes() / sizeof(T), [&] {
    return std::is_same_v<T, float> ? static_cast<T>(0.01f) : static_cast<T>(random());
  });
  return t;
}

void RunBench(benchmark::State& state, const BenchCase& c) {
  const QuantizedConvParams p = MakeParams(c);
  const std::int64_t m = c.out_channels;
  const Shape y_shape = {1, m, p.conv.out_height, p.conv.out_width};
  PackCache packs;
  const QuantizedConvConstants constants = {
      std::make_shared<Tensor>(
          Random<std::int8_t>({m, c.channels, c.kernel, c.kernel}, Layout::kRowMajor)),
      std::make_shared<Tensor>(Random<float>({m}, Layout::kRowMajor)), nullptr,
      std::make_shared<Tensor>(Random<float>({m}, Layout::kRowMajor))};
  const Layout layout = !c.to_float         ? Layout::kChannelsLast
                        : m >= FloatLanes() ? Layout::kBlocked
                                            : Layout::kRowMajor;
  auto kernel = MakeQuantizedGemmConv(p, constants, layout, packs);
  state.SetLabel(std::string(kernel->name()));
  const Tensor x = Random<std::uint8_t>({1, c.channels, c.size, c.size}, Layout::kChannelsLast);
  const Tensor addend = Random<std::uint8_t>(y_shape, Layout::kChannelsLast);
  const Tensor y(c.to_float ? DType::kFloat32 : DType::kUint8, y_shape, layout);
  std::vector<TensorView> inputs(6);
  inputs[0] = x.view();
  if (c.addend) inputs[kQuantizedAddend] = addend.view();
  const std::vector<TensorView> outputs = {y.view()};
  AlignedBuffer scratch(kernel->ScratchBytesPerThread());
  SerialParallel serial;
  const RunContext run{inputs, outputs, serial, scratch.data(), scratch.size()};
  for (auto _ : state) kernel->Run(run);
  state.counters["GOP/s"] =
      benchmark::Counter(kernel->Flops() * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

constexpr BenchCase kCases[] = {
    {"3x3_64_64_256", 64, 64, 256, 3, 1, Activation::kPRelu},
    {"3x3_64_64_256_relu", 64, 64, 256, 3},
    {"3x3_48_48_256", 48, 48, 256, 3},
    {"3x3_3_64_256", 3, 64, 256, 3, 1, Activation::kPRelu},
    {"3x3_64_48_256_float", 64, 48, 256, 3, 1, Activation::kNone, false, true},
    {"3x3_s2_3_16_255", 3, 16, 255, 3, 2, Activation::kHardSwish},
    {"3x3_s2_3_16_255_relu", 3, 16, 255, 3, 2},
    {"1x1_16_72_64", 16, 72, 64, 1},
    {"1x1_24_64_64", 24, 64, 64, 1},
    {"1x1_64_24_64_add", 64, 24, 64, 1, 1, Activation::kNone, true},
    {"1x1_40_240_16", 40, 240, 16, 1},
    {"1x1_240_40_16", 240, 40, 16, 1, 1, Activation::kNone},
    {"1x1_96_24_32", 96, 24, 32, 1, 1, Activation::kNone},
    {"1x1_64_64_64", 64, 64, 64, 1},
    {"1x1_96_96_16", 96, 96, 16, 1},
    {"3x3_96_2_16_float", 96, 2, 16, 3, 1, Activation::kNone, false, true},
    {"3x3_96_4_16_float", 96, 4, 16, 3, 1, Activation::kNone, false, true},
    {"1x1_96_4_16_float", 96, 4, 16, 1, 1, Activation::kNone, false, true},
    {"1x1_96_1_16_float", 96, 1, 16, 1, 1, Activation::kNone, false, true},
};

const bool registered = [] {
  for (const BenchCase& c : kCases) {
    benchmark::RegisterBenchmark(c.name, RunBench, c)->Unit(benchmark::kMicrosecond);
  }
  return true;
}();

}  // namespace
}  // namespace tessera

BENCHMARK_MAIN();
