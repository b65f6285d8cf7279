#include "engine/quantization/sample_runner.h"

#include <memory>

#include "engine/infer.h"
#include "engine/network.h"
#include "engine/node_runner.h"

namespace tessera {

void CheckSamples(const Graph& graph, std::span<const Sample> samples) {
  Require(!samples.empty(), graph.file, ": no samples to calibrate on");
  for (const Sample& sample : samples) {
    Require(sample.size() == graph.inputs.size(), graph.file, ": a sample of ", sample.size(),
            " inputs, the network has ", graph.inputs.size());
    for (std::size_t i = 0; i < sample.size(); ++i) {
      const ValueDecl& decl = graph.input_decls[i];
      Require(sample[i].view().present() && sample[i].dtype() == DType::kFloat32 &&
                  sample[i].layout() == Layout::kRowMajor,
              graph.file, ": a sample's '", decl.name, "' is no row-major float32 tensor");
      Require(!decl.has_shape || static_cast<int>(decl.dims.size()) == sample[i].shape().rank(),
              graph.file, ": input '", decl.name, "' has ", decl.dims.size(),
              " dimensions, a sample's is ", sample[i].shape());
    }
  }
}

NodeWalk::NodeWalk(const Graph& graph, std::span<const Sample> samples)
    : graph_(graph),
      last_reader_(graph.values.size(), 0),
      values_(samples.size(), Values(graph.values.size())) {
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (ValueId v : graph.nodes[n].inputs) {
      if (v != kNoValue) last_reader_[static_cast<std::size_t>(v)] = n;
    }
  }
  for (std::size_t s = 0; s < samples.size(); ++s) {
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      values_[s][static_cast<std::size_t>(graph.inputs[i])] =
          std::shared_ptr<const Tensor>(std::shared_ptr<void>(), &samples[s][i]);  // not owned
    }
  }
}

bool NodeWalk::Step(const InputVisitor& before, const OutputVisitor& after, Parallel& parallel) {
  if (next_ == graph_.nodes.size()) return false;
  const std::size_t n = next_++;
  const Node& node = graph_.nodes[n];
  std::vector<std::vector<TensorInfo>> inputs(values_.size());
  for (std::size_t s = 0; s < values_.size(); ++s) {
    for (ValueId v : node.inputs) {
      if (v == kNoValue || graph_.Constant(v) != nullptr) {
        inputs[s].push_back(v == kNoValue ? TensorInfo{} : graph_.value(v).info);
        continue;
      }
      const auto& t = values_[s][static_cast<std::size_t>(v)];
      inputs[s].push_back({true, t->dtype(), t->shape(), Layout::kRowMajor, t});
    }
  }
  if (before) before(node, inputs);
  const NodeRunner runner(graph_, node, {});
  std::vector<Outputs> outputs;
  for (const auto& in : inputs) outputs.push_back(runner.Run(in, parallel));
  if (after) after(node, outputs);
  for (std::size_t s = 0; s < values_.size(); ++s) {
    const auto value = [&](ValueId v) -> std::shared_ptr<const Tensor>& {
      return values_[s][static_cast<std::size_t>(v)];
    };
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      value(node.outputs[i]) = std::make_shared<const Tensor>(std::move(outputs[s][i]));
    }
    for (const auto* ids : {&node.inputs, &node.outputs}) {
      for (ValueId v : *ids) {
        if (v != kNoValue && last_reader_[static_cast<std::size_t>(v)] <= n) value(v).reset();
      }
    }
  }
  return true;
}

void RunNodes(const Graph& graph, std::span<const Sample> samples, Parallel& parallel,
              const InputVisitor& before, const OutputVisitor& after) {
  NodeWalk walk(graph, samples);
  while (walk.Step(before, after, parallel)) {
  }
}

std::vector<Outputs> RunSamples(const Graph& graph, std::span<const Sample> samples,
                                Parallel* parallel) {
  Graph canonical = graph;
  RunPasses(canonical, PassStage::kRequired, {});
  FoldConstants(canonical);
  RunPasses(canonical, PassStage::kCanonical, {});
  PackCache packs;
  Network network(std::move(canonical), {}, packs, /*max_plans=*/8);
  std::vector<Outputs> results(samples.size());
  Profiler profiler(nullptr);
  for (std::size_t s = 0; s < samples.size(); ++s) {
    std::vector<TensorView> inputs;
    for (const Tensor& t : samples[s]) inputs.push_back(t.view());
    network.Run(inputs, results[s], parallel, profiler);
    for (Tensor& t : results[s]) {
      if (t.dtype() == DType::kFloat16) t = Tensor::FromVector(t.shape(), ToFloats(t.view()));
    }
  }
  return results;
}

}  // namespace tessera
