// Recurrent layers: RNN, GRU and LSTM.
// https://onnx.ai/onnx/operators/onnx__LSTM.html, onnx__GRU.html, onnx__RNN.html
//
// All of them are the same walk through the sequences, with a cell of its own: the products of the
// inputs with W are made for all steps at once; each step multiplies the hidden state with R, and
// the cell turns both into the next state. Names are those of the specification; a row of gates
// holds [gates, hidden_size] values in its order.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "ops/batched_product.h"
#include "ops/elements.h"
#include "ops/elementwise.h"
#include "ops/op.h"
#include "ops/recurrent_activations.h"
#include "ops/strided_copy.h"

namespace tessera {
namespace {

enum class Cell : std::uint8_t { kRnn, kGru, kLstm };

constexpr std::int64_t Gates(Cell cell) {
  return cell == Cell::kRnn ? 1 : cell == Cell::kGru ? 3 : 4;
}

// Inputs and outputs.
enum Input : std::size_t { kX, kW, kR, kB, kLengths, kInitialH, kInitialC, kPeepholes };
enum Output : std::size_t { kY, kLastH, kLastC };

// Float16 has become float32 before anything runs.
using RecurrentTypes = TypeList<float, double>;

std::int64_t Directions(const OpNode& node) {
  const std::string direction = node.attributes.String("direction", "forward");
  Require(direction == "forward" || direction == "reverse" || direction == "bidirectional",
          "direction '", direction, "' is unknown");
  return direction == "bidirectional" ? 2 : 1;
}

// Activations of a cell: f; f and g; f, g and h.
template <Cell cell>
std::vector<RecurrentActivation> ReadActivations(const OpNode& node) {
  static constexpr std::array<std::string_view, 3> kLstm{"Sigmoid", "Tanh", "Tanh"};
  static constexpr std::array<std::string_view, 2> kGru{"Sigmoid", "Tanh"};
  static constexpr std::array<std::string_view, 1> kRnn{"Tanh"};
  const std::span<const std::string_view> defaults =
      cell == Cell::kRnn   ? std::span<const std::string_view>(kRnn)
      : cell == Cell::kGru ? std::span<const std::string_view>(kGru)
                           : std::span<const std::string_view>(kLstm);
  return ReadRecurrentActivations(node, defaults, Directions(node));
}

struct Sizes {
  Sizes(const OpNode& node, const Shape& x, const Shape& r) {
    batch_first = node.opset >= 14 && node.attributes.Int("layout", 0) != 0;
    steps = x[batch_first ? 1 : 0];
    batch = x[batch_first ? 0 : 1];
    input = x[2];
    hidden = r[2];
    directions = Directions(node);
  }

  // Row of X, and of its products with W, that step t of sequence b reads.
  std::int64_t InputRow(std::int64_t t, std::int64_t b) const {
    return batch_first ? b * steps + t : t * batch + b;
  }
  // Row of Y.
  std::int64_t OutputRow(std::int64_t t, std::int64_t d, std::int64_t b) const {
    return batch_first ? (b * steps + t) * directions + d : (t * directions + d) * batch + b;
  }
  // Row of initial and last states.
  std::int64_t StateRow(std::int64_t d, std::int64_t b) const {
    return batch_first ? b * directions + d : d * batch + b;
  }
  Shape StateShape() const {
    return batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
  }
  Shape OutputShape() const {
    return batch_first ? Shape{batch, steps, directions, hidden}
                       : Shape{steps, directions, batch, hidden};
  }

  bool batch_first;
  std::int64_t steps, batch, input, hidden, directions;
};

template <Cell cell>
void InferRecurrent(const InferContext& context) {
  const TensorInfo& x = context.Input(kX);
  const TensorInfo& r = context.Input(kR);
  const Attributes& attributes = context.node.attributes;
  RequireType(x.dtype, RecurrentTypes());
  Require(x.shape.rank() == 3, "X has shape ", x.shape, " instead of three dimensions");
  Require(r.shape.rank() == 3, "R has shape ", r.shape, " instead of three dimensions");
  const std::int64_t layout = attributes.Int("layout", 0);
  Require(layout == 0 || layout == 1, "layout is ", layout);
  Require(layout == 0 || context.node.opset >= 14, "attribute layout is of later opsets");
  const Sizes s(context.node, x.shape, r.shape);
  const std::int64_t hidden = attributes.Int("hidden_size", s.hidden);
  Require(hidden == s.hidden, "hidden_size is ", hidden, ", R has shape ", r.shape);
  ReadActivations<cell>(context.node);
  const float clip = attributes.Float("clip", 0);
  Require(clip >= 0, "clip is ", clip);

  const std::int64_t rows = Gates(cell) * hidden;
  const auto check = [&](std::size_t i, const char* name, const Shape& shape) {
    if (!context.HasInput(i)) return;
    const TensorInfo& in = context.Input(i);
    Require(in.shape == shape, name, " has shape ", in.shape, " instead of ", shape);
    Require(in.dtype == (i == kLengths ? DType::kInt32 : x.dtype), name, " has type ", in.dtype);
  };
  context.Input(kW);
  check(kW, "W", {s.directions, rows, s.input});
  check(kR, "R", {s.directions, rows, hidden});
  check(kB, "B", {s.directions, 2 * rows});
  check(kLengths, "sequence_lens", {s.batch});
  check(kInitialH, "initial_h", s.StateShape());
  check(kInitialC, "initial_c", s.StateShape());
  check(kPeepholes, "P", {s.directions, 3 * hidden});

  const std::size_t most = cell == Cell::kLstm ? 3 : 2;
  Require(context.outputs.size() <= most, context.outputs.size(), " outputs");
  for (std::size_t i = 0; i < context.outputs.size(); ++i) {
    context.SetOutput(i, x.dtype, i == kY ? s.OutputShape() : s.StateShape());
  }
}

template <typename T, Cell cell>
class RecurrentKernel final : public Kernel {
 public:
  explicit RecurrentKernel(const PrepareContext& context)
      : sizes_(context.node, context.inputs[kX].shape, context.inputs[kR].shape),
        activations_(ReadActivations<cell>(context.node)),
        clip_(static_cast<T>(context.node.attributes.Float("clip", 0))),
        couples_(context.node.attributes.Int("input_forget", 0) != 0),
        linear_before_reset_(context.node.attributes.Int("linear_before_reset", 0) != 0),
        first_is_reverse_(context.node.attributes.String("direction", "forward") == "reverse"),
        vector_(std::is_same_v<T, float> && !context.reference),
        transpose_w_(Transposition(context.inputs[kW])),
        transpose_r_(Transposition(context.inputs[kR])),
        input_product_(
            MakeProduct(sizes_.steps * sizes_.batch, sizes_.input, 0, Gates(cell) * sizes_.hidden)),
        state_product_(MakeProduct(sizes_.batch, sizes_.hidden, 0, StateGates() * sizes_.hidden)),
        reset_product_(MakeProduct(sizes_.batch, sizes_.hidden, 2 * sizes_.hidden, sizes_.hidden)) {
    const auto pack = [&](std::size_t i,
                          const StridedCopy& transposition) -> std::shared_ptr<const Tensor> {
      const std::shared_ptr<const Tensor>& weights = context.inputs[i].constant;
      if (weights == nullptr) return nullptr;
      return context.packs.Get<Tensor>(weights, "recurrent_transposed", [&] {
        SerialParallel serial;
        Tensor packed(weights->dtype(), weights->shape());
        transposition.Run(weights->template data<std::byte>(), packed.data<std::byte>(), serial);
        return packed;
      });
    };
    packed_w_ = pack(kW, transpose_w_);
    packed_r_ = pack(kR, transpose_r_);
    const Sizes& s = sizes_;
    const std::int64_t rows = Gates(cell) * s.hidden;
    memory_ = {
        .w = Reserve(packed_w_ ? 0 : s.directions * rows * s.input),
        .r = Reserve(packed_r_ ? 0 : s.directions * rows * s.hidden),
        .bias = Reserve(rows),
        .inputs = Reserve(s.steps * s.batch * rows),
        .gates = Reserve(s.batch * rows),
        .h = Reserve(s.batch * s.hidden),
        .c = Reserve(s.batch * s.hidden),
        .work = Reserve(s.batch * s.hidden),
    };
  }

  std::string_view name() const override {
    return cell == Cell::kRnn ? "rnn" : cell == Cell::kGru ? "gru" : "lstm";
  }
  std::size_t ScratchBytesPerThread() const override { return scratch_bytes_; }
  double Flops() const override {
    const Sizes& s = sizes_;
    return 2.0 * static_cast<double>(s.directions * s.steps * s.batch * Gates(cell) * s.hidden *
                                     (s.input + s.hidden));
  }

  // Throws Error for a length of a sequence that is out of range.
  void Run(const RunContext& context) const override {
    const Sizes& s = sizes_;
    const auto* lengths =
        context.HasInput(kLengths) ? context.inputs[kLengths].data<const std::int32_t>() : nullptr;
    for (std::int64_t b = 0; lengths != nullptr && b < s.batch; ++b) {
      Require(lengths[b] >= 0 && lengths[b] <= s.steps, "sequence_lens has ", lengths[b],
              " for sequences of ", s.steps, " steps");
    }
    if (!packed_w_) {
      transpose_w_.Run(context.inputs[kW].bytes, At(context, memory_.w), context.parallel);
    }
    if (!packed_r_) {
      transpose_r_.Run(context.inputs[kR].bytes, At(context, memory_.r), context.parallel);
    }
    const ParallelSection section(context.parallel);
    for (std::int64_t d = 0; d < s.directions; ++d) RunDirection(context, lengths, d);
  }

 private:
  // Places in the first thread's scratch, in bytes.
  struct Memory {
    std::size_t w, r;    // transposed, unless they are packed
    std::size_t bias;    // of W and R, but for what GRU's linear_before_reset keeps apart
    std::size_t inputs;  // X W^T + bias of all steps
    std::size_t gates;   // [batch, gates, hidden] of a step
    std::size_t h, c;    // states, [batch, hidden]
    std::size_t work;    // [batch, hidden]
  };

  std::size_t Reserve(std::int64_t elements) {
    const std::size_t at = scratch_bytes_;
    scratch_bytes_ += RoundUp(static_cast<std::size_t>(elements) * sizeof(T), kAlignment);
    return at;
  }
  static T* At(const RunContext& context, std::size_t offset) {
    return reinterpret_cast<T*>(context.scratch + offset);
  }

  // [directions, rows, columns] to [directions, columns, rows]: products want contiguous rows.
  static StridedCopy Transposition(const TensorInfo& weights) {
    const Shape& s = weights.shape;
    const std::array<std::int64_t, 3> dims{s[0], s[2], s[1]}, strides{s[1] * s[2], 1, s[2]};
    return {weights.dtype, dims, strides};
  }

  // `count` rows of A, `k` long, times columns [first, first + n) of W^T or R^T.
  BatchedProduct MakeProduct(std::int64_t count, std::int64_t k, std::int64_t first,
                             std::int64_t n) const {
    const std::int64_t columns = Gates(cell) * sizes_.hidden;
    return {{count, k, k, 1}, {k, n, columns, 1}, {{0, first, 0}}, 1.f, vector_};
  }
  // Gates that are computed from the hidden state as it is.
  std::int64_t StateGates() const {
    return cell == Cell::kGru && !linear_before_reset_ ? 2 : Gates(cell);
  }

  void RunDirection(const RunContext& context, const std::int32_t* lengths, std::int64_t d) const {
    const Sizes& s = sizes_;
    const std::int64_t rows = Gates(cell) * s.hidden;
    const T* w =
        (packed_w_ ? packed_w_->data<const T>() : At(context, memory_.w)) + d * s.input * rows;
    const T* r =
        (packed_r_ ? packed_r_->data<const T>() : At(context, memory_.r)) + d * s.hidden * rows;
    T* inputs = At(context, memory_.inputs);
    input_product_.template Run<T>(context.inputs[kX].data<const T>(), w, inputs, context.parallel);
    AddBias(context, d, inputs);
    LoadState(context, kInitialH, d, At(context, memory_.h));
    LoadState(context, kInitialC, d, At(context, memory_.c));
    T* y = context.HasOutput(kY) ? context.outputs[kY].data<T>() : nullptr;

    const bool reverse = d == 1 || first_is_reverse_;
    T* gates = At(context, memory_.gates);
    T* h = At(context, memory_.h);
    T* c = At(context, memory_.c);
    T* work = At(context, memory_.work);
    for (std::int64_t step = 0; step < s.steps; ++step) {
      // Sequence b is at step t; those that have ended are only padded.
      const auto length = [&](std::int64_t b) {
        return lengths == nullptr ? s.steps : std::int64_t{lengths[b]};
      };
      const auto at = [&](std::int64_t b) { return reverse ? length(b) - 1 - step : step; };
      const auto for_active = [&](const auto& f) {
        ForBatch(context.parallel, [&](std::int64_t b) {
          if (step < length(b)) f(b, inputs + s.InputRow(at(b), b) * rows, gates + b * rows);
        });
      };
      if constexpr (cell == Cell::kGru) {
        GruStep(context, d, r, h, gates, work, for_active);
      } else {
        state_product_.template Run<T>(h, r, gates, context.parallel);
        for_active([&](std::int64_t b, const T* x, T* g) {
          Add(g, x, rows);
          if constexpr (cell == Cell::kRnn) {
            Activate(d, 0, g, s.hidden);
            std::copy_n(g, s.hidden, h + b * s.hidden);
          } else {
            LstmCell(context, d, g, h + b * s.hidden, c + b * s.hidden, work + b * s.hidden);
          }
        });
      }
      if (y == nullptr) continue;
      for (std::int64_t b = 0; b < s.batch; ++b) {
        const bool active = step < length(b);
        T* to = y + s.OutputRow(active ? at(b) : step, d, b) * s.hidden;
        if (active) {
          std::copy_n(h + b * s.hidden, s.hidden, to);
        } else {
          std::fill_n(to, s.hidden, T{});
        }
      }
    }
    StoreState(context, kLastH, d, h);
    if constexpr (cell == Cell::kLstm) StoreState(context, kLastC, d, c);
  }

  template <typename F>
  void ForBatch(Parallel& parallel, const F& f) const {
    constexpr std::int64_t kGrain = 4096;  // elements of states that are worth a task
    const std::int64_t grain =
        std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, sizes_.hidden));
    parallel.For((sizes_.batch + grain - 1) / grain, [&](std::int64_t task, int) {
      const std::int64_t end = std::min(sizes_.batch, (task + 1) * grain);
      for (std::int64_t b = task * grain; b < end; ++b) f(b);
    });
  }

  void AddBias(const RunContext& context, std::int64_t d, T* inputs) const {
    if (!context.HasInput(kB)) return;
    const std::int64_t rows = Gates(cell) * sizes_.hidden;
    const T* wb = context.inputs[kB].data<const T>() + d * 2 * rows;
    const T* rb = wb + rows;
    T* bias = At(context, memory_.bias);
    std::copy_n(wb, rows, bias);
    Add(bias, rb, SeparateRecurrentBias() ? rows - sizes_.hidden : rows);
    const std::int64_t count = sizes_.steps * sizes_.batch;
    for (std::int64_t i = 0; i < count; ++i) Add(inputs + i * rows, bias, rows);
  }

  // With linear_before_reset, GRU's reset gate scales the recurrent bias of the hidden gate too.
  bool SeparateRecurrentBias() const { return cell == Cell::kGru && linear_before_reset_; }

  void LoadState(const RunContext& context, std::size_t input, std::int64_t d, T* state) const {
    for (std::int64_t b = 0; b < sizes_.batch; ++b) {
      T* to = state + b * sizes_.hidden;
      if (context.HasInput(input)) {
        std::copy_n(context.inputs[input].data<const T>() + sizes_.StateRow(d, b) * sizes_.hidden,
                    sizes_.hidden, to);
      } else {
        std::fill_n(to, sizes_.hidden, T{});
      }
    }
  }

  void StoreState(const RunContext& context, std::size_t output, std::int64_t d,
                  const T* state) const {
    if (!context.HasOutput(output)) return;
    for (std::int64_t b = 0; b < sizes_.batch; ++b) {
      std::copy_n(state + b * sizes_.hidden, sizes_.hidden,
                  context.outputs[output].data<T>() + sizes_.StateRow(d, b) * sizes_.hidden);
    }
  }

  // to += x
  void Add(T* to, const T* x, std::int64_t n) const {
    if constexpr (std::is_same_v<T, float>) {
      if (vector_) return ApplyBinary(BinaryFn::kAdd, {to}, {x}, to, n);
    }
    for (std::int64_t i = 0; i < n; ++i) to[i] += x[i];
  }

  // to *= x
  void Scale(T* to, const T* x, std::int64_t n) const {
    if constexpr (std::is_same_v<T, float>) {
      if (vector_) return ApplyBinary(BinaryFn::kMul, {to}, {x}, to, n);
    }
    for (std::int64_t i = 0; i < n; ++i) to[i] *= x[i];
  }

  // Activation number k of a direction, in place, after the clipping of its input.
  void Activate(std::int64_t d, std::size_t k, T* x, std::int64_t n) const {
    const std::size_t per_direction = cell == Cell::kRnn ? 1 : cell == Cell::kGru ? 2 : 3;
    const RecurrentActivation& a = activations_[static_cast<std::size_t>(d) * per_direction + k];
    if (clip_ > 0) {
      for (std::int64_t i = 0; i < n; ++i) x[i] = std::min(std::max(x[i], -clip_), clip_);
    }
    if constexpr (std::is_same_v<T, float>) {
      const auto unary = a.AsUnary();
      if (vector_ && unary) return ApplyUnary(*unary, x, x, n);
    }
    for (std::int64_t i = 0; i < n; ++i) x[i] = static_cast<T>(a(static_cast<double>(x[i])));
  }

  // g: gates i, o, f, c before their activations, without the peepholes.
  void LstmCell(const RunContext& context, std::int64_t d, T* g, T* h, T* c, T* work) const {
    const std::int64_t n = sizes_.hidden;
    T *input = g, *output = g + n, *forget = g + 2 * n, *candidate = g + 3 * n;
    const T* p = context.HasInput(kPeepholes)
                     ? context.inputs[kPeepholes].data<const T>() + d * 3 * n
                     : nullptr;
    const auto peep = [&](T* gate, std::int64_t which) {
      if (p == nullptr) return;
      for (std::int64_t i = 0; i < n; ++i) gate[i] += p[which * n + i] * c[i];
    };
    peep(input, 0);
    Activate(d, 0, input, n);
    if (couples_) {
      for (std::int64_t i = 0; i < n; ++i) forget[i] = T{1} - input[i];
    } else {
      peep(forget, 2);
      Activate(d, 0, forget, n);
    }
    Activate(d, 1, candidate, n);
    Scale(c, forget, n);
    Scale(candidate, input, n);
    Add(c, candidate, n);
    peep(output, 1);
    Activate(d, 0, output, n);
    std::copy_n(c, n, work);
    Activate(d, 2, work, n);
    std::copy_n(output, n, h);
    Scale(h, work, n);
  }

  // Gates z, r, h of all sequences: H' = (1 - z) h + z H.
  template <typename ForActive>
  void GruStep(const RunContext& context, std::int64_t d, const T* r, T* h, T* gates, T* work,
               const ForActive& for_active) const {
    const Sizes& s = sizes_;
    const std::int64_t n = s.hidden, rows = 3 * n;
    const auto finish = [&](std::int64_t b, const T* z, T* candidate) {
      Activate(d, 1, candidate, n);
      T* state = h + b * n;
      for (std::int64_t i = 0; i < n; ++i) {
        state[i] = candidate[i] + z[i] * (state[i] - candidate[i]);
      }
    };
    if (linear_before_reset_) {
      const T* bias = context.HasInput(kB)
                          ? context.inputs[kB].data<const T>() + d * 2 * rows + rows + 2 * n
                          : nullptr;
      state_product_.template Run<T>(h, r, gates, context.parallel);
      for_active([&](std::int64_t b, const T* x, T* g) {
        Add(g, x, 2 * n);
        Activate(d, 0, g, 2 * n);
        if (bias != nullptr) Add(g + 2 * n, bias, n);
        Scale(g + 2 * n, g + n, n);
        Add(g + 2 * n, x + 2 * n, n);
        finish(b, g, g + 2 * n);
      });
      return;
    }
    // z and r of all sequences lie first, [batch, 2, hidden], then h.
    T* candidates = gates + s.batch * 2 * n;
    state_product_.template Run<T>(h, r, gates, context.parallel);
    for_active([&](std::int64_t b, const T* x, T*) {
      T* g = gates + b * 2 * n;
      Add(g, x, 2 * n);
      Activate(d, 0, g, 2 * n);
      std::copy_n(h + b * n, n, work + b * n);
      Scale(work + b * n, g + n, n);
    });
    reset_product_.template Run<T>(work, r, candidates, context.parallel);
    for_active([&](std::int64_t b, const T* x, T*) {
      Add(candidates + b * n, x + 2 * n, n);
      finish(b, gates + b * 2 * n, candidates + b * n);
    });
  }

  Sizes sizes_;
  std::vector<RecurrentActivation> activations_;
  T clip_;                    // 0: none
  bool couples_;              // LSTM's forget gate is 1 - input gate
  bool linear_before_reset_;  // of GRU
  bool first_is_reverse_, vector_;
  StridedCopy transpose_w_, transpose_r_;
  BatchedProduct input_product_, state_product_;
  BatchedProduct reset_product_;  // of GRU: the hidden gate's, from the reset state
  std::shared_ptr<const Tensor> packed_w_, packed_r_;
  Memory memory_{};
  std::size_t scratch_bytes_ = 0;
};

template <Cell cell>
std::unique_ptr<Kernel> PrepareRecurrent(const PrepareContext& context) {
  return Dispatch(
      context.inputs[kX].dtype, RecurrentTypes(), [&](auto tag) -> std::unique_ptr<Kernel> {
        return std::make_unique<RecurrentKernel<typename decltype(tag)::type, cell>>(context);
      });
}

template <Cell cell>
constexpr OpDef RecurrentOp(std::string_view type) {
  return {
      .type = type,
      .min_inputs = 3,
      .max_inputs = cell == Cell::kLstm ? 8 : 6,
      .infer = InferRecurrent<cell>,
      .prepare = PrepareRecurrent<cell>,
      .can_omit_output0 = true,
  };
}

}  // namespace

extern const OpDef kGruOp, kLstmOp, kRnnOp;
const OpDef kGruOp = RecurrentOp<Cell::kGru>("GRU");
const OpDef kLstmOp = RecurrentOp<Cell::kLstm>("LSTM");
const OpDef kRnnOp = RecurrentOp<Cell::kRnn>("RNN");

}  // namespace tessera
