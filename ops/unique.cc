// Unique: the different slices of a tensor along an axis, or its different elements, either sorted
// or in the order in which they come; where each comes first, which of them each slice is, and how
// often each comes. Slices are compared element by element; NaN is equal to itself and greater than
// everything else.
// https://onnx.ai/onnx/operators/onnx__Unique.html
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <vector>

#include "ops/elements.h"
#include "ops/indexing.h"
#include "ops/op.h"

namespace tessera {
namespace {

constexpr std::size_t kNumOutputs = 4;

struct UniqueSlices {
  std::vector<std::int64_t> first, inverse, counts;
};

// Negative, 0 or positive as a is less than, equal to or greater than b.
template <typename T>
int Compare(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return (std::isnan(a) ? 1 : 0) - (std::isnan(b) ? 1 : 0);
  }
  return (a > b ? 1 : 0) - (a < b ? 1 : 0);
}

// Those of a tensor seen as [outer, dim, inner].
template <typename T>
UniqueSlices FindUnique(const T* x, std::int64_t outer, std::int64_t dim, std::int64_t inner,
                        bool sorted) {
  const auto compare = [&](std::int64_t a, std::int64_t b) {
    for (std::int64_t o = 0; o < outer; ++o) {
      const T* of_a = x + (o * dim + a) * inner;
      const T* of_b = x + (o * dim + b) * inner;
      for (std::int64_t i = 0; i < inner; ++i) {
        const int order = Compare<ComputeType<T>>(of_a[i], of_b[i]);
        if (order != 0) return order;
      }
    }
    return 0;
  };
  std::vector<std::int64_t> slices(static_cast<std::size_t>(dim));
  std::iota(slices.begin(), slices.end(), 0);
  std::stable_sort(slices.begin(), slices.end(),
                   [&](std::int64_t a, std::int64_t b) { return compare(a, b) < 0; });
  UniqueSlices unique;
  unique.inverse.resize(slices.size());
  for (const std::int64_t slice : slices) {
    if (unique.first.empty() || compare(unique.first.back(), slice) != 0) {
      unique.first.push_back(slice);
      unique.counts.push_back(0);
    }
    ++unique.counts.back();
    unique.inverse[static_cast<std::size_t>(slice)] =
        static_cast<std::int64_t>(unique.first.size()) - 1;
  }
  if (sorted) return unique;

  const auto at = [](std::vector<std::int64_t>& v, std::int64_t i) -> std::int64_t& {
    return v[static_cast<std::size_t>(i)];
  };
  UniqueSlices ordered;
  std::vector<std::int64_t> place(unique.first.size());  // of each sorted one
  for (std::int64_t slice = 0; slice < dim; ++slice) {
    const std::int64_t which = at(unique.inverse, slice);
    if (at(unique.first, which) == slice) {
      at(place, which) = static_cast<std::int64_t>(ordered.first.size());
      ordered.first.push_back(slice);
      ordered.counts.push_back(at(unique.counts, which));
    }
    ordered.inverse.push_back(at(place, which));
  }
  return ordered;
}

// The input's shape as slices of its axis; without an axis they are its elements.
Shape SlicedShape(const OpNode& node, const Shape& x) {
  if (!node.attributes.Has("axis")) return Shape{1, x.NumElements(), 1};
  const int axis = NormalizeAxis(node.attributes.Int("axis", 0), x.rank());
  return Shape{x.NumElements(0, axis), x[axis], x.NumElements(axis + 1, x.rank())};
}

UniqueSlices FindUnique(const OpNode& node, const Tensor& x) {
  const Shape s = SlicedShape(node, x.shape());
  const bool sorted = node.attributes.Int("sorted", 1) != 0;
  return Dispatch(x.dtype(), AllTypes(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return FindUnique(x.data<const T>(), s[0], s[1], s[2], sorted);
  });
}

void InferUnique(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  const std::size_t outputs = context.outputs.size();
  Require(outputs <= kNumOutputs, outputs, " outputs");
  const std::int64_t dim = SlicedShape(context.node, in.shape)[1];
  const UniqueSlices unique = FindUnique(context.node, context.Constant(0));
  const auto count = static_cast<std::int64_t>(unique.first.size());
  Shape out{count};
  if (context.node.attributes.Has("axis")) {
    out = in.shape;
    out[NormalizeAxis(context.node.attributes.Int("axis", 0), out.rank())] = count;
  }
  context.SetOutput(0, in.dtype, out);
  const std::array<std::int64_t, kNumOutputs> lengths{0, count, dim, count};
  for (std::size_t i = 1; i < outputs; ++i) {
    context.SetOutput(i, DType::kInt64, Shape{lengths[i]});
  }
}

class UniqueKernel final : public Kernel {
 public:
  explicit UniqueKernel(const PrepareContext& context)
      : slices_(context.inputs[0].dtype, SlicedShape(context.node, context.inputs[0].shape), 1),
        unique_(FindUnique(context.node, ConstantInput(context.inputs, 0))) {
    for (std::size_t i = 0; i < context.outputs.size(); ++i) {
      wanted_[i] = context.outputs[i].present;
    }
  }
  std::string_view name() const override { return "unique"; }
  void Run(const RunContext& context) const override {
    const auto* in = context.inputs[0].data<const std::byte>();
    const std::vector<std::int64_t>& first = unique_.first;
    CopySlices(slices_.outer, static_cast<std::int64_t>(first.size()), slices_.slice_bytes,
               context.outputs[0].bytes, context.parallel, [&](std::int64_t o, std::int64_t i) {
                 return in + slices_.Offset(o, first[static_cast<std::size_t>(i)]);
               });
    const std::vector<std::int64_t>* lists[] = {nullptr, &first, &unique_.inverse, &unique_.counts};
    for (std::size_t i = 1; i < kNumOutputs; ++i) {
      if (!wanted_[i]) continue;
      std::copy(lists[i]->begin(), lists[i]->end(), context.outputs[i].data<std::int64_t>());
    }
  }

 private:
  AxisSlices slices_;
  UniqueSlices unique_;
  std::array<bool, kNumOutputs> wanted_{};
};

}  // namespace

extern const OpDef kUniqueOp;
const OpDef kUniqueOp = {
    .type = "Unique",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferUnique,
    .prepare = PrepareKernel<UniqueKernel>,
    .first_opset = 11,
};

}  // namespace tessera
