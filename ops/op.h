// What an operator is to the engine: a shape rule, a layout rule, a receptive field, and kernels.
//
// An operator's life: infer (shapes, once per input shape) -> choose layouts -> prepare (choose a
// kernel, pack weights) -> run (no allocation, no shape work). One operator family a file; each
// file ends in OpDefs, which ops/registry.cc lists.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/attributes.h"
#include "ops/error.h"
#include "ops/pack_cache.h"
#include "ops/parallel.h"
#include "ops/tensor.h"

namespace tessera {

// The versions of the default ONNX domain that are supported.
inline constexpr int kMinOpset = 7, kMaxOpset = 21;

// What operator code sees of a node.
struct OpNode {
  std::string name;  // unique within the graph, for messages
  std::string type;  // "Conv"
  int opset = 0;     // version of the default ONNX domain that the model uses
  Attributes attributes;
};

// What is known of a tensor before anything runs.
struct TensorInfo {
  bool present = false;  // false: an optional input that the node omits
  DType dtype = DType::kFloat32;
  Shape shape;
  Layout layout = Layout::kRowMajor;
  std::shared_ptr<const Tensor> constant;  // its (row-major) value, if that is known already
};

// Thrown by an operator's infer when an output's shape depends on the value of an input that is not
// known yet. The engine then runs the node once the value is there.
class NeedsValue : public Error {
 public:
  explicit NeedsValue(std::size_t input);
};

struct InferContext {
  const OpNode& node;
  std::span<const TensorInfo> inputs;
  std::vector<TensorInfo>& outputs;  // sized to the node's outputs; fill dtype and shape

  // Input i. Throws Error if it is missing.
  const TensorInfo& Input(std::size_t i) const;
  bool HasInput(std::size_t i) const { return i < inputs.size() && inputs[i].present; }
  // The value of input i, on which an output's shape depends. Throws NeedsValue if it is not known
  // yet. Values that shapes do not depend on are read by the kernel, when it runs.
  const Tensor& Constant(std::size_t i) const;
  void SetOutput(std::size_t i, DType dtype, const Shape& shape) const;
};

struct PrepareContext {
  const OpNode& node;
  std::span<const TensorInfo> inputs;  // with the layouts that were chosen
  std::span<const TensorInfo> outputs;
  PackCache& packs;  // weights in kernel order, shared by all plans of a session
  bool reference;    // true: the plain kernel, for comparison; then all layouts are row-major

  bool HasInput(std::size_t i) const { return i < inputs.size() && inputs[i].present; }
};

struct RunContext {
  std::span<const TensorView> inputs;   // absent optional inputs have null bytes
  std::span<const TensorView> outputs;  // memory is there, its contents undefined
  Parallel& parallel;
  std::byte* scratch;          // kAlignment-aligned, ScratchBytesPerThread() for each thread
  std::size_t scratch_stride;  // bytes from one thread's scratch to the next

  bool HasInput(std::size_t i) const { return i < inputs.size() && inputs[i].present(); }
  bool HasOutput(std::size_t i) const { return i < outputs.size() && outputs[i].present(); }
  template <typename T>
  T* Scratch(int thread) const {
    return reinterpret_cast<T*>(scratch + static_cast<std::size_t>(thread) * scratch_stride);
  }
};

// One node's code for one input shape. Run is const and keeps its state in RunContext: several
// threads may run the same kernel at once, each with buffers of its own. Results never depend on
// the number of threads.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual std::string_view name() const = 0;  // "conv3x3_winograd_f6", for profiles and tests
  virtual std::size_t ScratchBytesPerThread() const { return 0; }
  // Whether output 0 may lie in the memory of input i (same layout and size in bytes), given that
  // no other input lies there too.
  virtual bool CanOverwriteInput(std::size_t /*i*/) const { return false; }
  // Multiply-adds times two that the direct form of this node takes; 0 if that says nothing.
  virtual double Flops() const { return 0; }
  virtual void Run(const RunContext& context) const = 0;
};

// OpDef::prepare where a single kernel does for all: K, made from the context.
template <typename K>
std::unique_ptr<Kernel> PrepareKernel(const PrepareContext& context) {
  return std::make_unique<K>(context);
}

struct LayoutContext {
  const OpNode& node;
  std::span<const TensorInfo> inputs;   // `layout` as it comes from the producers
  std::span<const TensorInfo> outputs;  // shapes are known
};

// Layouts that a node wants; shorter vectors mean row-major for the rest.
struct LayoutChoice {
  std::vector<Layout> inputs;
  std::vector<Layout> outputs;
};

// How an output pixel depends on the pixels of an input along one spatial axis: output pixel p
// needs the input pixels in [p * den / num + lo, p * den / num + hi]. Kernels that compute blocks
// of pixels round p by all that its block needs: so many input pixels more on both sides, at most.
struct AxisField {
  std::int64_t num = 1, den = 1;  // output pixels per input pixel
  double lo = 0, hi = 0;
  double rounding = 0;
};
// Height and width.
using SpatialField = std::array<AxisField, 2>;

struct FieldContext {
  const OpNode& node;
  std::span<const TensorInfo> inputs;  // shapes and constants of one example input size
  std::span<const TensorInfo> outputs;
};

struct OpDef {
  std::string_view type;
  int min_inputs = 0, max_inputs = 0;  // max_inputs -1: any number

  // Fills the outputs' types and shapes. Throws Error for anything the specification forbids.
  void (*infer)(const InferContext&) = nullptr;

  // Chooses kernel and packs weights. Null for views (below).
  std::unique_ptr<Kernel> (*prepare)(const PrepareContext&) = nullptr;

  // Null: everything row-major.
  LayoutChoice (*layouts)(const LayoutContext&) = nullptr;

  // Field of output 0 on input i (rank-4 NCHW both). nullopt: depends on the whole input, or
  // unknown. Null: always nullopt. The scale of an operator that is told its output's size is the
  // one for this size of the input.
  std::optional<SpatialField> (*field)(const FieldContext&, std::size_t i) = nullptr;

  // Output 0 has the bytes of input 0 (row-major) under another shape: nothing is run.
  bool is_view = false;

  // Nodes may leave output 0 out as long as they have another; else only those after it.
  bool can_omit_output0 = false;

  // Made by passes only: not accepted from files.
  bool internal = false;

  // Sub-graphs in its attributes. The engine runs such nodes; only infer is called.
  int num_bodies = 0;

  // The versions of the default ONNX domain that have the operator.
  int first_opset = 1, last_opset = kMaxOpset;
};

// The operator of that name, or null. Beside ONNX's own there are fused ones that passes create.
const OpDef* FindOp(std::string_view type);
// All, sorted by name.
std::vector<const OpDef*> AllOps();

// Pieces that many operators share.

// The value of input i, on which an output's shape depends. Throws Error if the input is missing
// and NeedsValue if its value is not known yet.
const Tensor& ConstantInput(std::span<const TensorInfo> inputs, std::size_t i);
// The same of a vector (or scalar) of integers of one of the given types.
std::vector<std::int64_t> ConstantInt64s(std::span<const TensorInfo> inputs, std::size_t i,
                                         std::initializer_list<DType> types = {DType::kInt64});
// Output 0 has type and shape of input 0.
void InferSameAsInput0(const InferContext& context);
// Blocked if input 0 is blocked, else row-major.
LayoutChoice FollowInput0(const LayoutContext& context);
// Pointwise in space: pixel p depends on pixel p.
std::optional<SpatialField> PointwiseField(const FieldContext& context, std::size_t i);
// The same for operands that are broadcast; nullopt if one of them ties the output to its place in
// the picture (a constant that varies over it) or to the whole of it.
std::optional<SpatialField> BroadcastField(const FieldContext& context, std::size_t i);

}  // namespace tessera
