// NonZero: the indices of the elements that are not 0, one column for each, in row-major order. Of
// a scalar, columns of no index.
// https://onnx.ai/onnx/operators/onnx__NonZero.html
#include <array>

#include "ops/elements.h"
#include "ops/op.h"

namespace tessera {
namespace {

using Place = std::array<std::int64_t, Shape::kMaxRank>;

// Calls visit(place) for each element that is not 0.
template <typename Visit>
void VisitNonZero(const TensorView& x, const Visit& visit) {
  const int rank = x.shape.rank();
  const std::int64_t n = x.size();
  const std::size_t last = rank > 0 ? static_cast<std::size_t>(rank) - 1 : 0;
  const std::int64_t width = rank > 0 ? x.shape[rank - 1] : 1;
  Dispatch(x.dtype, AllTypes(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* row = x.data<const T>();
    Place place{};
    for (const T* end = row + n; row != end; row += width) {
      for (std::int64_t i = 0; i < width; ++i) {
        if (static_cast<ComputeType<T>>(row[i]) == 0) continue;
        place[last] = i;
        visit(place);
      }
      for (int d = rank - 1; d-- > 0;) {
        std::int64_t& at = place[static_cast<std::size_t>(d)];
        if (++at < x.shape[d]) break;
        at = 0;
      }
    }
  });
}

void InferNonZero(const InferContext& context) {
  context.Input(0);
  std::int64_t count = 0;
  VisitNonZero(context.Constant(0).view(), [&](const Place&) { ++count; });
  context.SetOutput(0, DType::kInt64, Shape{context.inputs[0].shape.rank(), count});
}

class NonZeroKernel final : public Kernel {
 public:
  std::string_view name() const override { return "non_zero"; }
  void Run(const RunContext& context) const override {
    const std::int64_t rank = context.outputs[0].shape[0], count = context.outputs[0].shape[1];
    std::int64_t* out = context.outputs[0].data<std::int64_t>();
    std::int64_t column = 0;
    VisitNonZero(context.inputs[0], [&](const Place& place) {
      for (std::int64_t d = 0; d < rank; ++d) {
        out[d * count + column] = place[static_cast<std::size_t>(d)];
      }
      ++column;
    });
  }
};

std::unique_ptr<Kernel> PrepareNonZero(const PrepareContext&) {
  return std::make_unique<NonZeroKernel>();
}

}  // namespace

extern const OpDef kNonZeroOp;
const OpDef kNonZeroOp = {
    .type = "NonZero",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferNonZero,
    .prepare = PrepareNonZero,
    .first_opset = 9,
};

}  // namespace tessera
