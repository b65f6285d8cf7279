#include "engine/network.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "engine/cpu_budget.h"
#include "engine/infer.h"
#include "engine/node_runner.h"
#include "engine/thread_team.h"
#include "simd/flush_denormals.h"

namespace tessera {
namespace {

// Buffers that wait for a run with other inputs than the present one: so that a tracker's two
// shapes do not allocate, and that pictures of a hundred sizes do not take memory for eight.
constexpr std::size_t kMaxIdleBytes = std::size_t{64} << 20;

// Everything that one run of a plan writes to, and the views of all steps into it.
struct RunState {
  AlignedBuffer arena, scratch;
  std::size_t bytes() const { return arena.size() + scratch.size(); }
  std::unique_ptr<ThreadTeam> team;  // once a caller has brought no threads
  std::vector<TensorView> views;     // of all steps, inputs then outputs
  // Views that point to the caller's tensors, set anew for each run.
  struct External {
    std::size_t view;
    BufferRef where;
  };
  std::vector<External> externals;
  std::vector<Tensor> staged_inputs;  // float16 or float32 where the caller has the other
  std::vector<void*> input_bytes, output_bytes;
};

std::unique_ptr<RunState> MakeRunState(const Plan& plan) {
  auto state = std::make_unique<RunState>();
  // At least one byte, so that empty tensors are still "present".
  state->arena = AlignedBuffer(std::max<std::size_t>(1, plan.arena_bytes));
  for (const Step& step : plan.steps) {
    for (const auto* operands : {&step.inputs, &step.outputs}) {
      for (const Operand& operand : *operands) {
        TensorView view = operand.view;
        switch (operand.where.kind) {
          case BufferRef::Kind::kArena:
            view.bytes = state->arena.data() + operand.where.index;
            break;
          case BufferRef::Kind::kInput:
          case BufferRef::Kind::kOutput:
            state->externals.push_back({state->views.size(), operand.where});
            break;
          case BufferRef::Kind::kAbsent:
          case BufferRef::Kind::kConstant:
            break;
        }
        state->views.push_back(view);
      }
    }
  }
  state->staged_inputs.resize(plan.input_shapes.size());
  state->input_bytes.resize(plan.input_shapes.size());
  state->output_bytes.resize(plan.outputs.size());
  return state;
}

void ConvertFloats(const TensorView& from, const TensorView& to) {
  const std::int64_t n = from.size();
  if (from.dtype == DType::kFloat16) {
    for (std::int64_t i = 0; i < n; ++i) {
      to.data<float>()[i] = HalfToFloat(from.data<std::uint16_t>()[i]);
    }
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      to.data<std::uint16_t>()[i] = FloatToHalf(from.data<float>()[i]);
    }
  }
}

RunProfile::Step Describe(const Step& step) {
  RunProfile::Step out;
  out.name = step.name;
  out.type = step.type;
  out.kernel = step.kernel->name();
  if (!step.outputs.empty()) out.output = step.outputs[0].view;
  out.flops = step.kernel->Flops();
  for (const auto* operands : {&step.inputs, &step.outputs}) {
    for (const Operand& operand : *operands) {
      if (operand.where.kind == BufferRef::Kind::kAbsent) continue;
      out.bytes += StorageBytes(operand.view.dtype, operand.view.shape, operand.view.layout);
    }
  }
  return out;
}

// Binds the caller's tensors. Outputs that do not fit are replaced.
void Bind(const Plan& plan, RunState& state, std::span<const TensorView> inputs,
          std::vector<Tensor>& outputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    state.input_bytes[i] = inputs[i].bytes;
    if (inputs[i].dtype == plan.input_types[i]) continue;
    Tensor& staged = state.staged_inputs[i];
    if (!staged.view().present()) staged = Tensor(plan.input_types[i], plan.input_shapes[i]);
    ConvertFloats(inputs[i], staged.view());
    state.input_bytes[i] = staged.view().bytes;
  }
  outputs.resize(plan.outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const TensorView& want = plan.outputs[i];
    if (!outputs[i].view().present() || outputs[i].dtype() != want.dtype ||
        outputs[i].shape() != want.shape || outputs[i].layout() != Layout::kRowMajor) {
      outputs[i] = Tensor(want.dtype, want.shape);
    }
    state.output_bytes[i] = outputs[i].view().bytes;
  }
  for (const RunState::External& e : state.externals) {
    state.views[e.view].bytes = e.where.kind == BufferRef::Kind::kInput
                                    ? state.input_bytes[e.where.index]
                                    : state.output_bytes[e.where.index];
  }
}

void RunSteps(const std::string& file, const Plan& plan, RunState& state, Parallel& parallel,
              Profiler& profiler) {
  const std::size_t scratch =
      plan.scratch_bytes_per_thread * static_cast<std::size_t>(parallel.num_threads());
  if (state.scratch.size() < scratch) state.scratch = AlignedBuffer(scratch);
  const ParallelSection section(parallel);
  std::span<const TensorView> views = state.views;
  for (const Step& step : plan.steps) {
    const auto inputs = views.first(step.inputs.size());
    const auto outputs = views.subspan(step.inputs.size(), step.outputs.size());
    const double start_ms = profiler.enabled() ? profiler.ElapsedMs() : 0;
    try {
      step.kernel->Run(
          {inputs, outputs, parallel, state.scratch.data(), plan.scratch_bytes_per_thread});
    } catch (const Error& e) {  // about the values of a tensor
      throw Error(StrCat(file, ": node '", step.name, "' (", step.type, "): ", e.what()));
    }
    if (profiler.enabled()) profiler.Add(Describe(step), start_ms);
    views = views.subspan(step.inputs.size() + step.outputs.size());
  }
}

RunProfile::Step Describe(const Node& node, std::span<const TensorInfo> inputs,
                          std::span<const Tensor> outputs) {
  RunProfile::Step out;
  out.name = node.op.name;
  out.type = node.op.type;
  out.kernel = "late";
  if (outputs[0].view().present()) {
    out.output = outputs[0].view();
    out.output.bytes = nullptr;
  }
  for (const TensorInfo& in : inputs) out.bytes += in.present ? in.constant->bytes() : 0;
  for (const Tensor& t : outputs) out.bytes += t.view().present() ? t.bytes() : 0;
  return out;
}

Tensor Copy(const TensorView& view) {
  Tensor copy(view.dtype, view.shape);
  if (copy.size() > 0) std::memcpy(copy.data<std::byte>(), view.bytes, copy.bytes());
  return copy;
}

// Values that nodes of a list read and that none of them makes, constants aside.
std::vector<ValueId> ReadFromOutside(const Graph& graph, const std::vector<Node>& nodes) {
  std::set<ValueId> made, read;
  for (const Node& node : nodes) made.insert(node.outputs.begin(), node.outputs.end());
  for (const Node& node : nodes) {
    for (ValueId v : node.inputs) {
      if (v != kNoValue && !made.contains(v) && graph.Constant(v) == nullptr) read.insert(v);
    }
  }
  return {read.begin(), read.end()};
}

}  // namespace

Profiler::Profiler(RunProfile* profile)
    : profile_(profile), begin_(std::chrono::steady_clock::now()) {
  if (profile_ != nullptr) profile_->steps.clear();
}

double Profiler::ElapsedMs() const {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin_)
      .count();
}

void Profiler::Add(RunProfile::Step step, double start_ms) {
  step.end_ms = ElapsedMs();
  step.start_ms = start_ms;
  profile_->steps.push_back(std::move(step));
}

// What is made for one set of input types and shapes. First the plan runs; where that is not all,
// the nodes whose shapes depend on values that are there now, one by one; then the rest, which is
// a network of its own, whose inputs have known shapes by then.
struct Network::Program {
  std::vector<TensorView> inputs;  // no bytes
  Plan plan;

  // For several stages only. Values are numbered as in `graph`.
  Graph graph;                         // for its constants, inputs and outputs
  std::vector<ValueId> plan_outputs;   // that later stages or the caller read
  std::vector<NodeRunner> late_nodes;  // in any order
  std::unique_ptr<Network> rest;       // null: nothing is left

  std::mutex mutex;
  std::vector<std::unique_ptr<RunState>> idle;

  bool is_one_plan() const { return late_nodes.empty(); }

  bool Takes(std::span<const TensorView> given, bool of_any_type) const {
    return std::equal(given.begin(), given.end(), inputs.begin(), inputs.end(),
                      [&](const TensorView& a, const TensorView& b) {
                        return a.shape == b.shape && (of_any_type || a.dtype == b.dtype);
                      });
  }

  // Null if none is idle.
  std::unique_ptr<RunState> TakeIdle() {
    std::lock_guard lock(mutex);
    if (idle.empty()) return nullptr;
    std::unique_ptr<RunState> state = std::move(idle.back());
    idle.pop_back();
    return state;
  }

  // Drops idle states beyond `limit` bytes in all; returns what is left of the limit.
  std::size_t DropIdle(std::size_t limit) {
    std::lock_guard lock(mutex);
    std::erase_if(idle, [&](const std::unique_ptr<RunState>& state) {
      if (state->bytes() > limit) return true;
      limit -= state->bytes();
      return false;
    });
    return limit;
  }

  void Release(std::unique_ptr<RunState> state) {
    std::lock_guard lock(mutex);
    idle.push_back(std::move(state));
  }
};

Network::Network(Graph graph, PlanOptions options, PackCache& packs, int max_plans)
    : graph_(std::move(graph)),
      options_(std::move(options)),
      packs_(packs),
      max_plans_(static_cast<std::size_t>(std::max(1, max_plans))) {}

Network::~Network() = default;

std::shared_ptr<Network::Program> Network::ProgramFor(std::span<const TensorView> inputs) {
  std::lock_guard lock(mutex_);
  for (auto it = programs_.begin(); it != programs_.end(); ++it) {
    if ((*it)->Takes(inputs, /*of_any_type=*/!graph_.input_decls.empty())) {
      programs_.splice(programs_.begin(), programs_, it);
      return programs_.front();
    }
  }
  programs_.push_front(MakeProgram(inputs));
  if (programs_.size() > max_plans_) programs_.pop_back();
  return programs_.front();
}

std::shared_ptr<Network::Program> Network::MakeProgram(std::span<const TensorView> inputs) {
  auto program = std::make_shared<Program>();
  Graph graph = graph_;
  std::vector<TensorInfo> infos;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    program->inputs.push_back({inputs[i].dtype, Layout::kRowMajor, inputs[i].shape, nullptr});
    const DType dtype = graph.input_decls.empty() ? inputs[i].dtype : graph.input_decls[i].dtype;
    infos.push_back({true, dtype, inputs[i].shape, Layout::kRowMajor, nullptr});
  }
  InferShapes(graph, infos);
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const TensorInfo& info = graph.value(graph.outputs[i]).info;
    if (info.present) CheckOutputType(i, info.dtype);
  }
  if (ShapesAreKnown(graph)) {
    program->plan = MakePlan(std::move(graph), options_, packs_);
  } else {
    Split(std::move(graph), *program);
  }
  return program;
}

void Network::CheckOutputType(std::size_t i, DType dtype) const {
  if (graph_.output_decls.empty()) return;
  const ValueDecl& decl = graph_.output_decls[i];
  Require(dtype == decl.dtype, graph_.file, ": output '", decl.name, "' is ", dtype,
          ", declared as ", decl.dtype);
}

void Network::Split(Graph graph, Program& program) {
  std::vector<Node> first, late, rest;
  for (Node& node : graph.nodes) {
    const bool inputs_known = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
      return v == kNoValue || graph.value(v).info.present;
    });
    (ShapesAreKnown(graph, node) ? first : inputs_known ? late : rest).push_back(std::move(node));
  }
  graph.nodes.clear();
  graph.input_decls.clear();
  graph.output_decls.clear();

  std::set<ValueId> wanted(graph.outputs.begin(), graph.outputs.end());
  for (const auto* nodes : {&late, &rest}) {
    for (ValueId v : ReadFromOutside(graph, *nodes)) wanted.insert(v);
  }
  const auto made_and_wanted = [&](const std::vector<Node>& nodes) {
    std::vector<ValueId> ids;
    for (const Node& node : nodes) {
      for (ValueId v : node.outputs) {
        if (wanted.contains(v) && graph.Constant(v) == nullptr) ids.push_back(v);
      }
    }
    return ids;
  };

  for (const Node& node : late) program.late_nodes.emplace_back(graph, node, options_);
  if (!rest.empty()) {
    Graph network = graph;
    network.inputs = ReadFromOutside(graph, rest);
    network.outputs = made_and_wanted(rest);
    network.nodes = std::move(rest);
    program.rest = std::make_unique<Network>(std::move(network), options_, packs_,
                                             static_cast<int>(max_plans_));
  }
  Graph network = graph;
  network.outputs = program.plan_outputs = made_and_wanted(first);
  network.nodes = std::move(first);
  network.RemoveDeadNodes();
  program.plan = MakePlan(std::move(network), options_, packs_);
  program.graph = std::move(graph);
}

void Network::RunLater(Program& program, std::span<void* const> input_bytes,
                       std::vector<Tensor> known, std::vector<Tensor>& outputs, Parallel& parallel,
                       Profiler& profiler, std::int64_t& iterations) {
  const Graph& graph = program.graph;
  std::vector<std::shared_ptr<Tensor>> values(graph.values.size());
  const auto at = [&](ValueId v) -> std::shared_ptr<Tensor>& {
    return values[static_cast<std::size_t>(v)];
  };
  const auto keep = [&](const std::vector<ValueId>& ids, std::vector<Tensor>& tensors) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] != kNoValue) at(ids[i]) = std::make_shared<Tensor>(std::move(tensors[i]));
    }
  };
  const auto view = [&](ValueId v) -> TensorView {
    if (const Tensor* constant = graph.Constant(v)) return constant->view();
    if (at(v)) return at(v)->view();
    const auto i = static_cast<std::size_t>(std::find(graph.inputs.begin(), graph.inputs.end(), v) -
                                            graph.inputs.begin());
    return {program.plan.input_types[i], Layout::kRowMajor, program.plan.input_shapes[i],
            input_bytes[i]};
  };
  const auto info = [&](ValueId v) -> TensorInfo {
    if (v == kNoValue) return {};
    if (graph.Constant(v) != nullptr) return graph.value(v).info;
    if (!at(v)) at(v) = std::make_shared<Tensor>(Copy(view(v)));
    return {true, at(v)->dtype(), at(v)->shape(), Layout::kRowMajor, at(v)};
  };

  keep(program.plan_outputs, known);
  for (const NodeRunner& late : program.late_nodes) {
    const double start_ms = profiler.enabled() ? profiler.ElapsedMs() : 0;
    std::vector<TensorInfo> inputs;
    for (ValueId v : late.node().inputs) inputs.push_back(info(v));
    std::vector<Tensor> made = late.Run(inputs, parallel, iterations);
    if (profiler.enabled()) profiler.Add(Describe(late.node(), inputs, made), start_ms);
    keep(late.node().outputs, made);
  }
  if (program.rest) {
    std::vector<TensorView> inputs;
    for (ValueId v : program.rest->graph().inputs) inputs.push_back(view(v));
    std::vector<Tensor> made;
    program.rest->Run(inputs, made, &parallel, profiler, iterations);
    keep(program.rest->graph().outputs, made);
  }
  outputs.resize(graph.outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ValueId v = graph.outputs[i];
    CheckOutputType(i, view(v).dtype);
    const bool is_last = std::find(graph.outputs.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                   graph.outputs.end(), v) == graph.outputs.end();
    outputs[i] = at(v) && is_last ? std::move(*at(v)) : Copy(view(v));
  }
}

std::vector<TensorView> Network::InferOutputs(std::span<const TensorView> inputs) {
  const std::shared_ptr<Program> program = ProgramFor(inputs);
  Require(program->is_one_plan(), graph_.file,
          ": shapes depend on values that only the run knows, as those of node '",
          program->is_one_plan() ? "" : program->late_nodes[0].node().op.name, "' do");
  return program->plan.outputs;
}

RewriteCounts Network::PlanRewrites(std::span<const TensorView> inputs) {
  return ProgramFor(inputs)->plan.rewrites;
}

std::size_t Network::ArenaBytes(std::span<const TensorView> inputs) {
  return ProgramFor(inputs)->plan.arena_bytes;
}

void Network::DropIdleStates() {
  std::lock_guard lock(mutex_);
  std::size_t limit = kMaxIdleBytes;
  for (const std::shared_ptr<Program>& program : programs_) limit = program->DropIdle(limit);
}

void Network::Run(std::span<const TensorView> inputs, std::vector<Tensor>& outputs,
                  Parallel* parallel, Profiler& profiler, std::int64_t& iterations) {
  const std::shared_ptr<Program> program = ProgramFor(inputs);
  const Plan& plan = program->plan;
  const FlushDenormals flush;
  std::unique_ptr<RunState> state;
  try {
    state = program->TakeIdle();
    if (state == nullptr) {
      DropIdleStates();
      state = MakeRunState(plan);
    }
    if (parallel == nullptr && state->team == nullptr) {
      state->team = std::make_unique<ThreadTeam>(AvailableCpus());
    }
    Parallel& threads = parallel != nullptr ? *parallel : *state->team;
    if (program->is_one_plan()) {
      Bind(plan, *state, inputs, outputs);
      RunSteps(graph_.file, plan, *state, threads, profiler);
    } else {
      std::vector<Tensor> known;
      Bind(plan, *state, inputs, known);
      RunSteps(graph_.file, plan, *state, threads, profiler);
      RunLater(*program, state->input_bytes, std::move(known), outputs, threads, profiler,
               iterations);
    }
  } catch (const std::bad_alloc& e) {
    throw Error(StrCat(graph_.file, ": ", MemoryMessage(e), " to run (", plan.arena_bytes >> 20,
                       " MB of buffers)"));
  }
  program->Release(std::move(state));
}

}  // namespace tessera
