// Operators on uint8 in Layout::kChannelsLast beside convolutions, and to it and from it: what they
// take. One thread; sizes of trackers and super-resolution networks.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "ops/op.h"

namespace tessera {
namespace {

struct Input {
  DType dtype;
  Shape shape;
  Layout layout = Layout::kRowMajor;
};

struct Case {
  std::string name;
  OpNode node;
  std::vector<Input> inputs;
  std::vector<Tensor> constants;  // after these
};

Tensor RandomInput(const Input& input, std::minstd_rand& random) {
  Tensor t(input.dtype, input.shape, input.layout);
  if (input.dtype == DType::kFloat32) {
    std::uniform_real_distribution<float> uniform(-2, 2);
    for (std::size_t i = 0; i < t.bytes() / sizeof(float); ++i)
      t.data<float>()[i] = uniform(random);
  } else {
    for (std::size_t i = 0; i < t.bytes(); ++i) {
      t.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(random());
    }
  }
  return t;
}

void Run(benchmark::State& state, const Case& c) {
  const OpDef& def = *FindOp(c.node.type);
  std::minstd_rand random(1);
  std::vector<Tensor> tensors;
  std::vector<TensorInfo> inputs, outputs(1);
  for (const Input& input : c.inputs) {
    inputs.push_back({true, input.dtype, input.shape, input.layout, nullptr});
    tensors.push_back(RandomInput(input, random));
  }
  for (const Tensor& constant : c.constants) {
    inputs.push_back({true, constant.dtype(), constant.shape(), Layout::kRowMajor,
                      std::make_shared<const Tensor>(constant.Clone())});
    tensors.push_back(constant.Clone());
  }
  def.infer({c.node, inputs, outputs});
  LayoutChoice choice = def.layouts({c.node, inputs, outputs});
  choice.outputs.resize(1, Layout::kRowMajor);
  outputs[0].layout = choice.outputs[0];
  PackCache packs;
  const auto kernel = def.prepare({c.node, inputs, outputs, packs, /*reference=*/false});
  const Tensor out(outputs[0].dtype, outputs[0].shape, outputs[0].layout);
  std::memset(out.data<std::byte>(), 0, out.bytes());

  std::vector<TensorView> in_views;
  for (const Tensor& t : tensors) in_views.push_back(t.view());
  const TensorView out_views[] = {out.view()};
  const AlignedBuffer scratch(kernel->ScratchBytesPerThread());
  SerialParallel serial;
  double best = 1e9;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    kernel->Run({in_views, out_views, serial, scratch.data(), 0});
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    state.SetIterationTime(seconds.count());
    best = std::min(best, seconds.count());
  }
  state.counters["min_us"] = best * 1e6;
  state.SetLabel(std::string(kernel->name()));
}

template <typename T>
Tensor Scalar(T value) {
  return Tensor::FromVector<T>({}, {value});
}

std::vector<Case> MakeCases() {
  constexpr DType kFloat = DType::kFloat32, kByte = DType::kUint8;
  constexpr Layout kRows = Layout::kRowMajor, kBlocks = Layout::kBlocked;
  constexpr Layout kPixels = Layout::kChannelsLast;
  std::vector<Case> cases;
  using Values = std::vector<std::pair<const char*, Attributes::Value>>;
  const auto add = [&](std::string name, const char* type, std::vector<Input> inputs,
                       const Values& attributes = {}) -> Case& {
    OpNode node{"benchmark", type, 17, {}};
    for (const auto& [key, value] : attributes) node.attributes.Set(key, value);
    cases.push_back({std::move(name), std::move(node), std::move(inputs), {}});
    return cases.back();
  };
  const auto quantization = [](Case& c) {
    c.constants.push_back(Scalar(0.0117f));
    c.constants.push_back(Scalar<std::uint8_t>(131));
  };
  quantization(add("Quantize3x255x255", "QuantizeLinear", {{kFloat, {1, 3, 255, 255}, kRows}}));
  quantization(add("Quantize64x256x256", "QuantizeLinear", {{kFloat, {1, 64, 256, 256}, kBlocks}}));
  quantization(
      add("Quantize64x256x256Rows", "QuantizeLinear", {{kFloat, {1, 64, 256, 256}, kRows}}));
  quantization(add("Dequantize64x64x64", "DequantizeLinear", {{kByte, {1, 64, 64, 64}, kPixels}}));
  add("ByteTable96x64x64", "ByteTable", {{kByte, {1, 96, 64, 64}, kPixels}, {kByte, {256}, kRows}});
  const Values add_values = {{"a_scale", 0.02f}, {"b_scale", 0.03f}, {"y_scale", 0.04f}};
  add("Add24x64x64", "QuantizedAdd",
      {{kByte, {1, 24, 64, 64}, kPixels}, {kByte, {1, 24, 64, 64}, kPixels}}, add_values);
  add("Scale240x16x16", "QuantizedScale",
      {{kByte, {1, 240, 16, 16}, kPixels}, {kFloat, {1, 240, 1, 1}, kRows}},
      {{"x_scale", 0.02f}, {"y_scale", 0.04f}});
  add("GlobalAverage240x16x16", "QuantizedGlobalAverage", {{kByte, {1, 240, 16, 16}, kPixels}},
      {{"x_scale", 0.02f}});
  add("DepthToSpace4x48x256x256", "QuantizedDepthToSpace",
      {{kByte, {1, 48, 256, 256}, kPixels}, {kFloat, {1, 3, 256, 256}, kRows}},
      {{"blocksize", std::int64_t{4}}, {"mode", std::string("CRD")}, {"x_scale", 0.02f}});
  const Values channels = {{"axis", std::int64_t{1}}};
  add("Concat2x24x64x64", "Concat",
      {{kByte, {1, 24, 64, 64}, kPixels}, {kByte, {1, 24, 64, 64}, kPixels}}, channels);
  add("Concat2x48x64x64", "Concat",
      {{kByte, {1, 48, 64, 64}, kPixels}, {kByte, {1, 48, 64, 64}, kPixels}}, channels);
  Case& resize = add("NearestX2Of64x64x64", "Resize", {{kByte, {1, 64, 64, 64}, kPixels}});
  resize.constants.push_back(Tensor(DType::kFloat32, {0}));
  resize.constants.push_back(Tensor::FromVector<float>({4}, {1, 1, 2, 2}));
  add("MaxPool3x3Of64x64x64", "MaxPool", {{kByte, {1, 64, 64, 64}, kPixels}},
      {{"kernel_shape", std::vector<std::int64_t>{3, 3}},
       {"strides", std::vector<std::int64_t>{2, 2}}});
  add("DepthToSpaceBytes4x48x64x64", "DepthToSpace", {{kByte, {1, 48, 64, 64}, kPixels}},
      {{"blocksize", std::int64_t{4}}, {"mode", std::string("CRD")}});
  return cases;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  const std::vector<tessera::Case> cases = tessera::MakeCases();
  for (const tessera::Case& c : cases) {
    benchmark::RegisterBenchmark(c.name.c_str(), [&c](benchmark::State& state) {
      tessera::Run(state, c);
    })->UseManualTime();
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
