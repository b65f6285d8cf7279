// Copies of a tensor in which a tensor of indices says what is updated: ScatterElements (Scatter,
// before opset 11) updates one element along an axis for each index, ScatterND slices by tuples of
// indices. Updates replace what is there, or are combined with it in the order in which they are
// listed. Indices may be negative; those out of range are an Error when the kernel runs.
// https://onnx.ai/onnx/operators/onnx__ScatterElements.html
// https://onnx.ai/onnx/operators/onnx__ScatterND.html
#include <cstring>
#include <string>

#include "ops/element_loops.h"
#include "ops/elements.h"
#include "ops/indexing.h"
#include "ops/op.h"

namespace tessera {
namespace {

constexpr std::size_t kData = 0, kIndices = 1, kUpdates = 2;

enum class Reduction : std::uint8_t { kNone, kAdd, kMul, kMin, kMax };

Reduction ReadReduction(const OpNode& node) {
  if (node.opset < 16) return Reduction::kNone;
  const std::string name = node.attributes.String("reduction", "none");
  if (name == "none") return Reduction::kNone;
  if (name == "add") return Reduction::kAdd;
  if (name == "mul") return Reduction::kMul;
  Require(node.opset >= 18 && (name == "min" || name == "max"), "unknown reduction '", name, "'");
  return name == "min" ? Reduction::kMin : Reduction::kMax;
}

// Integers wrap around; of bools, "add" is or. A NaN stays in min and max.
template <typename T>
T Combine(Reduction reduction, T old, T update) {
  using U = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;
  switch (reduction) {
    case Reduction::kNone:
      break;
    case Reduction::kAdd:
      return static_cast<T>(static_cast<U>(old) + static_cast<U>(update));
    case Reduction::kMul:
      return static_cast<T>(static_cast<U>(old) * static_cast<U>(update));
    case Reduction::kMin:
      return update < old || update != update ? update : old;
    case Reduction::kMax:
      return update > old || update != update ? update : old;
  }
  return update;
}

int Axis(const OpNode& node, const Shape& data) {
  return NormalizeAxis(node.attributes.Int("axis", 0), data.rank());
}

// What the members of the family have in common: output 0 begins as a copy of the data.
template <typename T>
class ScatterKernel : public Kernel {
 public:
  explicit ScatterKernel(const PrepareContext& context) : reduction_(ReadReduction(context.node)) {}
  bool CanOverwriteInput(std::size_t i) const override { return i == kData; }
  void Run(const RunContext& context) const override {
    const TensorView& data = context.inputs[kData];
    T* out = context.outputs[0].data<T>();
    if (data.bytes != out) {
      std::memcpy(out, data.bytes, static_cast<std::size_t>(data.size()) * sizeof(T));
    }
    Update(context, context.inputs[kUpdates].data<const T>(), out);
  }

 protected:
  virtual void Update(const RunContext& context, const T* updates, T* out) const = 0;
  void Apply(T update, T& element) const {
    if (reduction_ == Reduction::kNone) {
      element = update;
    } else {
      element = static_cast<T>(Combine<ComputeType<T>>(reduction_, element, update));
    }
  }

 private:
  Reduction reduction_;
};

// Output 0 is like the data; updates have to be of its type and of the shape `wanted`.
void InferScatter(const InferContext& context, const Shape& wanted) {
  const TensorInfo& data = context.Input(kData);
  const TensorInfo& updates = context.Input(kUpdates);
  ReadReduction(context.node);
  Require(updates.dtype == data.dtype && updates.shape == wanted, "updates of ", updates.dtype, " ",
          updates.shape, " instead of ", data.dtype, " ", wanted);
  InferSameAsInput0(context);
}

void InferScatterElements(const InferContext& context) {
  const Shape& data = context.Input(kData).shape;
  const TensorInfo& indices = context.Input(kIndices);
  RequireType(indices.dtype, IndexTypes());
  RequireElementIndices(data, indices.shape, Axis(context.node, data));
  InferScatter(context, indices.shape);
}

template <typename T>
class ScatterElementsKernel final : public ScatterKernel<T> {
 public:
  explicit ScatterElementsKernel(const PrepareContext& context)
      : ScatterKernel<T>(context),
        axis_(context.inputs[kData].shape, Axis(context.node, context.inputs[kData].shape)),
        loops_(axis_.Loops(context.inputs[kIndices].shape)) {}
  std::string_view name() const override { return "scatter_elements"; }

 private:
  void Update(const RunContext& context, const T* updates, T* out) const override {
    const std::int64_t step = loops_.RowStride(ElementAxis::kData);
    SerialParallel serial;  // updates of one element stay in their order
    Dispatch(context.inputs[kIndices].dtype, IndexTypes(), [&](auto tag) {
      const auto* indices = context.inputs[kIndices].data<const typename decltype(tag)::type>();
      loops_.Run(serial, [&](const ElementLoops::Offsets& at, std::int64_t n) {
        T* to = out + at[ElementAxis::kData];
        for (std::int64_t i = 0; i < n; ++i) {
          this->Apply(updates[at[0] + i], to[i * step + axis_.Offset(indices[at[1] + i])]);
        }
      });
    });
  }

  ElementAxis axis_;
  ElementLoops loops_;
};

void InferScatterND(const InferContext& context) {
  const Shape& data = context.Input(kData).shape;
  const TensorInfo& indices = context.Input(kIndices);
  RequireType(indices.dtype, TypeList<std::int64_t>());
  Require(indices.shape.rank() >= 1, "indices are a scalar");
  const int last = indices.shape.rank() - 1;
  const IndexTuples tuples(data, 0, indices.shape[last]);
  Shape wanted;
  for (int d = 0; d < last; ++d) wanted.PushBack(indices.shape[d]);
  for (int d = static_cast<int>(tuples.length()); d < data.rank(); ++d) wanted.PushBack(data[d]);
  InferScatter(context, wanted);
}

template <typename T>
class ScatterNDKernel final : public ScatterKernel<T> {
 public:
  explicit ScatterNDKernel(const PrepareContext& context)
      : ScatterNDKernel(context, context.inputs[kIndices].shape) {}
  std::string_view name() const override { return "scatter_nd"; }

 private:
  ScatterNDKernel(const PrepareContext& context, const Shape& indices)
      : ScatterKernel<T>(context),
        tuples_(context.inputs[kData].shape, 0, indices[indices.rank() - 1]),
        count_(indices.NumElements(0, indices.rank() - 1)) {}

  void Update(const RunContext& context, const T* updates, T* out) const override {
    const auto* tuple = context.inputs[kIndices].data<const std::int64_t>();
    const std::int64_t slice = tuples_.slice();
    for (std::int64_t t = 0; t < count_; ++t, tuple += tuples_.length(), updates += slice) {
      T* to = out + tuples_.Offset(tuple);
      for (std::int64_t i = 0; i < slice; ++i) this->Apply(updates[i], to[i]);
    }
  }

  IndexTuples tuples_;
  std::int64_t count_;
};

template <template <typename> typename KernelOf>
std::unique_ptr<Kernel> PrepareScatter(const PrepareContext& context) {
  return Dispatch(context.inputs[kData].dtype, AllTypes(),
                  [&](auto tag) -> std::unique_ptr<Kernel> {
                    return std::make_unique<KernelOf<typename decltype(tag)::type>>(context);
                  });
}

constexpr OpDef ScatterOp(std::string_view type, void (*infer)(const InferContext&),
                          std::unique_ptr<Kernel> (*prepare)(const PrepareContext&),
                          int first_opset, int last_opset = kMaxOpset) {
  return {
      .type = type,
      .min_inputs = 3,
      .max_inputs = 3,
      .infer = infer,
      .prepare = prepare,
      .first_opset = first_opset,
      .last_opset = last_opset,
  };
}

}  // namespace

extern const OpDef kScatterElementsOp, kScatterNDOp, kScatterOp;
const OpDef kScatterElementsOp =
    ScatterOp("ScatterElements", InferScatterElements, PrepareScatter<ScatterElementsKernel>, 11);
const OpDef kScatterNDOp =
    ScatterOp("ScatterND", InferScatterND, PrepareScatter<ScatterNDKernel>, 11);
const OpDef kScatterOp =
    ScatterOp("Scatter", InferScatterElements, PrepareScatter<ScatterElementsKernel>, 9, 10);

}  // namespace tessera
