// Gemm and MatMul.
// https://onnx.ai/onnx/operators/onnx__Gemm.html
// https://onnx.ai/onnx/operators/onnx__MatMul.html
#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

#include "ops/batched_product.h"
#include "ops/elements.h"
#include "ops/epilogue.h"
#include "ops/matmul_shapes.h"
#include "ops/op.h"

namespace tessera {
namespace {

// Integers since opset 9.
using MatMulTypes =
    TypeList<float, double, Half, std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>;

// --- Gemm: Y = alpha op(A) op(B) + beta C

void InferGemm(const InferContext& context) {
  const TensorInfo& a = context.Input(0);
  const TensorInfo& b = context.Input(1);
  RequireType(a.dtype, context.node.opset, FloatTypes(), 9, MatMulTypes());
  Require(a.dtype == b.dtype, "A is ", a.dtype, ", B is ", b.dtype);
  Require(a.shape.rank() == 2 && b.shape.rank() == 2, "A ", a.shape, " and B ", b.shape,
          " are not both matrices");
  const Matrix ma = RowMajorMatrix(a.shape, context.node.attributes.Int("transA", 0) != 0);
  const Matrix mb = RowMajorMatrix(b.shape, context.node.attributes.Int("transB", 0) != 0);
  Require(ma.columns == mb.rows, "A ", a.shape, " and B ", b.shape, " do not fit together");
  const Shape out{ma.rows, mb.columns};
  Require(context.HasInput(2) || context.node.opset >= 11, "input C is missing");
  if (context.HasInput(2)) {
    const TensorInfo& c = context.Input(2);
    Require(c.dtype == a.dtype, "A is ", a.dtype, ", C is ", c.dtype);
    Require(c.shape.rank() <= 2 && BroadcastShapes(c.shape, out) == out, "C ", c.shape,
            " cannot be broadcast to ", out);
  }
  context.SetOutput(0, a.dtype, out);
}

template <typename T>
class GemmKernel final : public Kernel {
 public:
  explicit GemmKernel(const PrepareContext& context)
      : product_(MakeProduct(context)),
        beta_(context.node.attributes.Float("beta", 1.f)),
        epilogue_(ReadEpilogue(context.node)),
        reference_(context.reference),
        rows_(context.outputs[0].shape[0]),
        columns_(context.outputs[0].shape[1]) {
    if (UsesPackedB(context)) {
      const std::shared_ptr<const Tensor>& b = context.inputs[1].constant;
      transposed_b_ = context.packs.Get<Tensor>(b, "transposed", [&] { return Transposed(*b); });
    }
    if (context.HasInput(2)) {
      const Shape& c = context.inputs[2].shape;
      const std::int64_t last = c.rank() >= 1 ? c[c.rank() - 1] : 1;
      c_row_step_ = c.rank() == 2 && c[0] != 1 ? last : 0;
      c_column_step_ = last != 1 ? 1 : 0;
    }
  }

  std::string_view name() const override { return "gemm"; }
  double Flops() const override { return product_.Flops(); }
  void Run(const RunContext& context) const override {
    const T* b = transposed_b_ ? transposed_b_->data<const T>() : context.inputs[1].data<const T>();
    T* out = context.outputs[0].data<T>();
    product_.Run(context.inputs[0].data<const T>(), b, out, context.parallel);
    if (context.HasInput(2)) {
      AddC(context.inputs[2].data<const T>(), out);
    }
    if constexpr (std::is_same_v<T, float>) {
      if (epilogue_.activation != Activation::kNone) Activate(out);
    }
  }

 private:
  void AddC(const T* c, T* out) const {
    for (std::int64_t i = 0; i < rows_; ++i) {
      const T* row = c + i * c_row_step_;
      T* to = out + i * columns_;
      for (std::int64_t j = 0; j < columns_; ++j) to[j] = Sum(to[j], row[j * c_column_step_]);
    }
  }

  T Sum(T product, T c) const {
    if constexpr (std::is_integral_v<T>) {
      // Wraps around, like the product.
      const T scaled =
          beta_ == 1.f ? c : ConvertElement<T>(static_cast<double>(beta_) * static_cast<double>(c));
      return static_cast<T>(static_cast<std::uint64_t>(product) +
                            static_cast<std::uint64_t>(scaled));
    } else {
      using C = ComputeType<T>;
      return static_cast<T>(static_cast<C>(product) + static_cast<C>(beta_) * static_cast<C>(c));
    }
  }

  void Activate(float* out) const {
    const std::int64_t n = rows_ * columns_;
    if (!reference_) return ApplyUnary(*AsUnary(epilogue_), out, out, n);
    for (std::int64_t i = 0; i < n; ++i) {
      out[i] = static_cast<float>(ApplyEpilogue(epilogue_, out[i], 0, 0));
    }
  }

  // The vector kernel wants contiguous rows of B.
  static bool UsesPackedB(const PrepareContext& context) {
    return std::is_same_v<T, float> && !context.reference && context.inputs[1].constant &&
           context.node.attributes.Int("transB", 0) != 0;
  }

  static Tensor Transposed(const Tensor& b) {
    const std::int64_t rows = b.shape()[0], columns = b.shape()[1];
    Tensor t(b.dtype(), {columns, rows});
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        t.data<T>()[j * rows + i] = b.data<const T>()[i * columns + j];
      }
    }
    return t;
  }

  static BatchedProduct MakeProduct(const PrepareContext& context) {
    const Attributes& attributes = context.node.attributes;
    const Matrix a = RowMajorMatrix(context.inputs[0].shape, attributes.Int("transA", 0) != 0);
    Matrix b = RowMajorMatrix(context.inputs[1].shape, attributes.Int("transB", 0) != 0);
    if (UsesPackedB(context)) b = {b.rows, b.columns, b.columns, 1};
    const bool vector = !context.reference && b.column_stride == 1;
    return {a, b, {{0, 0, 0}}, attributes.Float("alpha", 1.f), vector};
  }

  BatchedProduct product_;
  float beta_;
  Epilogue epilogue_;  // of float32 results only
  bool reference_;
  std::int64_t rows_, columns_;
  std::int64_t c_row_step_ = 0, c_column_step_ = 0;
  std::shared_ptr<const Tensor> transposed_b_;
};

std::unique_ptr<Kernel> PrepareGemm(const PrepareContext& context) {
  return Dispatch(context.inputs[0].dtype, MatMulTypes(), [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<GemmKernel<typename decltype(tag)::type>>(context);
  });
}

void InferFusedGemm(const InferContext& context) {
  InferGemm(context);
  RequireType(context.Input(0).dtype, TypeList<float>());
  Require(AsUnary(ReadEpilogue(context.node)).has_value(), "no such activation of a product");
}

// --- MatMul: numpy's rules, with stacks of matrices that are broadcast

void InferMatMul(const InferContext& context) {
  const TensorInfo& a = context.Input(0);
  const TensorInfo& b = context.Input(1);
  RequireType(a.dtype, context.node.opset, FloatTypes(), 9, MatMulTypes());
  Require(a.dtype == b.dtype, "A is ", a.dtype, ", B is ", b.dtype);
  context.SetOutput(0, a.dtype, MatMulShapes(a.shape, b.shape).out);
}

template <typename T>
class MatMulKernel final : public Kernel {
 public:
  explicit MatMulKernel(const PrepareContext& context) : product_(MakeProduct(context)) {}
  std::string_view name() const override { return "matmul"; }
  double Flops() const override { return product_.Flops(); }
  void Run(const RunContext& context) const override {
    product_.Run(context.inputs[0].data<const T>(), context.inputs[1].data<const T>(),
                 context.outputs[0].data<T>(), context.parallel);
  }

 private:
  static BatchedProduct MakeProduct(const PrepareContext& context) {
    const MatMulShapes s(context.inputs[0].shape, context.inputs[1].shape);
    const Matrix a = RowMajorMatrix(s.a, false), b = RowMajorMatrix(s.b, false);
    std::vector<Product> products;
    const std::int64_t n = s.batch.NumElements();
    for (std::int64_t i = 0; i < n; ++i) {
      products.push_back(
          {MatrixOffset(s.a, s.batch, i), MatrixOffset(s.b, s.batch, i), i * a.rows * b.columns});
    }
    return {a, b, std::move(products), 1.f, !context.reference};
  }

  BatchedProduct product_;
};

std::unique_ptr<Kernel> PrepareMatMul(const PrepareContext& context) {
  return Dispatch(context.inputs[0].dtype, MatMulTypes(), [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<MatMulKernel<typename decltype(tag)::type>>(context);
  });
}

}  // namespace

extern const OpDef kFusedGemmOp, kGemmOp, kMatMulOp;
const OpDef kFusedGemmOp = {
    .type = "FusedGemm",
    .min_inputs = 2,
    .max_inputs = 3,
    .infer = InferFusedGemm,
    .prepare = PrepareGemm,
    .internal = true,
};
const OpDef kGemmOp = {
    .type = "Gemm",
    .min_inputs = 2,
    .max_inputs = 3,
    .infer = InferGemm,
    .prepare = PrepareGemm,
};
const OpDef kMatMulOp = {
    .type = "MatMul",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = InferMatMul,
    .prepare = PrepareMatMul,
};

}  // namespace tessera
