#include "engine/session.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <list>
#include <mutex>

#include "engine/cpu_budget.h"
#include "engine/infer.h"
#include "engine/onnx_import.h"
#include "engine/planner.h"
#include "engine/receptive_field.h"
#include "engine/thread_team.h"
#include "simd/cpu_target.h"
#include "simd/flush_denormals.h"

namespace tessera {
namespace {

// Everything that one run writes to, and the views of all steps into it.
struct RunState {
  AlignedBuffer arena, scratch;
  ThreadTeam team{AvailableCpus()};  // if the caller brings no threads
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
  state->arena = AlignedBuffer(plan.arena_bytes);
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

struct CachedPlan {
  Plan plan;
  std::mutex mutex;
  std::vector<std::unique_ptr<RunState>> idle;

  std::unique_ptr<RunState> Acquire() {
    {
      std::lock_guard lock(mutex);
      if (!idle.empty()) {
        std::unique_ptr<RunState> state = std::move(idle.back());
        idle.pop_back();
        return state;
      }
    }
    return MakeRunState(plan);
  }

  void Release(std::unique_ptr<RunState> state) {
    std::lock_guard lock(mutex);
    idle.push_back(std::move(state));
  }
};

bool IsFloat(DType t) { return t == DType::kFloat16 || t == DType::kFloat32; }

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

// Models may hold names with line breaks and terminal escapes; messages hold names.
std::string OneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
  return text;
}

void RunSteps(const std::string& file, const Plan& plan, RunState& state, Parallel& parallel,
              RunProfile* profile) {
  const std::size_t scratch =
      plan.scratch_bytes_per_thread * static_cast<std::size_t>(parallel.num_threads());
  if (state.scratch.size() < scratch) state.scratch = AlignedBuffer(scratch);
  for (const RunState::External& e : state.externals) {
    state.views[e.view].bytes = e.where.kind == BufferRef::Kind::kInput
                                    ? state.input_bytes[e.where.index]
                                    : state.output_bytes[e.where.index];
  }
  const FlushDenormals flush;
  const ParallelSection section(parallel);
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const auto elapsed_ms = [&] {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  };
  if (profile != nullptr) profile->steps.clear();
  std::span<const TensorView> views = state.views;
  for (const Step& step : plan.steps) {
    const auto inputs = views.first(step.inputs.size());
    const auto outputs = views.subspan(step.inputs.size(), step.outputs.size());
    const double start_ms = profile != nullptr ? elapsed_ms() : 0;
    try {
      step.kernel->Run(
          {inputs, outputs, parallel, state.scratch.data(), plan.scratch_bytes_per_thread});
    } catch (const Error& e) {  // about the values of a tensor
      throw Error(OneLine(StrCat(file, ": node '", step.name, "' (", step.type, "): ", e.what())));
    }
    if (profile != nullptr) {
      profile->steps.push_back(Describe(step));
      profile->steps.back().start_ms = start_ms;
      profile->steps.back().end_ms = elapsed_ms();
    }
    views = views.subspan(step.inputs.size() + step.outputs.size());
  }
}

// What `work` returns. Its Errors are one line, and lack of memory is an Error about the file.
template <typename Work>
auto WithErrors(const std::string& file, Work&& work) {
  try {
    return work();
  } catch (const Unsupported& e) {
    throw Unsupported(OneLine(e.what()));
  } catch (const Error& e) {
    throw Error(OneLine(e.what()));
  } catch (const std::bad_alloc&) {
    throw Error(file + ": not enough memory");
  }
}

void CheckCpuTarget() {
  if (MissingCpuTarget().empty()) return;
  std::string available;
  for (const std::string& target : AvailableCpuTargets()) available += " " + target;
  throw Error(StrCat("TESSERA_TARGET=", MissingCpuTarget(),
                     ": no such instruction set here; there are", available));
}

}  // namespace

std::vector<std::string> PassNames() {
  std::vector<std::string> names;
  for (const Pass& pass : AllPasses()) {
    if (pass.stage != PassStage::kRequired) names.emplace_back(pass.name);
  }
  return names;
}

struct Session::Impl {
  Impl(Graph imported, const SessionOptions& options)
      : graph(std::move(imported)),
        plan_options{DisabledPasses(options.disabled_passes), options.reference},
        max_plans(static_cast<std::size_t>(std::max(1, options.max_plans))) {
    CheckCpuTarget();
    RunPasses(graph, PassStage::kRequired, {});
    FoldConstants(graph);
    if (!options.reference) {
      RunPasses(graph, PassStage::kCanonical, plan_options.disabled_passes);
    }
  }

  Graph graph;  // canonical; plans work on copies
  PlanOptions plan_options;
  std::size_t max_plans;
  PackCache packs;
  std::mutex mutex;
  std::list<std::shared_ptr<CachedPlan>> plans;  // most recently used first

  // Index of the input called `name`.
  std::size_t InputIndex(std::string_view name) const {
    const auto it = std::find_if(graph.input_decls.begin(), graph.input_decls.end(),
                                 [&](const ValueDecl& decl) { return decl.name == name; });
    if (it == graph.input_decls.end()) {
      std::string names;
      for (const ValueDecl& d : graph.input_decls) names += (names.empty() ? "" : ", ") + d.name;
      throw Error(
          OneLine(StrCat(graph.file, ": no input is called '", name, "' (inputs: ", names, ")")));
    }
    return static_cast<std::size_t>(it - graph.input_decls.begin());
  }

  void CheckRanks(std::span<const Shape> shapes) const {
    Require(shapes.size() == graph.inputs.size(), graph.file, ": ", shapes.size(),
            " inputs given, the model has ", graph.inputs.size());
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const ValueDecl& decl = graph.input_decls[i];
      Require(!decl.has_shape || static_cast<int>(decl.dims.size()) == shapes[i].rank(), graph.file,
              ": input '", decl.name, "' has ", decl.dims.size(), " dimensions, got ", shapes[i]);
    }
  }

  std::shared_ptr<CachedPlan> PlanFor(std::span<const Shape> shapes) {
    std::lock_guard lock(mutex);
    for (auto it = plans.begin(); it != plans.end(); ++it) {
      if (std::equal(shapes.begin(), shapes.end(), (*it)->plan.input_shapes.begin(),
                     (*it)->plan.input_shapes.end())) {
        plans.splice(plans.begin(), plans, it);
        return plans.front();
      }
    }
    CheckRanks(shapes);
    auto cached = std::make_shared<CachedPlan>();
    cached->plan =
        WithErrors(graph.file, [&] { return MakePlan(graph, shapes, plan_options, packs); });
    plans.push_front(cached);
    if (plans.size() > max_plans) plans.pop_back();
    return cached;
  }
};

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;

std::shared_ptr<Session> Session::Load(const std::filesystem::path& path,
                                       const SessionOptions& options) {
  return WithErrors(path.string(), [&] {
    return std::shared_ptr<Session>(new Session(std::make_unique<Impl>(ImportOnnx(path), options)));
  });
}

std::shared_ptr<Session> Session::LoadFromMemory(std::span<const std::byte> model, std::string name,
                                                 const SessionOptions& options) {
  return WithErrors(name, [&] {
    return std::shared_ptr<Session>(
        new Session(std::make_unique<Impl>(ImportOnnx(model, name, {}), options)));
  });
}

const std::vector<ValueDecl>& Session::inputs() const { return impl_->graph.input_decls; }
const std::vector<ValueDecl>& Session::outputs() const { return impl_->graph.output_decls; }

std::vector<TensorView> Session::InferOutputs(std::span<const Shape> input_shapes) {
  return impl_->PlanFor(input_shapes)->plan.outputs;
}

std::size_t Session::ArenaBytes(std::span<const Shape> input_shapes) {
  return impl_->PlanFor(input_shapes)->plan.arena_bytes;
}

std::optional<ReceptiveField> Session::FindReceptiveField(std::span<const Shape> input_shapes) {
  impl_->CheckRanks(input_shapes);
  return WithErrors(impl_->graph.file, [&] {
    Graph graph = impl_->graph;
    InferShapes(graph, input_shapes);
    return tessera::FindReceptiveField(graph);
  });
}

void Session::Run(std::span<const NamedView> inputs, std::vector<Tensor>& outputs,
                  Parallel* parallel, RunProfile* profile) {
  const Graph& graph = impl_->graph;
  const std::size_t count = graph.inputs.size();
  // No allocation in the common case of few inputs.
  constexpr std::size_t kFew = 8;
  std::array<Shape, kFew> few_shapes;
  std::array<const TensorView*, kFew> few_views{};
  std::vector<Shape> many_shapes(count > kFew ? count : 0);
  std::vector<const TensorView*> many_views(count > kFew ? count : 0);
  const std::span<Shape> shapes =
      count > kFew ? std::span(many_shapes) : std::span(few_shapes).first(count);
  const std::span<const TensorView*> views =
      count > kFew ? std::span(many_views) : std::span(few_views).first(count);
  for (const NamedView& in : inputs) {
    const std::size_t i = impl_->InputIndex(in.name);
    Require(views[i] == nullptr, graph.file, ": input '", in.name, "' is given twice");
    const DType declared = graph.input_decls[i].dtype;
    Require(in.tensor.dtype == declared || (IsFloat(in.tensor.dtype) && IsFloat(declared)),
            graph.file, ": input '", in.name, "' is ", declared, ", got ", in.tensor.dtype);
    Require(in.tensor.layout == Layout::kRowMajor && in.tensor.present(), graph.file, ": input '",
            in.name, "' has to be a row-major tensor");
    views[i] = &in.tensor;
    shapes[i] = in.tensor.shape;
  }
  for (std::size_t i = 0; i < count; ++i) {
    Require(views[i] != nullptr, graph.file, ": input '", graph.input_decls[i].name,
            "' is missing");
  }

  const std::shared_ptr<CachedPlan> cached = impl_->PlanFor(shapes);
  const Plan& plan = cached->plan;
  std::unique_ptr<RunState> state;
  try {
    state = cached->Acquire();
    for (std::size_t i = 0; i < count; ++i) {
      state->input_bytes[i] = views[i]->bytes;
      if (views[i]->dtype == plan.input_types[i]) continue;
      Tensor& staged = state->staged_inputs[i];
      if (!staged.view().present()) staged = Tensor(plan.input_types[i], plan.input_shapes[i]);
      ConvertFloats(*views[i], staged.view());
      state->input_bytes[i] = staged.view().bytes;
    }
    outputs.resize(plan.outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const TensorView& want = plan.outputs[i];
      if (!outputs[i].view().present() || outputs[i].dtype() != want.dtype ||
          outputs[i].shape() != want.shape || outputs[i].layout() != Layout::kRowMajor) {
        outputs[i] = Tensor(want.dtype, want.shape);
      }
      state->output_bytes[i] = outputs[i].view().bytes;
    }
    RunSteps(graph.file, plan, *state, parallel != nullptr ? *parallel : state->team, profile);
  } catch (const std::bad_alloc&) {
    throw Error(StrCat(graph.file, ": not enough memory to run (", plan.arena_bytes >> 20,
                       " MB of buffers)"));
  }
  cached->Release(std::move(state));
}

}  // namespace tessera
