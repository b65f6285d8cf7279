// Load a network once, run it often, from any number of threads.
//
//   auto session = Session::Load("x4v3.onnx");
//   std::vector<Tensor> outputs;
//   session->Run({{"input", picture.view()}}, outputs);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/unsupported.h"
#include "ops/parallel.h"
#include "ops/tensor.h"

namespace tessera {

struct SessionOptions {
  // Passes (by name, see PassNames) that must not run; added to $TESSERA_DISABLE (comma-separated).
  std::vector<std::string> disabled_passes = {};
  // Plain reference kernels and no passes: slow, for comparison.
  bool reference = false;
  // Plans (one per set of input shapes) that are kept, least recently used out first.
  int max_plans = 8;
  // Bytes that the process may have allocated when the network is loaded and run: for weights,
  // packed weights, the buffers of runs. What would take more is an Error that names both numbers.
  // 0: the limit of the MemoryScope that the session is loaded in, else DefaultMaxMemory().
  std::size_t max_memory = 0;
};

// 80 % of what this process has and may still take (engine/memory_budget.h).
std::size_t DefaultMaxMemory();

// Names of all passes that can be disabled.
std::vector<std::string> PassNames();

// A pass (a rewrite of the network that can be disabled), and how often it fired.
struct PassCount {
  std::string name;
  std::string what;  // one line for people
  int count = 0;
};

// An input or output as the model declares it. -1 stands for a dimension that is named or absent.
struct ValueDecl {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> dims;
  bool has_shape = false;
};

struct NamedView {
  std::string_view name;
  TensorView tensor;
};

// How the pixels of an output depend on those of an input, both NCHW, along height and width: the
// output pixels of the input block [a, b), a and b multiples of `alignment`, are
// [a * scale, b * scale) and need the input pixels [a - before, b + after). A crop of the input
// gives a crop of the output if it starts at a multiple of `alignment`.
//
// That is so up to rounding. Kernels compute pixels in blocks of up to 6, which lie at multiples of
// their size from the start of the input, and round each pixel by all that its block needs. The
// crop's pixels are those of the whole to the bit if its start is a multiple of 12 * alignment and
// they need, by exact_before and exact_after in place of before and after, no pixel beyond its ends
// that the whole has.
struct ReceptiveField {
  struct Axis {
    std::int64_t scale_num = 1, scale_den = 1;  // output pixels per input pixel, reduced
    int before = 0, after = 0;                  // input pixels
    int exact_before = 0, exact_after = 0;
    int alignment = 1;

    bool operator==(const Axis&) const = default;
  };
  Axis height, width;

  bool operator==(const ReceptiveField&) const = default;
};

// What one run did, step by step.
struct RunProfile {
  struct Step {
    std::string name;  // of the node
    std::string type;  // operator after fusion
    std::string kernel;
    TensorView output;                // type, layout and shape of output 0
    double start_ms = 0, end_ms = 0;  // since the run began
    double flops = 0;                 // of the direct form; 0 where that says nothing
    std::size_t bytes = 0;            // of all operands: what has to be moved at least
  };
  std::vector<Step> steps;
};

// An ONNX model in memory; `name` stands for the file in messages.
struct ModelBytes {
  std::span<const std::byte> onnx;
  std::string name;
};
using ModelSource = std::variant<std::filesystem::path, ModelBytes>;

class Session {
 public:
  // An ONNX file, or one of the two files of an ncnn model (see engine/model_file.h). Throws Error,
  // with the file's name, for files that cannot be read or are no valid models; Unsupported for
  // those that use operators or layers (all of which are named at once), element types or versions
  // that are not supported.
  static std::shared_ptr<Session> Load(const std::filesystem::path& path,
                                       const SessionOptions& options = {});
  // The same from an ONNX model in memory; `name` stands for the file in messages.
  static std::shared_ptr<Session> LoadFromMemory(std::span<const std::byte> model, std::string name,
                                                 const SessionOptions& options = {});
  // The network of `a` with the weights (1 - t) * a + t * b, t in [0, 1] (see engine/blend.h).
  // Throws as Load does for each of them, and Error if they are not equal but for their weights.
  static std::shared_ptr<Session> LoadBlend(const ModelSource& a, const ModelSource& b, float t,
                                            const SessionOptions& options = {});
  ~Session();

  // The model's file, as messages name it.
  const std::string& name() const;
  // Elements of all weights; those of a Loop's or If's bodies are not counted.
  std::int64_t num_weights() const;
  // Bytes of the same, and of what kernels have made of them for the plans so far.
  std::size_t WeightBytes() const;
  std::size_t PackedBytes() const;

  const std::vector<ValueDecl>& inputs() const;
  const std::vector<ValueDecl>& outputs() const;

  // Types and shapes of the outputs for these input shapes (order of inputs()); makes the plan.
  // Shapes may differ from the declared ones as long as the network's nodes allow it.
  // Throws Error that names node, operator and shapes if they do not, or if an output's shape
  // depends on values that only a run has (then Run tells).
  std::vector<TensorView> InferOutputs(std::span<const Shape> input_shapes);

  // Runs the network. Inputs are row-major (float16 and float32 are converted into each other);
  // every declared input has to be there once. `outputs` are in the order of outputs(); tensors
  // that have the right type and shape already are written in place, others are replaced. A second
  // run with the same shapes and outputs allocates nothing, unless shapes depend on values. Threads
  // come from `parallel`, by default from the process-wide CPU budget. `profile`, where given, is
  // filled anew (and allocates). Outputs must not lie in the memory of inputs.
  void Run(std::span<const NamedView> inputs, std::vector<Tensor>& outputs,
           Parallel* parallel = nullptr, RunProfile* profile = nullptr);

  // The network in two sessions that give its outputs when they run one after the other: `first`
  // computes what the input `input` alone decides, `rest` the outputs from that (inputs that are
  // called as first's outputs are) and from the other inputs. So what does not change from run to
  // run, as the target that a tracker looks for, is computed once. Results are those of the whole
  // but for the rounding of steps that would have been fused across the cut. Both parts take these
  // shapes only (order of inputs()); weights, packed ones too, are shared with this session.
  // Throws Error as InferOutputs does, and if no input has that name.
  struct Parts;
  Parts Split(std::string_view input, std::span<const Shape> input_shapes);

  // The field of output 0 on input 0, for inputs about as large as `input_shapes`, or nullopt when
  // an output pixel depends on the whole input (or this cannot be told).
  std::optional<ReceptiveField> FindReceptiveField(std::span<const Shape> input_shapes);

  // All passes in the order in which they run, and how often each fired for these shapes; in a part
  // of a network, only those of its plans. Makes the plan. Throws Error as InferOutputs does; where
  // shapes depend on values, what comes after those is not counted.
  std::vector<PassCount> PassCounts(std::span<const Shape> input_shapes);

  // Bytes of intermediate buffers that one run with these shapes takes.
  std::size_t ArenaBytes(std::span<const Shape> input_shapes);

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct Session::Parts {
  std::shared_ptr<Session> first, rest;
};

}  // namespace tessera
