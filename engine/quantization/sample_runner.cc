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

void RunNodes(const Graph& graph, std::span<const Sample> samples, Parallel& parallel,
              const NodeVisitor& visit) {
  std::vector<std::size_t> last_reader(graph.values.size(), 0);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (ValueId v : graph.nodes[n].inputs) {
      if (v != kNoValue) last_reader[static_cast<std::size_t>(v)] = n;
    }
  }
  // values[sample][id]
  using Values = std::vector<std::shared_ptr<const Tensor>>;
  std::vector<Values> values(samples.size(), Values(graph.values.size()));
  for (std::size_t s = 0; s < samples.size(); ++s) {
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      // Not owned: samples outlive this.
      values[s][static_cast<std::size_t>(graph.inputs[i])] =
          std::shared_ptr<const Tensor>(std::shared_ptr<void>(), &samples[s][i]);
    }
  }
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const NodeRunner runner(graph, node, {});
    std::vector<Outputs> outputs(samples.size());
    for (std::size_t s = 0; s < samples.size(); ++s) {
      std::vector<TensorInfo> inputs;
      for (ValueId v : node.inputs) {
        if (v == kNoValue || graph.Constant(v) != nullptr) {
          inputs.push_back(v == kNoValue ? TensorInfo{} : graph.value(v).info);
          continue;
        }
        const auto& t = values[s][static_cast<std::size_t>(v)];
        inputs.push_back({true, t->dtype(), t->shape(), Layout::kRowMajor, t});
      }
      outputs[s] = runner.Run(inputs, parallel);
    }
    visit(node, outputs);
    for (std::size_t s = 0; s < samples.size(); ++s) {
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        if (node.outputs[i] == kNoValue) continue;
        values[s][static_cast<std::size_t>(node.outputs[i])] =
            std::make_shared<const Tensor>(std::move(outputs[s][i]));
      }
      for (const auto* ids : {&node.inputs, &node.outputs}) {
        for (ValueId v : *ids) {
          if (v != kNoValue && last_reader[static_cast<std::size_t>(v)] <= n) {
            values[s][static_cast<std::size_t>(v)].reset();
          }
        }
      }
    }
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
  }
  return results;
}

}  // namespace tessera
