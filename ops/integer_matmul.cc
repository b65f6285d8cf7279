// MatMulInteger, whose result is the sums, and QLinearMatMul, which scales them back to 8 bits.
// https://onnx.ai/onnx/operators/onnx__MatMulInteger.html
// https://onnx.ai/onnx/operators/onnx__QLinearMatMul.html
//
// Zero points and scales belong to the whole of an operand, or to the rows of A and the columns of
// B: then they are vectors, or stacks like those of the operand.
#include <algorithm>
#include <vector>

#include "ops/integer_product.h"
#include "ops/matmul_shapes.h"
#include "ops/quantize.h"

namespace tessera {
namespace {

// Inputs of the two operators.
namespace matmul_integer {
enum Input : std::size_t { kA, kB, kAZeroPoint, kBZeroPoint };
}
namespace qlinear {
enum Input : std::size_t {
  kA,
  kAScale,
  kAZeroPoint,
  kB,
  kBScale,
  kBZeroPoint,
  kYScale,
  kYZeroPoint
};
}

// A parameter for each row of A, or each column of B, or one for all. Throws Error for other
// shapes.
class LineParameter {
 public:
  // `operand` is a stack of matrices whose `lines` are rows or columns.
  enum class Lines : std::uint8_t { kRows, kColumns };
  LineParameter(const Shape& shape, const Shape& operand, Lines lines, const Shape& batch)
      : shape_(shape), batch_(batch) {
    const std::int64_t count = operand[operand.rank() - (lines == Lines::kRows ? 2 : 1)];
    if (shape.NumElements() == 1) return;
    // A vector goes with every matrix.
    Shape stack = shape;
    if (shape.rank() == 1) {
      stack = lines == Lines::kRows ? Shape{shape[0], 1} : Shape{1, shape[0]};
    }
    Shape expected = stack;
    expected[stack.rank() - 2] = lines == Lines::kRows ? count : 1;
    expected[stack.rank() - 1] = lines == Lines::kRows ? 1 : count;
    const Shape matrices = StackShape(operand);
    Require(stack == expected && stack.rank() <= operand.rank() &&
                BroadcastShapes(StackShape(stack), matrices) == matrices,
            "scales or zero points of shape ", shape, " for the ",
            lines == Lines::kRows ? "rows" : "columns", " of an operand of shape ", operand);
    shape_ = stack;
    step_ = 1;
  }

  // Whether all lines of a matrix have the same one.
  bool IsSingle() const { return step_ == 0; }
  // The element for line 0 of matrix `index` of the batch, and from there to the next line.
  std::int64_t First(std::int64_t index) const {
    return step_ == 0 ? 0 : MatrixOffset(shape_, batch_, index);
  }
  std::int64_t step() const { return step_; }

 private:
  Shape shape_, batch_;
  std::int64_t step_ = 0;
};

struct LineParameters {
  LineParameter rows, columns;
};

LineParameters ReadLineParameters(const MatMulShapes& s, const TensorInfo& a, const TensorInfo& b) {
  using Lines = LineParameter::Lines;
  return {{a.present ? a.shape : Shape{}, s.a, Lines::kRows, s.batch},
          {b.present ? b.shape : Shape{}, s.b, Lines::kColumns, s.batch}};
}

TensorInfo InfoOrAbsent(std::span<const TensorInfo> inputs, std::size_t i) {
  return i < inputs.size() ? inputs[i] : TensorInfo{};
}

// Where the sums of one row of a product go.
struct SumsRow {
  std::int64_t matrix, row, column;  // of the batch; the first column
  const std::int32_t* sums;
  std::int64_t n;
};

// All products of a batch, of operands less their zero points, in int32 that wraps around.
class IntegerMatMul {
 public:
  struct Operands {
    TensorView a, b, a_zero_point, b_zero_point;
  };

  IntegerMatMul(const MatMulShapes& shapes, LineParameters zero_points, bool reference)
      : shapes_(shapes),
        zero_points_(std::move(zero_points)),
        reference_(reference),
        matrices_(shapes.batch.NumElements()),
        rows_(shapes.a[shapes.a.rank() - 2]),
        columns_(shapes.b[shapes.b.rank() - 1]),
        depth_(shapes.a[shapes.a.rank() - 1]),
        padded_depth_(depth_ + depth_ % 2),
        tile_columns_(reference ? columns_ : ProductColumns(depth_)),
        tile_rows_(reference ? 1 : kProductRows) {}

  std::string_view name() const {
    return reference_ ? "integer_matmul_reference" : "integer_matmul";
  }
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  double Flops() const {
    return 2.0 * static_cast<double>(matrices_) * static_cast<double>(rows_ * columns_) *
           static_cast<double>(depth_);
  }
  // For the sums of a tile, the zero points of its columns, and the caller; and for the packed
  // operands.
  std::size_t ScratchBytesPerThread() const {
    const std::int64_t words = (tile_rows_ + 2) * tile_columns_;
    const std::int64_t packed =
        reference_ ? 0 : padded_depth_ * (tile_rows_ + tile_columns_) + 2 * tile_columns_;
    return static_cast<std::size_t>(words) * sizeof(std::int32_t) +
           static_cast<std::size_t>(packed) * sizeof(std::int16_t);
  }

  // Calls take(SumsRow, spare) for every row of every tile, from several threads at a time; `spare`
  // is space for as many floats as the row has columns, the same for all rows of a tile.
  // begin_tile(SumsRow, spare) comes before the first of them.
  template <typename BeginTile, typename Take>
  void Run(const Operands& operands, const RunContext& context, const BeginTile& begin_tile,
           const Take& take) const {
    if (matrices_ * rows_ * columns_ == 0) return;
    const std::int64_t column_tiles = (columns_ + tile_columns_ - 1) / tile_columns_;
    const std::int64_t row_tiles = (rows_ + tile_rows_ - 1) / tile_rows_;
    const std::int64_t tiles = row_tiles * column_tiles;
    context.parallel.For(matrices_ * tiles, [&](std::int64_t task, int thread) {
      const std::int64_t row = task % tiles / column_tiles * tile_rows_;
      const std::int64_t column = task % column_tiles * tile_columns_;
      const Tile tile{task / tiles, row, std::min(tile_rows_, rows_ - row), column,
                      std::min(tile_columns_, columns_ - column)};
      auto* sums = context.Scratch<std::int32_t>(thread);
      std::int32_t* zeros = sums + tile_rows_ * tile_columns_;
      auto* spare = reinterpret_cast<float*>(zeros + tile_columns_);
      auto* packed = reinterpret_cast<std::int16_t*>(spare + tile_columns_);
      const std::int64_t first_zero = zero_points_.columns.First(tile.matrix);
      for (std::int64_t j = 0; j < tile.n; ++j) {
        zeros[j] = ZeroPointAt(operands.b_zero_point,
                               first_zero + (column + j) * zero_points_.columns.step());
      }
      if (reference_) {
        PlainSums(operands, tile, zeros, sums);
      } else {
        PackedSums(operands, tile, zeros, packed, sums);
      }
      begin_tile(SumsRow{tile.matrix, row, column, nullptr, tile.n}, spare);
      for (std::int64_t i = 0; i < tile.m; ++i) {
        take(SumsRow{tile.matrix, row + i, column, sums + i * tile_columns_, tile.n}, spare);
      }
    });
  }

 private:
  struct Tile {
    std::int64_t matrix, row, m, column, n;
  };

  const std::byte* Row(const TensorView& t, const Shape& s, std::int64_t matrix,
                       std::int64_t row) const {
    return t.data<const std::byte>() + MatrixOffset(s, shapes_.batch, matrix) +
           row * s[s.rank() - 1];
  }
  std::int32_t RowZero(const Operands& operands, std::int64_t matrix, std::int64_t row) const {
    return ZeroPointAt(operands.a_zero_point,
                       zero_points_.rows.First(matrix) + row * zero_points_.rows.step());
  }

  // One row, in the order of the definition.
  void PlainSums(const Operands& operands, const Tile& tile, const std::int32_t* zeros,
                 std::int32_t* sums) const {
    const std::int32_t a_zero = RowZero(operands, tile.matrix, tile.row);
    const std::byte* a_row = Row(operands.a, shapes_.a, tile.matrix, tile.row);
    const std::byte* b_matrix = Row(operands.b, shapes_.b, tile.matrix, 0);
    Dispatch(operands.a.dtype, ByteTypes(), [&](auto a_tag) {
      Dispatch(operands.b.dtype, ByteTypes(), [&](auto b_tag) {
        const auto* a = reinterpret_cast<const typename decltype(a_tag)::type*>(a_row);
        const auto* b = reinterpret_cast<const typename decltype(b_tag)::type*>(b_matrix);
        for (std::int64_t j = 0; j < tile.n; ++j) {
          std::uint32_t sum = 0;
          for (std::int64_t l = 0; l < depth_; ++l) {
            sum += static_cast<std::uint32_t>((a[l] - a_zero) *
                                              (b[l * columns_ + tile.column + j] - zeros[j]));
          }
          sums[j] = static_cast<std::int32_t>(sum);
        }
      });
    });
  }

  void PackedSums(const Operands& operands, const Tile& tile, const std::int32_t* zeros,
                  std::int16_t* packed, std::int32_t* sums) const {
    std::int16_t* a = packed;
    std::int16_t* b = a + tile_rows_ * padded_depth_;
    std::int16_t* rows = b + padded_depth_ * tile_columns_;
    for (std::int64_t i = 0; i < tile.m; ++i) {
      PackRow(Row(operands.a, shapes_.a, tile.matrix, tile.row + i), operands.a.dtype,
              RowZero(operands, tile.matrix, tile.row + i), depth_, a + i * padded_depth_);
    }
    for (std::int64_t l = 0; l < padded_depth_; l += 2) {
      for (std::int64_t k = 0; k < 2; ++k) {
        std::int16_t* row = rows + k * tile_columns_;
        if (l + k == depth_) {
          std::fill_n(row, tile.n, std::int16_t{0});
          continue;
        }
        PackRow(Row(operands.b, shapes_.b, tile.matrix, l + k) + tile.column, operands.b.dtype, 0,
                tile.n, row);
        for (std::int64_t j = 0; j < tile.n; ++j) {
          row[j] = static_cast<std::int16_t>(row[j] - zeros[j]);
        }
      }
      InterleaveRows(rows, rows + tile_columns_, tile.n, b + l * tile_columns_);
    }
    MultiplyIntegers({a, padded_depth_, b, 2 * tile_columns_, sums, tile_columns_, tile.m, tile.n,
                      padded_depth_});
  }

  MatMulShapes shapes_;
  LineParameters zero_points_;
  bool reference_;
  std::int64_t matrices_, rows_, columns_, depth_, padded_depth_, tile_columns_, tile_rows_;
};

// --- MatMulInteger

void InferMatMulInteger(const InferContext& context) {
  using namespace matmul_integer;
  RequireBytes(context, kA, kAZeroPoint);
  RequireBytes(context, kB, kBZeroPoint);
  const MatMulShapes shapes(context.Input(kA).shape, context.Input(kB).shape);
  ReadLineParameters(shapes, InfoOrAbsent(context.inputs, kAZeroPoint),
                     InfoOrAbsent(context.inputs, kBZeroPoint));
  context.SetOutput(0, DType::kInt32, shapes.out);
}

class MatMulIntegerKernel final : public Kernel {
 public:
  explicit MatMulIntegerKernel(const PrepareContext& context) : sums_(MakeSums(context)) {}
  std::string_view name() const override { return sums_.name(); }
  std::size_t ScratchBytesPerThread() const override { return sums_.ScratchBytesPerThread(); }
  double Flops() const override { return sums_.Flops(); }
  void Run(const RunContext& context) const override {
    using namespace matmul_integer;
    auto* y = context.outputs[0].data<std::int32_t>();
    sums_.Run(
        {context.inputs[kA], context.inputs[kB], InputOrAbsent(context, kAZeroPoint),
         InputOrAbsent(context, kBZeroPoint)},
        context, [](const SumsRow&, float*) {},
        [&](const SumsRow& row, float*) {
          std::copy_n(row.sums, row.n,
                      y + (row.matrix * sums_.rows() + row.row) * sums_.columns() + row.column);
        });
  }

 private:
  static IntegerMatMul MakeSums(const PrepareContext& context) {
    using namespace matmul_integer;
    const MatMulShapes shapes(context.inputs[kA].shape, context.inputs[kB].shape);
    return {shapes,
            ReadLineParameters(shapes, InfoOrAbsent(context.inputs, kAZeroPoint),
                               InfoOrAbsent(context.inputs, kBZeroPoint)),
            context.reference};
  }

  IntegerMatMul sums_;
};

// --- QLinearMatMul

void InferQLinearMatMul(const InferContext& context) {
  using namespace qlinear;
  RequireBytes(context, kA, kAZeroPoint);
  RequireBytes(context, kB, kBZeroPoint);
  const DType type = context.Input(kYZeroPoint).dtype;
  RequireType(type, ByteTypes());
  const DType scale_type = context.Input(kAScale).dtype;
  RequireType(scale_type, context.node.opset, TypeList<float>(), 21, TypeList<float, Half>());
  Require(context.Input(kBScale).dtype == scale_type && context.Input(kYScale).dtype == scale_type,
          "scales of types ", scale_type, ", ", context.Input(kBScale).dtype, " and ",
          context.Input(kYScale).dtype);
  RequirePerTensor(context, kYScale, "y_scale");
  RequirePerTensor(context, kYZeroPoint, "y_zero_point");
  const MatMulShapes shapes(context.Input(kA).shape, context.Input(kB).shape);
  ReadLineParameters(shapes, context.Input(kAScale), context.Input(kBScale));
  ReadLineParameters(shapes, context.Input(kAZeroPoint), context.Input(kBZeroPoint));
  context.SetOutput(0, type, shapes.out);
}

class QLinearMatMulKernel final : public Kernel {
 public:
  explicit QLinearMatMulKernel(const PrepareContext& context)
      : QLinearMatMulKernel(context, MatMulShapes(context.inputs[qlinear::kA].shape,
                                                  context.inputs[qlinear::kB].shape)) {}
  std::string_view name() const override { return sums_.name(); }
  std::size_t ScratchBytesPerThread() const override { return sums_.ScratchBytesPerThread(); }
  double Flops() const override { return sums_.Flops(); }
  void Run(const RunContext& context) const override {
    using namespace qlinear;
    const std::span<const TensorView> in = context.inputs;
    const TensorView& y = context.outputs[0];
    const float y_scale = ScaleAt(in[kYScale], 0);
    const std::int32_t y_zero = ZeroPointAt(in[kYZeroPoint], 0);
    // Of one row; a float if all columns have the same scale.
    const auto multipliers = [&](const SumsRow& row, float* to) {
      const float a_scale =
          ScaleAt(in[kAScale], scales_.rows.First(row.matrix) + row.row * scales_.rows.step());
      const std::int64_t first =
          scales_.columns.First(row.matrix) + row.column * scales_.columns.step();
      const std::int64_t n = scales_.columns.IsSingle() ? 1 : row.n;
      for (std::int64_t j = 0; j < n; ++j) {
        to[j] = RequantizeMultiplier(a_scale, ScaleAt(in[kBScale], first + j), y_scale);
      }
    };
    sums_.Run({in[kA], in[kB], in[kAZeroPoint], in[kBZeroPoint]}, context, multipliers,
              [&](const SumsRow& row, float* to) {
                if (!scales_.rows.IsSingle()) multipliers(row, to);
                requantize_(
                    row.sums, 0,
                    {to, scales_.columns.IsSingle() ? RowOperand::kScalar : RowOperand::kStream},
                    y_zero, y.dtype,
                    y.data<std::byte>() + (row.matrix * sums_.rows() + row.row) * sums_.columns() +
                        row.column,
                    row.n);
              });
  }

 private:
  QLinearMatMulKernel(const PrepareContext& context, const MatMulShapes& shapes)
      : sums_(shapes,
              ReadLineParameters(shapes, context.inputs[qlinear::kAZeroPoint],
                                 context.inputs[qlinear::kBZeroPoint]),
              context.reference),
        scales_(ReadLineParameters(shapes, context.inputs[qlinear::kAScale],
                                   context.inputs[qlinear::kBScale])),
        requantize_(context.reference ? RequantizeRowPlainly : RequantizeRow) {}

  IntegerMatMul sums_;
  LineParameters scales_;
  decltype(&RequantizeRow) requantize_;
};

}  // namespace

extern const OpDef kMatMulIntegerOp, kQLinearMatMulOp;
const OpDef kMatMulIntegerOp = {
    .type = "MatMulInteger",
    .min_inputs = 2,
    .max_inputs = 4,
    .infer = InferMatMulInteger,
    .prepare = PrepareKernel<MatMulIntegerKernel>,
    .first_opset = 10,
};
const OpDef kQLinearMatMulOp = {
    .type = "QLinearMatMul",
    .min_inputs = 8,
    .max_inputs = 8,
    .infer = InferQLinearMatMul,
    .prepare = PrepareKernel<QLinearMatMulKernel>,
    .first_opset = 10,
};

}  // namespace tessera
