// Einsum: sums of products of any number of tensors, as an equation says that names their axes.
// https://onnx.ai/onnx/operators/onnx__Einsum.html
//
// Operands are contracted in pairs, from the left: axes that nobody needs any more are summed
// first, then the two become stacks of matrices and are multiplied.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ops/batched_product.h"
#include "ops/elements.h"
#include "ops/op.h"
#include "ops/row_sums.h"
#include "ops/strided_copy.h"

namespace tessera {
namespace {

// Names of axes: the letters A-Z and a-z in their order, then the axes of an ellipsis, whose last
// is the last label.
using Label = int;
constexpr Label kFirstOfEllipsis = 52, kLabels = kFirstOfEllipsis + Shape::kMaxRank;

constexpr bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool IsLower(char c) { return c >= 'a' && c <= 'z'; }

using Labels = std::vector<Label>;

bool Has(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// An equation with the shapes that it is applied to.
struct Equation {
  Equation(std::string text, const std::vector<Shape>& shapes);

  std::vector<Labels> terms;  // the axes of each operand
  Labels output;
  std::array<std::int64_t, kLabels> sizes{};

 private:
  // The labels of a term; those of an ellipsis stand for `ellipsis_rank` axes.
  static Labels ParseTerm(std::string_view term, int ellipsis_rank);
  void ImplicitOutput();
};

constexpr std::string_view kEllipsis = "...";

Labels Equation::ParseTerm(std::string_view term, int ellipsis_rank) {
  Labels labels;
  bool has_ellipsis = false;
  for (std::size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if (IsUpper(c) || IsLower(c)) {
      labels.push_back(IsUpper(c) ? c - 'A' : 26 + (c - 'a'));
      continue;
    }
    Require(term.substr(i, kEllipsis.size()) == kEllipsis && !has_ellipsis, "term '", term,
            "' of the equation has a '", c, "' that is no letter or single ellipsis");
    has_ellipsis = true;
    for (int d = ellipsis_rank; d > 0; --d) labels.push_back(kLabels - d);
    i += kEllipsis.size() - 1;
  }
  return labels;
}

// Whatever occurs once, in alphabetical order, after the axes of the ellipsis.
void Equation::ImplicitOutput() {
  std::array<int, kLabels> uses{};
  for (const Labels& term : terms) {
    for (const Label l : term) ++uses[static_cast<std::size_t>(l)];
  }
  for (Label l = kFirstOfEllipsis; l < kLabels; ++l) {
    if (uses[static_cast<std::size_t>(l)] > 0) output.push_back(l);
  }
  for (Label l = 0; l < kFirstOfEllipsis; ++l) {
    if (uses[static_cast<std::size_t>(l)] == 1) output.push_back(l);
  }
}

Equation::Equation(std::string text, const std::vector<Shape>& shapes) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const std::size_t arrow = text.find("->");
  const std::string_view left = std::string_view(text).substr(0, arrow);
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= left.size();) {
    const std::size_t end = std::min(left.find(',', begin), left.size());
    parts.push_back(left.substr(begin, end - begin));
    begin = end + 1;
  }
  Require(parts.size() == shapes.size(), "equation '", text, "' has ", parts.size(), " terms for ",
          shapes.size(), " operands");
  int ellipsis_rank = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const int letters = static_cast<int>(ParseTerm(parts[i], 0).size());
    const int rest = shapes[i].rank() - letters;
    const bool has_ellipsis = parts[i].find('.') != std::string_view::npos;
    Require(has_ellipsis ? rest >= 0 : rest == 0, "term '", parts[i],
            "' of the equation does not fit shape ", shapes[i]);
    terms.push_back(ParseTerm(parts[i], rest));
    ellipsis_rank = std::max(ellipsis_rank, rest);
    for (int d = 0; d < shapes[i].rank(); ++d) {
      const Label l = terms.back()[static_cast<std::size_t>(d)];
      std::int64_t& size = sizes[static_cast<std::size_t>(l)];
      const std::int64_t dim = shapes[i][d];
      const bool is_new =
          std::none_of(terms.begin(), terms.end() - 1,
                       [l](const Labels& term) { return Has(term, l); }) &&
          std::find(terms.back().begin(), terms.back().begin() + d, l) == terms.back().begin() + d;
      if (is_new || size == 1) size = dim;
      Require(dim == 1 || dim == size, "shape ", shapes[i], " does not fit term '", parts[i],
              "' of equation '", text, "', where an axis has ", size, " elements already");
    }
  }
  if (arrow == std::string::npos) {
    ImplicitOutput();
    return;
  }
  const std::string_view right = std::string_view(text).substr(arrow + 2);
  output = ParseTerm(right, ellipsis_rank);
  for (auto it = output.begin(); it != output.end(); ++it) {
    Require(std::find(output.begin(), it, *it) == it, "output '", right,
            "' of the equation has an axis twice");
    Require(
        std::any_of(terms.begin(), terms.end(), [&](const Labels& term) { return Has(term, *it); }),
        "output '", right, "' of the equation has an axis that no operand has");
  }
}

template <typename Infos>
Equation ReadEquation(const OpNode& node, const Infos& inputs) {
  std::vector<Shape> shapes;
  for (const TensorInfo& in : inputs) shapes.push_back(in.shape);
  return {node.attributes.String("equation", ""), shapes};
}

void InferEinsum(const InferContext& context) {
  const TensorInfo& first = context.Input(0);
  RequireType(first.dtype, NumberTypes());
  Require(context.node.attributes.Has("equation"), "attribute equation is missing");
  for (std::size_t i = 0; i < context.inputs.size(); ++i) {
    Require(context.Input(i).dtype == first.dtype, "operands of types ", first.dtype, " and ",
            context.Input(i).dtype);
  }
  const Equation equation = ReadEquation(context.node, context.inputs);
  Shape out;
  for (const Label l : equation.output) out.PushBack(equation.sizes[static_cast<std::size_t>(l)]);
  context.SetOutput(0, first.dtype, out);
}

template <typename T>
class EinsumKernel final : public Kernel {
 public:
  explicit EinsumKernel(const PrepareContext& context)
      : dtype_(context.inputs[0].dtype),
        vector_(!context.reference),
        inputs_(static_cast<int>(context.inputs.size())) {
    const Equation equation = ReadEquation(context.node, context.inputs);
    sizes_ = equation.sizes;
    Labels wanted;  // axes of one element are no axes here
    for (const Label l : equation.output) {
      if (Size(l) != 1) wanted.push_back(l);
    }
    std::vector<Piece> pieces;
    for (int i = 0; i < inputs_; ++i) {
      const auto u = static_cast<std::size_t>(i);
      pieces.push_back(InputPiece(i, context.inputs[u].shape, equation.terms[u]));
      for (const Label l : pieces.back().labels) is_zero_ = is_zero_ || Size(l) == 0;
    }
    if (is_zero_) return;
    Piece done = Reduced(std::move(pieces[0]), Needed(pieces, 1, wanted), wanted);
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      Labels needed = Needed(pieces, i + 1, wanted);
      Labels needed_by_pair = needed;
      needed_by_pair.insert(needed_by_pair.end(), done.labels.begin(), done.labels.end());
      const Piece next = Reduced(std::move(pieces[i]), needed_by_pair, wanted);
      done = Contracted(done, next, needed, wanted);
    }
    if (done.buffer >= inputs_ && IsContiguous(done) && done.labels == wanted) {
      steps_.back().to = kOutput;
    } else {
      AddCopy(done, wanted, kOutput);
    }
  }

  std::string_view name() const override { return "einsum"; }
  std::size_t ScratchBytesPerThread() const override { return scratch_bytes_; }
  double Flops() const override {
    double flops = 0;
    for (const Step& step : steps_) flops += step.product ? step.product->Flops() : 0;
    return flops;
  }

  void Run(const RunContext& context) const override {
    T* out = context.outputs[0].data<T>();
    if (is_zero_) {
      std::fill_n(out, context.outputs[0].size(), static_cast<T>(ComputeType<T>{}));
      return;
    }
    const auto at = [&](int buffer) -> T* {
      if (buffer == kOutput) return out;
      if (buffer < inputs_) return context.inputs[static_cast<std::size_t>(buffer)].data<T>();
      const std::size_t offset = offsets_[static_cast<std::size_t>(buffer - inputs_)];
      return reinterpret_cast<T*>(context.scratch + offset);
    };
    for (const Step& step : steps_) {
      if (step.copy) {
        step.copy->Run(at(step.a), at(step.to), context.parallel);
      } else if (step.product) {
        step.product->template Run<T>(at(step.a), at(step.b), at(step.to), context.parallel);
      } else if (step.count > 0) {
        SumRows(at(step.a), at(step.to), step.n, step.count, context.parallel);
      } else {
        Multiply(at(step.a), at(step.b), at(step.to), step.n, context.parallel);
      }
    }
  }

 private:
  using C = ComputeType<T>;
  static constexpr int kOutput = -1;  // else a number of an input, or inputs_ + that of a buffer

  // A tensor with one axis a label.
  struct Piece {
    int buffer;
    Labels labels;
    std::vector<std::int64_t> strides;
  };
  // copy: a to `to`. product: a times b. count > 0: sums of n rows of a. Else n products of
  // elements.
  struct Step {
    int a, b, to;
    std::optional<StridedCopy> copy;
    std::optional<BatchedProduct> product;
    std::int64_t n = 0, count = 0;
  };

  std::int64_t Size(Label l) const { return sizes_[static_cast<std::size_t>(l)]; }
  std::int64_t Count(const Labels& labels) const {
    std::int64_t n = 1;
    for (const Label l : labels) n *= Size(l);
    return n;
  }

  // A repeated axis is a diagonal; an axis of one element is broadcast: it goes.
  Piece InputPiece(int i, const Shape& shape, const Labels& term) const {
    Piece piece{i, {}, {}};
    const auto strides = RowMajorStrides(shape);
    for (int d = 0; d < shape.rank(); ++d) {
      const auto u = static_cast<std::size_t>(d);
      if (shape[d] == 1) continue;
      const auto it = std::find(piece.labels.begin(), piece.labels.end(), term[u]);
      if (it == piece.labels.end()) {
        piece.labels.push_back(term[u]);
        piece.strides.push_back(strides[u]);
      } else {
        piece.strides[static_cast<std::size_t>(it - piece.labels.begin())] += strides[u];
      }
    }
    return piece;
  }

  // Axes of the output and of the operands from `first` on.
  static Labels Needed(const std::vector<Piece>& pieces, std::size_t first, const Labels& output) {
    Labels needed = output;
    for (std::size_t i = first; i < pieces.size(); ++i) {
      needed.insert(needed.end(), pieces[i].labels.begin(), pieces[i].labels.end());
    }
    return needed;
  }

  // Axes of the output in its order, then the others.
  static void Sort(Labels& labels, const Labels& output) {
    std::sort(labels.begin(), labels.end(), [&](Label a, Label b) {
      const auto ia = std::find(output.begin(), output.end(), a);
      const auto ib = std::find(output.begin(), output.end(), b);
      return ia != ib ? ia < ib : a < b;
    });
  }

  bool IsContiguous(const Piece& piece) const {
    std::int64_t stride = 1;
    for (std::size_t d = piece.labels.size(); d-- > 0; stride *= Size(piece.labels[d])) {
      if (piece.strides[d] != stride) return false;
    }
    return true;
  }

  int NewBuffer(const Labels& labels) {
    offsets_.push_back(scratch_bytes_);
    scratch_bytes_ += RoundUp(static_cast<std::size_t>(Count(labels)) * sizeof(T), kAlignment);
    return inputs_ + static_cast<int>(offsets_.size()) - 1;
  }

  // The row-major tensor of these axes in a buffer.
  Piece Contiguous(int buffer, Labels labels) const {
    Require(labels.size() <= static_cast<std::size_t>(Shape::kMaxRank),
            "an intermediate result of more than ", Shape::kMaxRank, " dimensions");
    Piece piece{buffer, std::move(labels), {}};
    piece.strides.resize(piece.labels.size());
    std::int64_t stride = 1;
    for (std::size_t d = piece.labels.size(); d-- > 0; stride *= Size(piece.labels[d])) {
      piece.strides[d] = stride;
    }
    return piece;
  }

  void AddCopy(const Piece& from, const Labels& labels, int to) {
    std::vector<std::int64_t> dims, strides;
    for (const Label l : labels) {
      const auto it = std::find(from.labels.begin(), from.labels.end(), l);
      dims.push_back(Size(l));
      strides.push_back(from.strides[static_cast<std::size_t>(it - from.labels.begin())]);
    }
    steps_.push_back({from.buffer, 0, to, StridedCopy(dtype_, dims, strides), {}});
  }

  // `piece` with its axes in this order, row-major.
  Piece Ordered(const Piece& piece, const Labels& labels) {
    if (piece.labels == labels && IsContiguous(piece)) return piece;
    const int buffer = NewBuffer(labels);
    AddCopy(piece, labels, buffer);
    return Contiguous(buffer, labels);
  }

  // Sums over the axes that are not needed.
  Piece Reduced(Piece piece, const Labels& needed, const Labels& output) {
    Labels kept, summed;
    for (const Label l : piece.labels) (Has(needed, l) ? kept : summed).push_back(l);
    if (summed.empty()) return piece;
    Sort(kept, output);
    Labels order = kept;
    order.insert(order.end(), summed.begin(), summed.end());
    const Piece rows = Ordered(piece, order);
    const int to = NewBuffer(kept);
    steps_.push_back({rows.buffer, 0, to, {}, {}, Count(kept), Count(summed)});
    return Contiguous(to, kept);
  }

  // The product of two, summed over those of their common axes that are not needed.
  Piece Contracted(const Piece& a, const Piece& b, const Labels& needed, const Labels& output) {
    Labels batch, summed, left, right;
    for (const Label l : a.labels) {
      (!Has(b.labels, l) ? left : Has(needed, l) ? batch : summed).push_back(l);
    }
    for (const Label l : b.labels) {
      if (!Has(a.labels, l)) right.push_back(l);
    }
    for (Labels* labels : {&batch, &summed, &left, &right}) Sort(*labels, output);
    const auto joined = [](const Labels& x, const Labels& y, const Labels& z) {
      Labels all = x;
      all.insert(all.end(), y.begin(), y.end());
      all.insert(all.end(), z.begin(), z.end());
      return all;
    };
    const std::int64_t m = Count(left), k = Count(summed), n = Count(right);
    const std::int64_t stack = Count(batch);
    // A may lie the other way round: the product takes any strides of it.
    const bool transposed = a.labels == joined(batch, summed, left) && IsContiguous(a);
    const Piece pa = transposed ? a : Ordered(a, joined(batch, left, summed));
    const Piece pb = Ordered(b, joined(batch, summed, right));
    const Labels labels = joined(batch, left, right);
    const int to = NewBuffer(labels);
    if (m == 1 && k == 1 && n == 1) {
      steps_.push_back({pa.buffer, pb.buffer, to, {}, {}, stack, 0});
    } else {
      std::vector<Product> products;
      for (std::int64_t i = 0; i < stack; ++i)
        products.push_back({i * m * k, i * k * n, i * m * n});
      const Matrix ma = transposed ? Matrix{m, k, 1, m} : Matrix{m, k, k, 1};
      steps_.push_back({pa.buffer,
                        pb.buffer,
                        to,
                        {},
                        BatchedProduct(ma, {k, n, n, 1}, std::move(products), 1.f, vector_)});
    }
    return Contiguous(to, labels);
  }

  void SumRows(const T* in, T* out, std::int64_t n, std::int64_t count, Parallel& parallel) const {
    parallel.For(n, [&](std::int64_t i, int) {
      const T* row = in + i * count;
      if constexpr (std::is_same_v<T, float>) {
        if (vector_) {
          out[i] = static_cast<float>(ReduceRow(RowSum::kSum, row, count));
          return;
        }
      }
      std::conditional_t<std::is_integral_v<T>, std::uint64_t, double> sum{};
      for (std::int64_t j = 0; j < count; ++j) {
        sum += static_cast<decltype(sum)>(static_cast<C>(row[j]));
      }
      out[i] = static_cast<T>(static_cast<C>(sum));
    });
  }

  void Multiply(const T* a, const T* b, T* out, std::int64_t n, Parallel& parallel) const {
    constexpr std::int64_t kGrain = 16384;  // elements that are worth a task
    parallel.For((n + kGrain - 1) / kGrain, [&](std::int64_t task, int) {
      const std::int64_t end = std::min(n, (task + 1) * kGrain);
      for (std::int64_t i = task * kGrain; i < end; ++i) {
        // Unsigned, so that integers wrap around.
        using U = std::conditional_t<std::is_integral_v<T>, std::uint64_t, C>;
        out[i] = static_cast<T>(static_cast<U>(static_cast<C>(a[i])) *
                                static_cast<U>(static_cast<C>(b[i])));
      }
    });
  }

  DType dtype_;
  bool vector_;
  int inputs_;
  std::array<std::int64_t, kLabels> sizes_{};
  bool is_zero_ = false;  // an axis has no elements
  std::vector<Step> steps_;
  std::vector<std::size_t> offsets_;  // of the buffers, in the first thread's scratch
  std::size_t scratch_bytes_ = 0;
};

std::unique_ptr<Kernel> PrepareEinsum(const PrepareContext& context) {
  return Dispatch(context.inputs[0].dtype, NumberTypes(), [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<EinsumKernel<typename decltype(tag)::type>>(context);
  });
}

}  // namespace

extern const OpDef kEinsumOp;
const OpDef kEinsumOp = {
    .type = "Einsum",
    .min_inputs = 1,
    .max_inputs = -1,
    .infer = InferEinsum,
    .prepare = PrepareEinsum,
    .first_opset = 12,
};

}  // namespace tessera
