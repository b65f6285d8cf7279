#include "engine/session.h"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "engine/blend.h"
#include "engine/infer.h"
#include "engine/memory_budget.h"
#include "engine/model_file.h"
#include "engine/network.h"
#include "engine/onnx_import.h"
#include "engine/passes.h"
#include "engine/receptive_field.h"
#include "engine/split.h"
#include "simd/cpu_target.h"

namespace tessera {
namespace {

bool IsFloat(DType t) { return t == DType::kFloat16 || t == DType::kFloat32; }

// Models may hold names with line breaks and terminal escapes; messages hold names.
std::string OneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
  return text;
}

// What `work` returns. Its Errors are one line, and lack of memory is an Error about the file; and
// AlignedBuffers keep to `memory` bytes.
template <typename Work>
auto WithErrors(const std::string& file, std::size_t memory, Work&& work) {
  const MemoryScope scope(memory);
  try {
    return work();
  } catch (const Unsupported& e) {
    throw Unsupported(OneLine(e.what()));
  } catch (const Error& e) {
    throw Error(OneLine(e.what()));
  } catch (const std::bad_alloc& e) {
    throw Error(StrCat(file, ": ", MemoryMessage(e)));
  } catch (const std::length_error&) {  // of a vector that could never be that long
    throw Error(StrCat(file, ": not enough memory"));
  }
}

std::size_t MaxMemory(const SessionOptions& options) {
  if (options.max_memory != 0) return options.max_memory;
  const std::size_t outer = MemoryScope::Allowed();
  return outer != 0 ? outer : DefaultMaxMemory();
}

// The same for what the options allow.
template <typename Work>
auto WithOptions(const std::string& file, const SessionOptions& options, Work&& work) {
  return WithErrors(file, MemoryScope::Allowed(), [&] {
    const MemoryScope scope(MaxMemory(options));
    return work();
  });
}

std::string NameOf(const ModelSource& source) {
  const auto* path = std::get_if<std::filesystem::path>(&source);
  return path != nullptr ? path->string() : std::get<ModelBytes>(source).name;
}

Graph ImportSource(const ModelSource& source) {
  return WithErrors(NameOf(source), MemoryScope::Allowed(), [&] {
    if (const auto* path = std::get_if<std::filesystem::path>(&source)) return ImportModel(*path);
    const ModelBytes& bytes = std::get<ModelBytes>(source);
    return ImportOnnx(bytes.onnx, bytes.name, {});
  });
}

void CheckCpuTarget() {
  if (MissingCpuTarget().empty()) return;
  std::string available;
  for (const std::string& target : AvailableCpuTargets()) available += " " + target;
  throw Error(StrCat("TESSERA_TARGET=", MissingCpuTarget(),
                     ": no such instruction set here; there are", available));
}

}  // namespace

std::size_t DefaultMaxMemory() { return (AllocatedMemory() / 5 + AvailableMemory() / 5) * 4; }

std::vector<std::string> PassNames() {
  std::vector<std::string> names;
  for (const Pass& pass : AllPasses()) {
    if (pass.stage != PassStage::kRequired) names.emplace_back(pass.name);
  }
  return names;
}

struct Session::Impl {
  // Of a graph as it was imported.
  static std::unique_ptr<Impl> Make(Graph graph, const SessionOptions& options) {
    RewriteCounts rewrites;
    graph = Canonical(std::move(graph), options, rewrites);
    auto impl = std::make_unique<Impl>(
        std::move(graph), PlanOptions{DisabledPasses(options.disabled_passes), options.reference},
        options.max_plans, std::make_shared<PackCache>());
    impl->rewrites = std::move(rewrites);
    return impl;
  }

  Impl(Graph canonical, const PlanOptions& plan_options, int most_plans,
       std::shared_ptr<PackCache> shared_packs)
      : plan_options(plan_options),
        max_plans(most_plans),
        packs(std::move(shared_packs)),
        network(std::move(canonical), plan_options, *packs, max_plans) {}

  static Graph Canonical(Graph graph, const SessionOptions& options, RewriteCounts& rewrites) {
    CheckCpuTarget();
    const auto disabled = DisabledPasses(options.disabled_passes);
    RunPasses(graph, PassStage::kRequired, {});
    if (!options.reference) {
      FoldIntegerConstants(graph);
      RunPasses(graph, PassStage::kQuantized, disabled, &rewrites);
    }
    FoldConstants(graph);
    if (!options.reference) RunPasses(graph, PassStage::kCanonical, disabled, &rewrites);
    return graph;
  }

  const PlanOptions plan_options;
  const int max_plans;
  // That of the scope that this is made in, which is the whole's for a part.
  const std::size_t memory = MemoryScope::Allowed();
  RewriteCounts rewrites;                  // of the passes after import
  const std::shared_ptr<PackCache> packs;  // those of a part are the whole's
  bool fixed_shapes = false;               // takes inputs of the declared shapes only
  Network network;

  const Graph& graph() const { return network.graph(); }

  // Index of the input called `name`.
  std::size_t InputIndex(std::string_view name) const {
    const std::vector<ValueDecl>& decls = graph().input_decls;
    const auto it = std::find_if(decls.begin(), decls.end(),
                                 [&](const ValueDecl& decl) { return decl.name == name; });
    if (it == decls.end()) {
      std::string names;
      for (const ValueDecl& d : decls) names += (names.empty() ? "" : ", ") + d.name;
      throw Error(
          OneLine(StrCat(graph().file, ": no input is called '", name, "' (inputs: ", names, ")")));
    }
    return static_cast<std::size_t>(it - decls.begin());
  }

  // A part of the network, for the shapes that its inputs are declared with.
  std::shared_ptr<Session> Part(Graph part) const {
    auto impl = std::make_unique<Impl>(std::move(part), plan_options, max_plans, packs);
    impl->fixed_shapes = true;
    return std::shared_ptr<Session>(new Session(std::move(impl)));
  }

  void CheckShape(std::size_t i, const Shape& shape) const {
    const ValueDecl& decl = graph().input_decls[i];
    if (fixed_shapes) {
      Require(std::equal(shape.begin(), shape.end(), decl.dims.begin(), decl.dims.end()),
              graph().file, ": input '", decl.name, "' of a part of the network is ",
              Shape(decl.dims), ", got ", shape);
    }
    Require(!decl.has_shape || static_cast<int>(decl.dims.size()) == shape.rank(), graph().file,
            ": input '", decl.name, "' has ", decl.dims.size(), " dimensions, got ", shape);
  }

  void CheckShapes(std::span<const Shape> shapes) const {
    Require(shapes.size() == graph().inputs.size(), graph().file, ": ", shapes.size(),
            " inputs given, the model has ", graph().inputs.size());
    for (std::size_t i = 0; i < shapes.size(); ++i) CheckShape(i, shapes[i]);
  }

  // Inputs of these shapes, without bytes.
  std::vector<TensorView> Views(std::span<const Shape> shapes) const {
    CheckShapes(shapes);
    std::vector<TensorView> views;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      views.push_back({graph().input_decls[i].dtype, Layout::kRowMajor, shapes[i], nullptr});
    }
    return views;
  }
};

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;

std::shared_ptr<Session> Session::Load(const std::filesystem::path& path,
                                       const SessionOptions& options) {
  return WithOptions(path.string(), options, [&] {
    return std::shared_ptr<Session>(new Session(Impl::Make(ImportModel(path), options)));
  });
}

std::shared_ptr<Session> Session::LoadFromMemory(std::span<const std::byte> model, std::string name,
                                                 const SessionOptions& options) {
  return WithOptions(name, options, [&] {
    return std::shared_ptr<Session>(new Session(Impl::Make(ImportOnnx(model, name, {}), options)));
  });
}

std::shared_ptr<Session> Session::LoadBlend(const ModelSource& a, const ModelSource& b, float t,
                                            const SessionOptions& options) {
  return WithOptions(NameOf(a), options, [&] {
    Graph graph = ImportSource(a);
    const Graph other = ImportSource(b);
    return std::shared_ptr<Session>(
        new Session(Impl::Make(BlendWeights(std::move(graph), other, t), options)));
  });
}

const std::string& Session::name() const { return impl_->graph().file; }

std::int64_t Session::num_weights() const {
  std::int64_t count = 0;
  for (const Value& value : impl_->graph().values) {
    if (value.info.constant) count += value.info.constant->size();
  }
  return count;
}

std::size_t Session::WeightBytes() const {
  std::size_t bytes = 0;
  for (const Value& value : impl_->graph().values) {
    if (value.info.constant) bytes += value.info.constant->bytes();
  }
  return bytes;
}

std::size_t Session::PackedBytes() const { return impl_->packs->Bytes(); }

const std::vector<ValueDecl>& Session::inputs() const { return impl_->graph().input_decls; }
const std::vector<ValueDecl>& Session::outputs() const { return impl_->graph().output_decls; }

std::vector<TensorView> Session::InferOutputs(std::span<const Shape> input_shapes) {
  return WithErrors(impl_->graph().file, impl_->memory,
                    [&] { return impl_->network.InferOutputs(impl_->Views(input_shapes)); });
}

std::vector<PassCount> Session::PassCounts(std::span<const Shape> input_shapes) {
  RewriteCounts counts = WithErrors(impl_->graph().file, impl_->memory, [&] {
    return impl_->network.PlanRewrites(impl_->Views(input_shapes));
  });
  counts.insert(impl_->rewrites.begin(), impl_->rewrites.end());
  std::vector<PassCount> list;
  for (const Pass& pass : AllPasses()) {
    if (pass.stage == PassStage::kRequired) continue;
    const auto it = counts.find(pass.name);
    list.push_back(
        {std::string(pass.name), std::string(pass.what), it == counts.end() ? 0 : it->second});
  }
  return list;
}

std::size_t Session::ArenaBytes(std::span<const Shape> input_shapes) {
  return WithErrors(impl_->graph().file, impl_->memory,
                    [&] { return impl_->network.ArenaBytes(impl_->Views(input_shapes)); });
}

Session::Parts Session::Split(std::string_view input, std::span<const Shape> input_shapes) {
  impl_->CheckShapes(input_shapes);
  const std::size_t index = impl_->InputIndex(input);
  return WithErrors(impl_->graph().file, impl_->memory, [&] {
    Graph graph = impl_->graph();
    InferShapes(graph, input_shapes);
    GraphParts parts = SplitAfterInput(graph, index);
    return Parts{impl_->Part(std::move(parts.first)), impl_->Part(std::move(parts.rest))};
  });
}

std::optional<ReceptiveField> Session::FindReceptiveField(std::span<const Shape> input_shapes) {
  impl_->CheckShapes(input_shapes);
  const auto field_at = [&](std::span<const Shape> shapes) -> std::optional<ReceptiveField> {
    Graph graph = impl_->graph();
    InferShapes(graph, shapes);
    if (!ShapesAreKnown(graph)) return std::nullopt;
    return tessera::FindReceptiveField(graph);
  };
  return WithErrors(impl_->graph().file, impl_->memory, [&]() -> std::optional<ReceptiveField> {
    const std::optional<ReceptiveField> field = field_at(input_shapes);
    if (!field || !ResizesToSizes(impl_->graph())) return field;
    // Sizes may follow the input's or not; those that do scale a slightly larger input alike.
    std::vector<Shape> larger(input_shapes.begin(), input_shapes.end());
    larger[0][2] += field->height.alignment;
    larger[0][3] += field->width.alignment;
    try {
      return field_at(larger) == field ? field : std::nullopt;
    } catch (const Error&) {
      return std::nullopt;
    }
  });
}

void Session::Run(std::span<const NamedView> inputs, std::vector<Tensor>& outputs,
                  Parallel* parallel, RunProfile* profile) {
  const Graph& graph = impl_->graph();
  const std::size_t count = graph.inputs.size();
  // No allocation in the common case of few inputs.
  constexpr std::size_t kFew = 8;
  std::array<TensorView, kFew> few_views;
  std::vector<TensorView> many_views(count > kFew ? count : 0);
  const std::span<TensorView> views =
      count > kFew ? std::span(many_views) : std::span(few_views).first(count);
  for (const NamedView& in : inputs) {
    const std::size_t i = impl_->InputIndex(in.name);
    Require(!views[i].present(), graph.file, ": input '", in.name, "' is given twice");
    const DType declared = graph.input_decls[i].dtype;
    Require(in.tensor.dtype == declared || (IsFloat(in.tensor.dtype) && IsFloat(declared)),
            graph.file, ": input '", in.name, "' is ", declared, ", got ", in.tensor.dtype);
    Require(in.tensor.layout == Layout::kRowMajor && in.tensor.present(), graph.file, ": input '",
            in.name, "' has to be a row-major tensor");
    impl_->CheckShape(i, in.tensor.shape);
    views[i] = in.tensor;
  }
  for (std::size_t i = 0; i < count; ++i) {
    Require(views[i].present(), graph.file, ": input '", graph.input_decls[i].name, "' is missing");
  }
  WithErrors(graph.file, impl_->memory, [&] {
    Profiler profiler(profile);
    impl_->network.Run(views, outputs, parallel, profiler);
  });
}

}  // namespace tessera
