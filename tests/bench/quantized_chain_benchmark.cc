// Speed of inverted bottlenecks of bytes on one thread: their convolutions one after the other,
// two of them together, and all in one kernel (ops/quantized/quantized_conv_chain.h).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "ops/quantized/quantized_conv_chain.h"
#include "simd/cpu_target.h"

namespace tessera {
namespace {

struct Bottleneck {
  const char* name;
  std::int64_t in, hidden, out, size, kernel, stride;
};

// Of models/siamese.cc and of NanoTrack.
constexpr Bottleneck kBottlenecks[] = {
    {"16_96_24_at_128_3x3_s2", 16, 96, 24, 128, 3, 2},
    {"24_72_24_at_64_3x3", 24, 72, 24, 64, 3, 1},
    {"24_144_32_at_64_5x5_s2", 24, 144, 32, 64, 5, 2},
    {"32_96_32_at_32_3x3", 32, 96, 32, 32, 3, 1},
    {"32_192_32_at_32_5x5", 32, 192, 32, 32, 5, 1},
    {"64_384_64_at_16_5x5", 64, 384, 64, 16, 5, 1},
};

// Which convolutions are one kernel: the first how many, then how many.
struct Cut {
  const char* name;
  std::vector<std::size_t> lengths;
};
const Cut kCuts[] = {
    {"each", {1, 1, 1}}, {"first_two", {2, 1}}, {"last_two", {1, 2}}, {"all", {3}}};

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Layers {
  std::vector<QuantizedConvParams> params;
  std::vector<QuantizedConvConstants> constants;
};

Layers MakeLayers(const Bottleneck& b) {
  Layers layers;
  std::mt19937 random(1);
  Shape x{1, b.in, b.size, b.size};
  const auto add = [&](std::int64_t out, std::int64_t groups, std::int64_t kernel,
                       std::int64_t stride, Activation activation) {
    OpNode node{.name = b.name, .type = "QuantizedConv", .opset = 17, .attributes = {}};
    node.attributes.Set("strides", std::vector<std::int64_t>(2, stride));
    node.attributes.Set("pads", std::vector<std::int64_t>(4, kernel / 2));
    node.attributes.Set("group", groups);
    WriteEpilogue({.activation = activation}, node.attributes);
    const bool relu = activation == Activation::kRelu;
    WriteQuantization({0.02f, layers.params.empty() ? 120 : 0}, "x", node.attributes);
    WriteQuantization({0.02f, relu ? 0 : 120}, "y", node.attributes);
    Tensor w(DType::kInt8, {out, x[1] / groups, kernel, kernel}), scale(DType::kFloat32, {out});
    for (auto& v : w.values<std::int8_t>()) v = static_cast<std::int8_t>(random());
    for (auto& v : scale.values<float>()) v = 0.001f;
    layers.params.push_back(ReadQuantizedConv(node, x, w.shape(), false));
    layers.constants.push_back({std::make_shared<Tensor>(std::move(w)),
                                std::make_shared<Tensor>(std::move(scale)), nullptr, nullptr});
    const ConvParams& p = layers.params.back().conv;
    x = {1, p.out_channels, p.out_height, p.out_width};
  };
  add(b.hidden, 1, 1, 1, Activation::kRelu);
  add(b.hidden, b.hidden, b.kernel, b.stride, Activation::kRelu);
  add(b.out, 1, 1, 1, Activation::kNone);
  return layers;
}

std::unique_ptr<Kernel> MakeSingle(const QuantizedConvParams& p, const QuantizedConvConstants& c,
                                   PackCache& packs) {
  if (p.conv.groups > 1) return MakeQuantizedDepthwiseConv(p, c, packs);
  return MakeQuantizedGemmConv(p, c, Layout::kChannelsLast, packs);
}

void RunBench(benchmark::State& state, const Bottleneck& b, const Cut& cut) {
  const Layers layers = MakeLayers(b);
  PackCache packs;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<Tensor> tensors;
  tensors.emplace_back(DType::kUint8, Shape{1, b.in, b.size, b.size}, Layout::kChannelsLast);
  std::fill_n(tensors[0].data<std::uint8_t>(), tensors[0].bytes(), std::uint8_t{130});
  std::size_t first = 0, scratch_bytes = 0;
  double flops = 0;
  std::string names;
  for (const std::size_t length : cut.lengths) {
    const std::span params(layers.params.data() + first, length);
    const std::span constants(layers.constants.data() + first, length);
    kernels.push_back(length == 1 ? MakeSingle(params[0], constants[0], packs)
                                  : MakeQuantizedChain(params, constants, packs));
    const ConvParams& p = params.back().conv;
    tensors.emplace_back(DType::kUint8, Shape{1, p.out_channels, p.out_height, p.out_width},
                         Layout::kChannelsLast);
    first += length;
    scratch_bytes = std::max(scratch_bytes, kernels.back()->ScratchBytesPerThread());
    flops += kernels.back()->Flops();
    names += std::string(kernels.back()->name()) + " ";
  }
  AlignedBuffer scratch(scratch_bytes);
  SerialParallel serial;
  std::vector<double> times;
  std::vector<double> shares(kernels.size(), 1e9);
  for (auto _ : state) {
    const double start = Seconds();
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const double begin = Seconds();
      const std::vector<TensorView> inputs = {tensors[i].view(), TensorView{}};
      const std::vector<TensorView> outputs = {tensors[i + 1].view()};
      kernels[i]->Run({inputs, outputs, serial, scratch.data(), scratch.size()});
      shares[i] = std::min(shares[i], Seconds() - begin);
    }
    times.push_back(Seconds() - start);
    state.SetIterationTime(times.back());
  }
  std::sort(times.begin(), times.end());
  state.counters["best_us"] = times.front() * 1e6;
  state.counters["tenth_us"] = times[times.size() / 10] * 1e6;  // faster than 90 % of the runs
  state.counters["GOPS"] = flops / times.front() * 1e-9;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    state.counters["kernel" + std::to_string(i) + "_us"] = shares[i] * 1e6;
  }
  state.SetLabel(names + CpuTargetName());
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  using namespace tessera;
  for (const Bottleneck& b : kBottlenecks) {
    for (const Cut& cut : kCuts) {
      const std::string name = std::string(b.name) + "/" + cut.name;
      benchmark::RegisterBenchmark(name.c_str(),
                                   [&b, &cut](benchmark::State& s) { RunBench(s, b, cut); })
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond);
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
