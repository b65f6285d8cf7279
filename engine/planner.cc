#include "engine/planner.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "ops/reorder.h"

namespace tessera {
namespace {

// An output of the graph that is also an input or another output.
class CopyKernel final : public Kernel {
 public:
  std::string_view name() const override { return "copy"; }
  void Run(const RunContext& run) const override {
    const TensorView& in = run.inputs[0];
    const std::size_t bytes = StorageBytes(in.dtype, in.shape, in.layout);
    if (bytes > 0) std::memcpy(run.outputs[0].bytes, in.bytes, bytes);
  }
};

// A piece of memory; tensors that share it (views, in-place results) have the same one.
struct Storage {
  BufferRef::Kind kind = BufferRef::Kind::kArena;
  std::size_t index = 0;
  std::size_t bytes = 0;
  int tensors = 0;            // that lie in it
  int first = -1, last = -1;  // steps that write and read it first and last
};

using TensorId = int;
constexpr TensorId kNoTensor = -1;

// A value in one layout.
struct PlanTensor {
  TensorInfo info;
  int storage = -1;
  std::size_t offset = 0;  // bytes from the start of its storage
};

class Planner {
 public:
  Planner(Graph& graph, const PlanOptions& options, PackCache& packs)
      : graph_(graph), options_(options), packs_(packs) {}

  Plan Make() {
    AddInputs();
    for (const Node& node : graph_.nodes) AddNode(node);
    AddOutputs();
    if (Enabled("concat-in-place")) ConcatInPlace();
    FindLifetimes();
    ShareInPlace();
    PlaceArena();
    return Finish();
  }

 private:
  struct DraftStep {
    Step step;
    std::vector<TensorId> inputs, outputs;
  };

  int NewStorage(BufferRef::Kind kind, std::size_t index, std::size_t bytes) {
    storages_.push_back({kind, index, bytes});
    return static_cast<int>(storages_.size()) - 1;
  }

  TensorId NewTensor(const TensorInfo& info, int storage) {
    tensors_.push_back({info, storage});
    ++storages_[static_cast<std::size_t>(storage)].tensors;
    return static_cast<TensorId>(tensors_.size()) - 1;
  }

  TensorId NewArenaTensor(const TensorInfo& info) {
    return NewTensor(info, NewStorage(BufferRef::Kind::kArena, 0,
                                      StorageBytes(info.dtype, info.shape, info.layout)));
  }

  Storage& StorageOf(TensorId t) {
    return storages_[static_cast<std::size_t>(tensors_[static_cast<std::size_t>(t)].storage)];
  }
  const TensorInfo& Info(TensorId t) const { return tensors_[static_cast<std::size_t>(t)].info; }

  void AddInputs() {
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      const TensorInfo& info = graph_.value(graph_.inputs[i]).info;
      Define(graph_.inputs[i],
             NewTensor(info, NewStorage(BufferRef::Kind::kInput, i,
                                        StorageBytes(info.dtype, info.shape, info.layout))));
    }
  }

  void Define(ValueId value, TensorId tensor) {
    by_layout_[{value, Info(tensor).layout}] = tensor;
    native_layout_[value] = Info(tensor).layout;
  }

  // The tensor that holds `value` in `layout`; adds a reordering step if none does yet.
  TensorId Get(ValueId value, Layout layout) {
    if (const auto it = by_layout_.find({value, layout}); it != by_layout_.end()) return it->second;
    const TensorInfo& info = graph_.value(value).info;
    if (info.constant && layout == Layout::kRowMajor) {
      constants_.push_back(info.constant);
      const TensorId t =
          NewTensor(info, NewStorage(BufferRef::Kind::kConstant, constants_.size() - 1, 0));
      by_layout_[{value, layout}] = t;
      return t;
    }
    const Layout native = info.constant ? Layout::kRowMajor : native_layout_.at(value);
    const TensorId from = Get(value, native);
    TensorInfo to_info = info;
    to_info.layout = layout;
    to_info.constant = nullptr;
    if (const TensorId view = ViewAs(from, to_info); view != kNoTensor) {
      by_layout_[{value, layout}] = view;
      return view;
    }
    const TensorId to = NewArenaTensor(to_info);
    DraftStep draft;
    draft.step.name = graph_.value(value).name;
    draft.step.type = "Reorder";
    draft.step.kernel = MakeReorder(info.shape, native, layout);
    draft.inputs = {from};
    draft.outputs = {to};
    steps_.push_back(std::move(draft));
    by_layout_[{value, layout}] = to;
    return to;
  }

  // All layouts of a tensor of one pixel hold the channels one after the other: `to` can lie where
  // `from` does. kNoTensor if it cannot.
  TensorId ViewAs(TensorId from, const TensorInfo& to) {
    const Shape& s = to.shape;
    Storage& storage = StorageOf(from);
    const std::size_t bytes = StorageBytes(to.dtype, s, to.layout);
    if (!Enabled("view-one-pixel") || s[2] != 1 || s[3] != 1 ||
        (s[0] != 1 && bytes != Bytes(from)) || storage.kind != BufferRef::Kind::kArena) {
      return kNoTensor;
    }
    ++rewrites_["view-one-pixel"];
    storage.bytes = std::max(storage.bytes, bytes);  // the channels that pad it
    return NewTensor(to, tensors_[static_cast<std::size_t>(from)].storage);
  }

  Layout NativeLayout(ValueId value) const {
    const auto it = native_layout_.find(value);
    return it == native_layout_.end() ? Layout::kRowMajor : it->second;
  }

  void AddNode(const Node& node) {
    if (node.def->is_view) {
      const TensorId in = Get(node.inputs[0], Layout::kRowMajor);
      TensorInfo info = graph_.value(node.outputs[0]).info;
      Define(node.outputs[0], NewTensor(info, tensors_[static_cast<std::size_t>(in)].storage));
      return;
    }
    std::vector<TensorInfo> inputs = InputInfos(graph_, node);
    std::vector<TensorInfo> outputs = OutputInfos(graph_, node);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (node.inputs[i] != kNoValue) inputs[i].layout = NativeLayout(node.inputs[i]);
    }
    LayoutChoice choice;
    if (node.def->layouts != nullptr && !options_.reference) {
      choice = node.def->layouts({node.op, inputs, outputs});
    }
    choice.inputs.resize(inputs.size(), Layout::kRowMajor);
    choice.outputs.resize(outputs.size(), Layout::kRowMajor);

    DraftStep draft;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      inputs[i].layout = choice.inputs[i];
      draft.inputs.push_back(node.inputs[i] == kNoValue ? kNoTensor
                                                        : Get(node.inputs[i], choice.inputs[i]));
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      outputs[i].layout = choice.outputs[i];
      if (node.outputs[i] == kNoValue) {
        draft.outputs.push_back(kNoTensor);
        continue;
      }
      draft.outputs.push_back(NewArenaTensor(outputs[i]));
      Define(node.outputs[i], draft.outputs.back());
    }
    draft.step.kernel = AtNode(graph_, node, [&] {
      return node.def->prepare({node.op, inputs, outputs, packs_, options_.reference});
    });
    draft.step.name = node.op.name;
    draft.step.type = node.op.type;
    steps_.push_back(std::move(draft));
  }

  // Makes the memory of each graph output the caller's, or copies into it where it is not ours to
  // choose (inputs, constants, a value that is an output twice).
  void AddOutputs() {
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      const TensorId t = Get(graph_.outputs[i], Layout::kRowMajor);
      Storage& storage = StorageOf(t);
      output_infos_.push_back(Info(t));
      if (storage.kind == BufferRef::Kind::kArena && FillsStorage(t)) {
        storage.kind = BufferRef::Kind::kOutput;
        storage.index = i;
        continue;
      }
      TensorInfo info = Info(t);
      info.constant = nullptr;
      const TensorId copy =
          NewTensor(info, NewStorage(BufferRef::Kind::kOutput, i,
                                     StorageBytes(info.dtype, info.shape, info.layout)));
      DraftStep draft;
      draft.step.name = graph_.value(graph_.outputs[i]).name;
      draft.step.type = "Copy";
      draft.step.kernel = std::make_unique<CopyKernel>();
      draft.inputs = {t};
      draft.outputs = {copy};
      steps_.push_back(std::move(draft));
    }
  }

  bool Enabled(std::string_view pass) const {
    return !options_.reference && !options_.disabled_passes.contains(pass);
  }

  std::size_t Bytes(TensorId t) const {
    const TensorInfo& info = Info(t);
    return StorageBytes(info.dtype, info.shape, info.layout);
  }

  bool FillsStorage(TensorId t) const {
    const PlanTensor& tensor = tensors_[static_cast<std::size_t>(t)];
    return tensor.offset == 0 &&
           storages_[static_cast<std::size_t>(tensor.storage)].bytes == Bytes(t);
  }

  // Whether a tensor has a storage of ours to itself, so that it can be moved into another one.
  bool OwnsStorage(TensorId t) const {
    const Storage& s =
        storages_[static_cast<std::size_t>(tensors_[static_cast<std::size_t>(t)].storage)];
    return FillsStorage(t) && s.kind == BufferRef::Kind::kArena && s.tensors == 1;
  }

  void MoveTensor(TensorId t, int storage, std::size_t offset) {
    PlanTensor& tensor = tensors_[static_cast<std::size_t>(t)];
    --StorageOf(t).tensors;
    tensor.storage = storage;
    tensor.offset = offset;
    ++StorageOf(t).tensors;
  }

  // Whether a Concat only puts its inputs' bytes one after the other: nothing but ones before the
  // axis. Channels-last, the channels of the inputs alternate.
  bool Appends(TensorId out, const std::vector<TensorId>& inputs) const {
    if (Info(out).layout == Layout::kChannelsLast) return false;
    const Shape &whole = Info(out).shape, &first = Info(inputs[0]).shape;
    for (int d = 0; d < whole.rank(); ++d) {
      if (whole[d] != first[d]) break;
      if (whole[d] != 1) return false;
    }
    // Row-major tensors may end anywhere, but all should begin where vectors are fast.
    return Info(out).layout == Layout::kBlocked ||
           std::all_of(inputs.begin(), inputs.end() - 1,
                       [&](TensorId t) { return Bytes(t) % kAlignment == 0; });
  }

  // Where a Concat only appends, as one of the channels of one image does, the producers write to
  // its output at once. Going back from the last, so that dense blocks, which concatenate x, then x
  // and a, then x, a and b, find the shorter ones at the head of the longest.
  void ConcatInPlace() {
    for (std::size_t s = steps_.size(); s-- > 0;) {
      DraftStep& draft = steps_[s];
      if (draft.step.type != "Concat") continue;
      const TensorId out = draft.outputs[0];
      if (!Appends(out, draft.inputs)) continue;
      if (!MoveInto(out, draft.inputs) && !AdoptAdjacent(out, draft.inputs)) continue;
      steps_.erase(steps_.begin() + static_cast<std::ptrdiff_t>(s));
      ++rewrites_["concat-in-place"];
    }
  }

  // Whether tensors lie one after the other in one storage already.
  bool AreAdjacent(const std::vector<TensorId>& list) const {
    const PlanTensor& head = tensors_[static_cast<std::size_t>(list[0])];
    std::size_t offset = head.offset;
    for (TensorId t : list) {
      const PlanTensor& tensor = tensors_[static_cast<std::size_t>(t)];
      if (tensor.storage != head.storage || tensor.offset != offset) return false;
      offset += Bytes(t);
    }
    return true;
  }

  // Places the inputs of a Concat in its output's storage, all or none.
  bool MoveInto(TensorId out, const std::vector<TensorId>& inputs) {
    const PlanTensor& whole = tensors_[static_cast<std::size_t>(out)];
    if (StorageOf(out).kind != BufferRef::Kind::kArena) return false;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!OwnsStorage(inputs[i]) || std::count(inputs.begin(), inputs.end(), inputs[i]) > 1) {
        return false;
      }
    }
    std::size_t offset = whole.offset;
    for (TensorId t : inputs) {
      MoveTensor(t, whole.storage, offset);
      offset += Bytes(t);
    }
    return true;
  }

  // Lets the output of a Concat lie where its inputs do, one after the other already. Not if it
  // has a place in another Concat's output: it is wanted there.
  bool AdoptAdjacent(TensorId out, const std::vector<TensorId>& inputs) {
    if (!OwnsStorage(out) || !AreAdjacent(inputs)) return false;
    const PlanTensor& head = tensors_[static_cast<std::size_t>(inputs[0])];
    MoveTensor(out, head.storage, head.offset);
    return true;
  }

  void FindLifetimes() {
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      const int step = static_cast<int>(s);
      for (const auto* list : {&steps_[s].inputs, &steps_[s].outputs}) {
        for (TensorId t : *list) {
          if (t == kNoTensor) continue;
          Storage& storage = StorageOf(t);
          if (storage.first < 0) storage.first = step;
          storage.last = step;
        }
      }
    }
  }

  // False for the shortcut of conv(x) + x, say: x may be overwritten as an addend, not as X.
  bool OnlyOverwritableInputsLieIn(int storage, const DraftStep& draft) const {
    for (std::size_t i = 0; i < draft.inputs.size(); ++i) {
      const TensorId in = draft.inputs[i];
      if (in != kNoTensor && tensors_[static_cast<std::size_t>(in)].storage == storage &&
          !draft.step.kernel->CanOverwriteInput(i)) {
        return false;
      }
    }
    return true;
  }

  // Lets a step's first output lie where an input lay that nobody reads afterwards. Both have to
  // fill their storages: around a part of a Concat's output others may be written by then.
  void ShareInPlace() {
    std::vector<std::vector<TensorId>> tensors_in(storages_.size());
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      tensors_in[static_cast<std::size_t>(tensors_[t].storage)].push_back(static_cast<TensorId>(t));
    }
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      DraftStep& draft = steps_[s];
      if (draft.outputs.empty() || draft.outputs[0] == kNoTensor) continue;
      const TensorId out = draft.outputs[0];
      for (std::size_t i = 0; i < draft.inputs.size(); ++i) {
        const TensorId in = draft.inputs[i];
        if (in == kNoTensor || !draft.step.kernel->CanOverwriteInput(i)) continue;
        const auto shares_memory = [&](TensorId other) {
          return other != kNoTensor && &StorageOf(other) == &StorageOf(in);
        };
        if (std::count_if(draft.inputs.begin(), draft.inputs.end(), shares_memory) > 1) continue;
        const int from = tensors_[static_cast<std::size_t>(in)].storage;
        const int to = tensors_[static_cast<std::size_t>(out)].storage;
        Storage& shared = storages_[static_cast<std::size_t>(from)];
        Storage& merged = storages_[static_cast<std::size_t>(to)];
        if (from == to || shared.kind != BufferRef::Kind::kArena ||
            shared.last != static_cast<int>(s) || !FillsStorage(in) || !FillsStorage(out) ||
            shared.bytes != merged.bytes || Info(in).layout != Info(out).layout ||
            !OnlyOverwritableInputsLieIn(from, draft)) {
          continue;
        }
        shared.kind = merged.kind;
        shared.index = merged.index;
        shared.last = merged.last;
        merged.first = -1;  // unused from now on
        // The output's tensors move, which are few: a chain of steps in place keeps its storage.
        for (const TensorId t : tensors_in[static_cast<std::size_t>(to)]) {
          tensors_[static_cast<std::size_t>(t)].storage = from;
          tensors_in[static_cast<std::size_t>(from)].push_back(t);
        }
        break;
      }
    }
  }

  // Largest first, each at the lowest place that is free during its life.
  void PlaceArena() {
    std::vector<Storage*> order;
    for (Storage& s : storages_) {
      if (s.kind == BufferRef::Kind::kArena && s.first >= 0) order.push_back(&s);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const Storage* a, const Storage* b) { return a->bytes > b->bytes; });
    std::vector<const Storage*> placed;  // sorted by offset
    for (Storage* s : order) {
      const std::size_t bytes = RoundUp(s->bytes, kAlignment);
      std::size_t offset = 0;
      for (const Storage* p : placed) {
        if (p->last < s->first || s->last < p->first) continue;
        if (offset + bytes <= p->index) break;
        offset = std::max(offset, p->index + RoundUp(p->bytes, kAlignment));
      }
      s->index = offset;
      arena_bytes_ = std::max(arena_bytes_, offset + bytes);
      placed.insert(
          std::upper_bound(placed.begin(), placed.end(), s,
                           [](const Storage* a, const Storage* b) { return a->index < b->index; }),
          s);
    }
  }

  Operand MakeOperand(TensorId t) {
    if (t == kNoTensor) return {};
    const TensorInfo& info = Info(t);
    const Storage& storage = StorageOf(t);
    // Only storages of the arena hold several tensors.
    const std::size_t index = storage.index + tensors_[static_cast<std::size_t>(t)].offset;
    Operand operand{{storage.kind, index}, {info.dtype, info.layout, info.shape, nullptr}};
    if (storage.kind == BufferRef::Kind::kConstant) {
      operand.view.bytes = constants_[storage.index]->view().bytes;
    }
    return operand;
  }

  Plan Finish() {
    Plan plan;
    for (ValueId v : graph_.inputs) {
      plan.input_shapes.push_back(graph_.value(v).info.shape);
      plan.input_types.push_back(graph_.value(v).info.dtype);
    }
    for (const TensorInfo& info : output_infos_) {
      plan.outputs.push_back({info.dtype, info.layout, info.shape, nullptr});
    }
    for (DraftStep& draft : steps_) {
      for (TensorId t : draft.inputs) draft.step.inputs.push_back(MakeOperand(t));
      for (TensorId t : draft.outputs) draft.step.outputs.push_back(MakeOperand(t));
      plan.scratch_bytes_per_thread =
          std::max(plan.scratch_bytes_per_thread,
                   RoundUp(draft.step.kernel->ScratchBytesPerThread(), kAlignment));
      plan.steps.push_back(std::move(draft.step));
    }
    plan.constants = std::move(constants_);
    plan.arena_bytes = arena_bytes_;
    plan.rewrites = std::move(rewrites_);
    return plan;
  }

  Graph& graph_;
  const PlanOptions& options_;
  PackCache& packs_;
  std::vector<PlanTensor> tensors_;
  std::vector<Storage> storages_;
  std::vector<DraftStep> steps_;
  std::map<std::pair<ValueId, Layout>, TensorId> by_layout_;
  std::map<ValueId, Layout> native_layout_;
  std::vector<std::shared_ptr<const Tensor>> constants_;
  std::vector<TensorInfo> output_infos_;
  std::size_t arena_bytes_ = 0;
  RewriteCounts rewrites_;
};

}  // namespace

Plan MakePlan(Graph graph, const PlanOptions& options, PackCache& packs) {
  RewriteCounts rewrites;
  if (!options.reference) RunPasses(graph, PassStage::kFast, options.disabled_passes, &rewrites);
  Plan plan = Planner(graph, options, packs).Make();
  plan.rewrites.merge(rewrites);
  return plan;
}

}  // namespace tessera
