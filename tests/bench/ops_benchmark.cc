// Operators that only stream: what they take, and what share of the speed of memcpy (over the same
// number of bytes, read and written) they reach. One thread; sizes of super-resolution networks.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ops/op.h"

namespace tessera {
namespace {

// Bytes per second, read and written, of copies in the size of `bytes` altogether.
double CopyBandwidth(std::size_t bytes) {
  const AlignedBuffer from(bytes / 2), to(bytes / 2);
  std::memset(from.data(), 1, from.size());
  double best = 1e9;
  for (int i = 0; i < 20; ++i) {
    const auto start = std::chrono::steady_clock::now();
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::DoNotOptimize(*to.data());
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::min(best, seconds.count());
  }
  return static_cast<double>(bytes) / best;
}

struct Case {
  std::string name;
  OpNode node;
  std::vector<Shape> inputs;      // of tensors that arrive at run time, ...
  std::vector<Tensor> constants;  // ... followed by these
  bool blocked = true;
};

void Run(benchmark::State& state, const Case& c) {
  const OpDef& def = *FindOp(c.node.type);
  std::vector<Tensor> tensors;
  std::vector<TensorInfo> inputs, outputs(1);
  std::minstd_rand random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (const Shape& shape : c.inputs) {
    TensorInfo info{true, DType::kFloat32, shape, Layout::kRowMajor, nullptr};
    if (c.blocked) info.layout = Layout::kBlocked;
    inputs.push_back(info);
    Tensor t(DType::kFloat32, shape, info.layout);
    std::generate_n(t.data<float>(), t.bytes() / sizeof(float), [&] { return uniform(random); });
    tensors.push_back(std::move(t));
  }
  for (const Tensor& constant : c.constants) {
    inputs.push_back({true, constant.dtype(), constant.shape(), Layout::kRowMajor,
                      std::make_shared<const Tensor>(constant.Clone())});
    tensors.push_back(constant.Clone());
  }
  def.infer({c.node, inputs, outputs});
  LayoutChoice choice;
  if (def.layouts != nullptr) choice = def.layouts({c.node, inputs, outputs});
  choice.outputs.resize(1, Layout::kRowMajor);
  outputs[0].layout = choice.outputs[0];
  PackCache packs;
  const auto kernel = def.prepare({c.node, inputs, outputs, packs, /*reference=*/false});
  const Tensor out(outputs[0].dtype, outputs[0].shape, outputs[0].layout);

  std::vector<TensorView> in_views;
  for (const Tensor& t : tensors) in_views.push_back(t.view());
  const TensorView out_views[] = {out.view()};
  std::size_t bytes = out.bytes();
  for (std::size_t i = 0; i < c.inputs.size(); ++i) bytes += tensors[i].bytes();
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
  state.counters["min_ms"] = best * 1e3;
  state.counters["GBps"] = static_cast<double>(bytes) / best * 1e-9;
  state.counters["memcpy_share"] = static_cast<double>(bytes) / best / CopyBandwidth(bytes);
  state.SetLabel(std::string(kernel->name()));
}

OpNode Node(std::string type, Attributes attributes = {}, int opset = 17) {
  return {"benchmark", std::move(type), opset, std::move(attributes)};
}

Attributes Attrs(std::initializer_list<std::pair<const char*, Attributes::Value>> values) {
  Attributes a;
  for (const auto& [name, value] : values) a.Set(name, value);
  return a;
}

std::vector<Tensor> Constants(const Shape& shape, std::vector<float> values = {}) {
  values.resize(static_cast<std::size_t>(shape.NumElements()), 0.25f);
  std::vector<Tensor> constants;
  constants.push_back(Tensor::FromVector<float>(shape, values));
  return constants;
}

// Resize's inputs roi (empty) and scales.
std::vector<Tensor> Scales(float factor) {
  std::vector<Tensor> constants = Constants({0});
  constants.push_back(Tensor::FromVector<float>({4}, {1, 1, factor, factor}));
  return constants;
}

std::vector<Case> MakeCases() {
  const Shape features{1, 48, 256, 256};
  const std::int64_t four = 4, one = 1;
  std::vector<Case> cases;
  const auto add = [&](std::string name, OpNode node, std::vector<Shape> inputs,
                       std::vector<Tensor> constants = {}, bool blocked = true) {
    cases.push_back(
        {std::move(name), std::move(node), std::move(inputs), std::move(constants), blocked});
  };
  add("Relu", Node("Relu"), {features});
  add("Sigmoid", Node("Sigmoid"), {features});
  add("Tanh", Node("Tanh"), {features});
  add("Mul", Node("Mul"), {features, features});
  add("SubScalar", Node("Sub"), {features}, Constants({1}));
  add("PRelu", Node("PRelu"), {features}, Constants({48, 1, 1}));
  add("Concat4", Node("Concat", Attrs({{"axis", one}})), {features, features, features, features});
  add("AveragePool2x2",
      Node("AveragePool", Attrs({{"kernel_shape", std::vector<std::int64_t>{2, 2}},
                                 {"strides", std::vector<std::int64_t>{2, 2}}})),
      {features});
  add("NearestX2", Node("Resize"), {Shape{1, 48, 128, 128}}, Scales(2));
  add("DepthToSpace4Crd",
      Node("DepthToSpace", Attrs({{"blocksize", four}, {"mode", std::string("CRD")}})), {features});
  add("DepthToSpace4Dcr", Node("DepthToSpace", Attrs({{"blocksize", four}})), {features});
  add("DepthToSpace4CrdRows",
      Node("DepthToSpace", Attrs({{"blocksize", four}, {"mode", std::string("CRD")}})), {features},
      {}, false);
  add("DepthToSpace4CrdAdd",
      Node("FusedDepthToSpace", Attrs({{"blocksize", four}, {"mode", std::string("CRD")}})),
      {features, Shape{1, 3, 256, 256}});
  add("NearestX4Rows", Node("Resize"), {Shape{1, 3, 256, 256}}, Scales(4), false);
  add("LinearX4Rows", Node("Resize", Attrs({{"mode", std::string("linear")}})),
      {Shape{1, 3, 256, 256}}, Scales(4), false);
  add("LinearHalfRows", Node("Resize", Attrs({{"mode", std::string("linear")}})),
      {Shape{1, 3, 1024, 1024}}, Scales(0.5f), false);
  add("CubicHalfRows", Node("Resize", Attrs({{"mode", std::string("cubic")}})),
      {Shape{1, 3, 1024, 1024}}, Scales(0.5f), false);
  add("AddRows", Node("Add"), {Shape{1, 3, 1024, 1024}, Shape{1, 3, 1024, 1024}}, {}, false);
  return cases;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const std::vector<tessera::Case> cases = tessera::MakeCases();
  for (const tessera::Case& c : cases) {
    benchmark::RegisterBenchmark(c.name.c_str(), [&c](benchmark::State& s) { tessera::Run(s, c); })
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
