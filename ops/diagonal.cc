// Matrices by their diagonals: EyeLike has ones on one of them, Trilu keeps what is on one side of
// one. Diagonal k holds the elements [i, i + k].
// https://onnx.ai/onnx/operators/onnx__EyeLike.html
// https://onnx.ai/onnx/operators/onnx__Trilu.html
#include <algorithm>
#include <cstring>

#include "ops/elements.h"
#include "ops/op.h"

namespace tessera {
namespace {

// The column in which diagonal k crosses row i of a matrix, or an end of [0, columns] if it does so
// outside of it.
std::int64_t DiagonalColumn(std::int64_t i, std::int64_t k, std::int64_t columns) {
  if (k >= columns) return columns;
  return std::clamp<std::int64_t>(i + k, 0, columns);
}

void InferEyeLike(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  Require(in.shape.rank() == 2, "shape ", in.shape, " is not that of a matrix");
  DType dtype = in.dtype;
  if (context.node.attributes.Has("dtype")) {
    const std::int64_t wanted = context.node.attributes.Int("dtype", 0);
    const auto known = DTypeFromOnnx(wanted);
    Require(known.has_value(), "ONNX element type ", wanted, " is not supported");
    dtype = *known;
  }
  context.SetOutput(0, dtype, in.shape);
}

template <typename T>
class EyeLikeKernel final : public Kernel {
 public:
  explicit EyeLikeKernel(const PrepareContext& context) : k_(context.node.attributes.Int("k", 0)) {}
  std::string_view name() const override { return "eye_like"; }
  void Run(const RunContext& context) const override {
    const Shape& shape = context.outputs[0].shape;
    T* out = context.outputs[0].data<T>();
    std::fill_n(out, shape.NumElements(), T(0));
    for (std::int64_t i = 0; i < shape[0]; ++i) {
      const std::int64_t column = DiagonalColumn(i, k_, shape[1]);
      if (column - i == k_ && column < shape[1]) out[i * shape[1] + column] = T(1);
    }
  }

 private:
  std::int64_t k_;
};

std::unique_ptr<Kernel> PrepareEyeLike(const PrepareContext& context) {
  return Dispatch(context.outputs[0].dtype, AllTypes(), [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<EyeLikeKernel<typename decltype(tag)::type>>(context);
  });
}

void InferTrilu(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  Require(in.shape.rank() >= 2, "shape ", in.shape, " is not that of matrices");
  if (context.HasInput(1)) {
    const TensorInfo& k = context.inputs[1];
    Require(k.dtype == DType::kInt64 && k.shape.NumElements() == 1, "k is ", k.dtype, " ", k.shape,
            " instead of an int64");
  }
  InferSameAsInput0(context);
}

class TriluKernel final : public Kernel {
 public:
  explicit TriluKernel(const PrepareContext& context)
      : upper_(context.node.attributes.Int("upper", 1) != 0),
        has_k_(context.HasInput(1)),
        element_bytes_(static_cast<std::int64_t>(SizeOf(context.inputs[0].dtype))) {}
  std::string_view name() const override { return "trilu"; }
  bool CanOverwriteInput(std::size_t i) const override { return i == 0; }
  void Run(const RunContext& context) const override {
    const Shape& shape = context.outputs[0].shape;
    const std::int64_t rows = shape[shape.rank() - 2], columns = shape[shape.rank() - 1];
    if (shape.NumElements() == 0) return;
    const std::int64_t k = has_k_ ? *context.inputs[1].data<const std::int64_t>() : 0;
    const auto* in = context.inputs[0].data<const std::byte>();
    auto* out = context.outputs[0].data<std::byte>();
    const std::int64_t row_bytes = columns * element_bytes_;
    context.parallel.For(shape.NumElements(0, shape.rank() - 2), [&](std::int64_t matrix, int) {
      for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t offset = (matrix * rows + i) * row_bytes;
        // Where what is kept begins (upper) or ends (lower).
        const std::int64_t cut = (upper_ || k == INT64_MAX ? DiagonalColumn(i, k, columns)
                                                           : DiagonalColumn(i, k + 1, columns)) *
                                 element_bytes_;
        const std::int64_t begin = upper_ ? cut : 0, end = upper_ ? row_bytes : cut;
        std::memset(out + offset, 0, static_cast<std::size_t>(begin));
        if (in != out) {
          std::memcpy(out + offset + begin, in + offset + begin,
                      static_cast<std::size_t>(end - begin));
        }
        std::memset(out + offset + end, 0, static_cast<std::size_t>(row_bytes - end));
      }
    });
  }

 private:
  bool upper_, has_k_;
  std::int64_t element_bytes_;
};

}  // namespace

extern const OpDef kEyeLikeOp, kTriluOp;
const OpDef kEyeLikeOp = {
    .type = "EyeLike",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferEyeLike,
    .prepare = PrepareEyeLike,
    .first_opset = 9,
};
const OpDef kTriluOp = {
    .type = "Trilu",
    .min_inputs = 1,
    .max_inputs = 2,
    .infer = InferTrilu,
    .prepare = PrepareKernel<TriluKernel>,
    .first_opset = 14,
};

}  // namespace tessera
