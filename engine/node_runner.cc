#include "engine/node_runner.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "engine/infer.h"
#include "engine/model_limits.h"
#include "engine/network.h"

namespace tessera {
namespace {

constexpr int kBodyPlans = 8;

// Inputs of a Loop, and of its body, before those that are carried from one iteration to the next.
constexpr std::size_t kLoopTripCount = 0, kLoopCondition = 1, kLoopCarried = 2;

Tensor Scalar(std::int64_t value) { return Tensor::FromVector<std::int64_t>({}, {value}); }
Tensor Scalar(bool value) { return Tensor::FromVector<bool>({}, {value}); }

// One tensor with a new first axis: an element for each iteration, all of one shape.
Tensor Stack(const std::vector<Tensor>& parts, DType dtype, const Shape& shape) {
  Shape stacked{static_cast<std::int64_t>(parts.size())};
  for (std::int64_t d : shape) stacked.PushBack(d);
  Tensor out(dtype, stacked);
  std::byte* to = out.data<std::byte>();
  for (const Tensor& part : parts) {
    Require(part.shape() == shape && part.dtype() == dtype, "a scan output is ", dtype, " ", shape,
            " in the first iteration and ", part.dtype(), " ", part.shape(), " in a later one");
    if (part.size() > 0) std::memcpy(to, part.data<std::byte>(), part.bytes());
    to += part.size() > 0 ? part.bytes() : 0;
  }
  return out;
}

}  // namespace

bool ConditionHolds(const TensorView& condition) {
  Require(condition.dtype == DType::kBool && condition.size() == 1,
          "the condition has to be one bool, got ", condition.dtype, " ", condition.shape);
  return *condition.data<const bool>();
}

NodeRunner::NodeRunner(const Graph& graph, const Node& node, const PlanOptions& options)
    : file_(graph.file), node_(node), reference_(options.reference) {
  if (node.bodies.empty()) return;
  packs_ = std::make_unique<PackCache>();
  std::size_t first_argument = node.op.type == "If" ? 1 : 0;
  for (const std::shared_ptr<const Graph>& body : node.bodies) {
    Graph network = *body;
    network.file = graph.file;
    network.inputs.clear();
    std::vector<std::size_t> arguments;
    for (std::size_t i = 0; i < body->inputs.size(); ++i) {
      // Of a Loop's own inputs, the first two are others inside, and the carried ones change.
      const ValueId outside = node.inputs[first_argument + i];
      const bool fixed = i >= node.num_own_body_inputs && graph.Constant(outside) != nullptr;
      if (fixed) {
        network.value(body->inputs[i]).info = graph.value(outside).info;
      } else {
        network.inputs.push_back(body->inputs[i]);
        arguments.push_back(i);
      }
    }
    FoldConstants(network);
    bodies_.push_back({std::make_unique<Network>(std::move(network), options, *packs_, kBodyPlans),
                       std::move(arguments)});
    if (node.op.type == "If") first_argument += body->inputs.size();
  }
}

NodeRunner::~NodeRunner() = default;
NodeRunner::NodeRunner(NodeRunner&&) noexcept = default;

std::vector<Tensor> NodeRunner::Run(std::span<const TensorInfo> inputs, Parallel& parallel,
                                    std::int64_t& iterations) const {
  return AtNode(
      file_, node_, [&] { return inputs; },
      [&] {
        if (bodies_.empty()) return RunOperator(inputs, parallel);
        return bodies_.size() == 2 ? RunIf(inputs, parallel, iterations)
                                   : RunLoop(inputs, parallel, iterations);
      });
}

std::vector<Tensor> NodeRunner::RunOperator(std::span<const TensorInfo> inputs,
                                            Parallel& parallel) const {
  std::vector<TensorInfo> infos(node_.outputs.size());
  node_.def->infer({node_.op, inputs, infos});
  std::vector<TensorView> input_views, output_views;
  for (const TensorInfo& info : inputs) {
    input_views.push_back(info.constant ? info.constant->view()
                                        : TensorView{info.dtype, info.layout, info.shape, nullptr});
  }
  std::vector<Tensor> outputs(infos.size());
  for (std::size_t i = 0; i < infos.size(); ++i) {
    if (node_.outputs[i] == kNoValue) {
      infos[i] = {};
    } else {
      Require(infos[i].present, "has no output ", i);
      outputs[i] = Tensor(infos[i].dtype, infos[i].shape);
    }
    output_views.push_back(outputs[i].view());
  }
  if (node_.def->is_view) {
    if (outputs[0].size() > 0) {
      std::memcpy(output_views[0].bytes, input_views[0].bytes, outputs[0].bytes());
    }
    return outputs;
  }
  PackCache packs;
  const std::unique_ptr<Kernel> kernel =
      node_.def->prepare({node_.op, inputs, infos, packs, reference_});
  const std::size_t stride = RoundUp(kernel->ScratchBytesPerThread(), kAlignment);
  const AlignedBuffer scratch(stride * static_cast<std::size_t>(parallel.num_threads()));
  kernel->Run({input_views, output_views, parallel, scratch.data(), stride});
  return outputs;
}

void NodeRunner::RunBody(const Body& body, std::span<const TensorView> inputs,
                         std::vector<Tensor>& outputs, Parallel& parallel,
                         std::int64_t& iterations) const {
  std::vector<TensorView> views;
  for (std::size_t i : body.arguments) views.push_back(inputs[i]);
  Profiler nobody(nullptr);
  body.network->Run(views, outputs, &parallel, nobody, iterations);
}

std::vector<Tensor> NodeRunner::RunIf(std::span<const TensorInfo> inputs, Parallel& parallel,
                                      std::int64_t& iterations) const {
  std::vector<TensorView> views;
  for (const TensorInfo& in : inputs) views.push_back(in.constant->view());
  const bool holds = ConditionHolds(views[0]);
  const std::size_t first = holds ? 1 : 1 + node_.bodies[0]->inputs.size();
  std::vector<Tensor> outputs;
  RunBody(bodies_[holds ? 0 : 1], std::span(views).subspan(first), outputs, parallel, iterations);
  return outputs;
}

std::vector<Tensor> NodeRunner::RunLoop(std::span<const TensorInfo> inputs, Parallel& parallel,
                                        std::int64_t& iterations) const {
  std::int64_t trips = std::numeric_limits<std::int64_t>::max();
  if (inputs[kLoopTripCount].present) {
    const std::vector<std::int64_t> value = ToInt64s(inputs[kLoopTripCount].constant->view());
    Require(value.size() == 1, "the trip count has to be one number");
    trips = value[0];
  }
  bool go_on = true;
  if (inputs[kLoopCondition].present) {
    go_on = ConditionHolds(inputs[kLoopCondition].constant->view());
  }

  const std::size_t carried = node_.num_own_body_inputs - kLoopCarried;
  const std::size_t scans = node_.outputs.size() - carried;
  std::vector<TensorView> views;
  for (const TensorInfo& in : inputs) {
    views.push_back(in.present ? in.constant->view() : TensorView{});
  }
  Tensor iteration = Scalar(std::int64_t{0}), condition = Scalar(true);
  views[kLoopTripCount] = iteration.view();
  views[kLoopCondition] = condition.view();

  std::vector<std::vector<Tensor>> scanned(scans);
  std::vector<Tensor> current, next;  // condition, carried values, scan outputs
  std::int64_t i = 0;
  for (; go_on && i < trips; ++i) {
    Require(++iterations <= kMaxLoopIterations,
            "the loop, with the others of the run, does not end within ", kMaxLoopIterations,
            " iterations");
    *iteration.data<std::int64_t>() = i;
    RunBody(bodies_[0], views, next, parallel, iterations);
    go_on = ConditionHolds(next[0].view());
    *condition.data<bool>() = go_on;
    for (std::size_t s = 0; s < scans; ++s) {
      scanned[s].push_back(std::exchange(next[1 + carried + s], {}));
    }
    std::swap(current, next);
    for (std::size_t c = 0; c < carried; ++c) views[kLoopCarried + c] = current[1 + c].view();
  }

  std::vector<Tensor> outputs;
  for (std::size_t c = 0; c < carried; ++c) {
    outputs.push_back(i > 0 ? std::move(current[1 + c])
                            : inputs[kLoopCarried + c].constant->Clone());
  }
  if (scans == 0) return outputs;
  std::vector<TensorView> infos;
  if (i == 0) {  // types and shapes of what there is nothing of
    std::vector<TensorView> arguments;
    for (std::size_t a : bodies_[0].arguments) arguments.push_back(views[a]);
    infos = bodies_[0].network->InferOutputs(arguments);
  }
  for (std::size_t s = 0; s < scans; ++s) {
    const TensorView info = i == 0 ? infos[1 + carried + s] : scanned[s][0].view();
    outputs.push_back(Stack(scanned[s], info.dtype, info.shape));
  }
  return outputs;
}

}  // namespace tessera
