// Slice and Split: parts of a tensor.
// https://onnx.ai/onnx/operators/onnx__Slice.html
// https://onnx.ai/onnx/operators/onnx__Split.html
#include <algorithm>
#include <numeric>
#include <vector>

#include "ops/op.h"
#include "ops/strided_copy.h"
#include "simd/cpu_target.h"

namespace tessera {
namespace {

struct SliceAxis {
  std::int64_t start = 0, step = 1, count = 0;
};

// One entry for each axis of the input. Starts, ends, axes (and steps since opset 10) are
// attributes before opset 10, inputs since. Throws NeedsValue for inputs that are not known.
std::vector<SliceAxis> ReadSlice(const OpNode& node, std::span<const TensorInfo> inputs) {
  const Shape& x = inputs[0].shape;
  const auto read = [&](const char* name, std::size_t input) -> std::vector<std::int64_t> {
    if (node.opset < 10) return node.attributes.Ints(name);
    if (input > 2 && (input >= inputs.size() || !inputs[input].present)) return {};
    return ConstantInt64s(inputs, input, {DType::kInt32, DType::kInt64});
  };
  const std::vector<std::int64_t> starts = read("starts", 1), ends = read("ends", 2);
  std::vector<std::int64_t> axes = read("axes", 3), steps;
  if (node.opset >= 10) steps = read("steps", 4);
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  Require(
      starts.size() == ends.size() && starts.size() == axes.size() && starts.size() == steps.size(),
      "starts, ends, axes and steps have ", starts.size(), ", ", ends.size(), ", ", axes.size(),
      " and ", steps.size(), " values");

  std::vector<SliceAxis> slices;
  for (int d = 0; d < x.rank(); ++d) slices.push_back({0, 1, x[d]});
  std::vector<bool> used(slices.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int axis = NormalizeAxis(axes[i], x.rank());
    const auto u = static_cast<std::size_t>(axis);
    Require(!used[u], "axis ", axes[i], " is given twice");
    used[u] = true;
    const std::int64_t dim = x[axis], step = steps[i];
    Require(step != 0, "a step is 0");
    // Counted from the end if negative, then clamped; a backward slice begins at an element (the
    // first one if `start` lies before it, unlike numpy's) and may end before element 0.
    const auto place = [&](std::int64_t at, std::int64_t lowest, std::int64_t highest) {
      return std::clamp(at < 0 ? at + dim : at, lowest, highest);
    };
    SliceAxis& s = slices[u];
    s.step = step;
    if (step > 0) {
      s.start = place(starts[i], 0, dim);
      const std::int64_t length = place(ends[i], 0, dim) - s.start;
      s.count = length <= 0 ? 0 : (length - 1) / step + 1;
    } else {
      s.start = place(starts[i], 0, std::max<std::int64_t>(dim - 1, 0));
      const std::int64_t length = s.start - place(ends[i], -1, std::max<std::int64_t>(dim - 1, 0));
      // -INT64_MIN would overflow.
      s.count = length <= 0 || dim == 0 ? 0 : step == INT64_MIN ? 1 : (length - 1) / -step + 1;
    }
  }
  return slices;
}

void InferSlice(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  Shape out;
  for (const SliceAxis& s : ReadSlice(context.node, context.inputs)) out.PushBack(s.count);
  context.SetOutput(0, in.dtype, out);
}

// Whether `count` channels from `begin` on are whole channel blocks of a tensor in
// Layout::kBlocked.
bool AreWholeBlocks(const Shape& nchw, std::int64_t begin, std::int64_t count) {
  const int lanes = FloatLanes();
  return count > 0 && begin % lanes == 0 && (count % lanes == 0 || begin + count == nchw[1]);
}

// The copy of those channels into a tensor of their own.
StridedCopy CopyWholeBlocks(const Shape& nchw, std::int64_t begin, std::int64_t count) {
  const BlockedLayout in(nchw);
  const std::int64_t blocks = (count + in.lanes - 1) / in.lanes;
  const std::int64_t dims[] = {in.images, blocks * in.plane_stride};
  const std::int64_t strides[] = {in.image_stride, 1};
  return {DType::kFloat32, dims, strides, begin / in.lanes * in.plane_stride};
}

// Blocked if the slice is one of whole channel blocks.
LayoutChoice SliceLayouts(const LayoutContext& context) {
  const TensorInfo& in = context.inputs[0];
  if (in.layout != Layout::kBlocked) return {};
  const std::vector<SliceAxis> slices = ReadSlice(context.node, context.inputs);
  for (const int d : {0, 2, 3}) {
    const SliceAxis& s = slices[static_cast<std::size_t>(d)];
    if (s.start != 0 || s.step != 1 || s.count != in.shape[d]) return {};
  }
  const SliceAxis& channels = slices[1];
  if (channels.step != 1 || !AreWholeBlocks(in.shape, channels.start, channels.count)) return {};
  return {{Layout::kBlocked}, {Layout::kBlocked}};
}

std::unique_ptr<Kernel> PrepareSlice(const PrepareContext& context) {
  const TensorInfo& in = context.inputs[0];
  const std::vector<SliceAxis> slices = ReadSlice(context.node, context.inputs);
  if (in.layout == Layout::kBlocked) {
    return MakeStridedCopyKernel("slice_blocked",
                                 CopyWholeBlocks(in.shape, slices[1].start, slices[1].count));
  }
  const auto in_strides = RowMajorStrides(in.shape);
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < slices.size(); ++d) {
    // Of a single element the step does not matter; it may be huge.
    strides.push_back(slices[d].count > 1 ? slices[d].step * in_strides[d] : 0);
    offset += slices[d].start * in_strides[d];
  }
  return MakeStridedCopyKernel(
      "slice", StridedCopy(in.dtype, context.outputs[0].shape.dims(), strides, offset));
}

// Every k-th pixel of the whole picture (as a hand-written SpaceToDepth has it), or all of them.
std::optional<SpatialField> SliceField(const FieldContext& context, std::size_t i) {
  const Shape& x = context.inputs[0].shape;
  if (i != 0 || x.rank() != 4) return std::nullopt;
  const std::vector<SliceAxis> slices = ReadSlice(context.node, context.inputs);
  SpatialField field;
  for (std::size_t a = 0; a < 2; ++a) {
    const SliceAxis& s = slices[a + 2];
    const std::int64_t dim = x[static_cast<int>(a) + 2];
    if (s.step < 1 || dim % s.step != 0 || s.start >= s.step || s.count != dim / s.step) {
      return std::nullopt;
    }
    field[a] = {1, s.step, static_cast<double>(s.start), static_cast<double>(s.start)};
  }
  return field;
}

// Sizes of the parts: an attribute before opset 13, an input since; without them equal parts, as
// many as there are outputs (num_outputs since opset 18, where the last one may be smaller). Throws
// NeedsValue if the input is not known.
std::vector<std::int64_t> ReadParts(const OpNode& node, std::span<const TensorInfo> inputs,
                                    int axis, std::size_t outputs) {
  const std::int64_t dim = inputs[0].shape[axis];
  std::vector<std::int64_t> parts;
  if (node.opset < 13) {
    parts = node.attributes.Ints("split");
  } else if (inputs.size() > 1 && inputs[1].present) {
    Require(node.opset < 18 || !node.attributes.Has("num_outputs"),
            "input 'split' and attribute 'num_outputs' are both there");
    parts = ConstantInt64s(inputs, 1);
  }
  if (parts.empty()) {
    const auto n = static_cast<std::int64_t>(outputs);
    Require(node.opset < 18 || node.attributes.Int("num_outputs", n) == n, "num_outputs is ",
            node.attributes.Int("num_outputs", n), ", but the node has ", n, " outputs");
    const std::int64_t part = (dim + n - 1) / n;
    Require(part * n == dim || (node.opset >= 18 && part * (n - 1) <= dim), "axis of ", dim,
            " elements cannot be split into ", n, " equal parts");
    parts.assign(outputs, part);
    parts.back() = dim - part * (n - 1);
  }
  Require(parts.size() == outputs, parts.size(), " parts for ", outputs, " outputs");
  std::int64_t rest = dim;
  for (const std::int64_t part : parts) {
    Require(part >= 0 && part <= rest, "parts do not add up to ", dim);
    rest -= part;
  }
  Require(rest == 0, "parts do not add up to ", dim);
  return parts;
}

void InferSplit(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  const int axis = NormalizeAxis(context.node.attributes.Int("axis", 0), in.shape.rank());
  const std::size_t n = context.outputs.size();
  const std::vector<std::int64_t> parts = ReadParts(context.node, context.inputs, axis, n);
  for (std::size_t i = 0; i < n; ++i) {
    Shape out = in.shape;
    out[axis] = parts[i];
    context.SetOutput(i, in.dtype, out);
  }
}

class SplitKernel final : public Kernel {
 public:
  explicit SplitKernel(const PrepareContext& context) {
    const TensorInfo& in = context.inputs[0];
    const int axis = NormalizeAxis(context.node.attributes.Int("axis", 0), in.shape.rank());
    const bool blocked = in.layout == Layout::kBlocked;
    const std::int64_t outer = in.shape.NumElements(0, axis);
    const std::int64_t row = in.shape.NumElements(axis, in.shape.rank());
    const std::int64_t inner = in.shape.NumElements(axis + 1, in.shape.rank());
    std::int64_t at = 0;
    for (const std::int64_t part :
         ReadParts(context.node, context.inputs, axis, context.outputs.size())) {
      if (blocked) {
        copies_.push_back(CopyWholeBlocks(in.shape, at, part));
      } else {
        const std::int64_t dims[] = {outer, part * inner}, strides[] = {row, 1};
        copies_.emplace_back(in.dtype, dims, strides, at * inner);
      }
      at += part;
    }
    for (const TensorInfo& out : context.outputs) wanted_.push_back(out.present);
  }
  std::string_view name() const override { return "split"; }
  void Run(const RunContext& context) const override {
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      if (!wanted_[i]) continue;
      copies_[i].Run(context.inputs[0].bytes, context.outputs[i].bytes, context.parallel);
    }
  }

 private:
  std::vector<StridedCopy> copies_;
  std::vector<bool> wanted_;  // an output may be left out
};

// Blocked if every part is one of whole channel blocks.
LayoutChoice SplitLayouts(const LayoutContext& context) {
  const TensorInfo& in = context.inputs[0];
  if (in.layout != Layout::kBlocked) return {};
  if (NormalizeAxis(context.node.attributes.Int("axis", 0), 4) != 1) return {};
  std::int64_t at = 0;
  for (const std::int64_t part :
       ReadParts(context.node, context.inputs, 1, context.outputs.size())) {
    if (!AreWholeBlocks(in.shape, at, part)) return {};
    at += part;
  }
  return {{Layout::kBlocked}, std::vector<Layout>(context.outputs.size(), Layout::kBlocked)};
}

std::optional<SpatialField> SplitField(const FieldContext& context, std::size_t i) {
  const int rank = context.inputs[0].shape.rank();
  const int axis = NormalizeAxis(context.node.attributes.Int("axis", 0), rank);
  if (i != 0 || axis >= rank - 2) return std::nullopt;
  return SpatialField{};
}

}  // namespace

extern const OpDef kSliceOp, kSplitOp;
const OpDef kSliceOp = {
    .type = "Slice",
    .min_inputs = 1,
    .max_inputs = 5,
    .infer = InferSlice,
    .prepare = PrepareSlice,
    .layouts = SliceLayouts,
    .field = SliceField,
};
const OpDef kSplitOp = {
    .type = "Split",
    .min_inputs = 1,
    .max_inputs = 2,
    .infer = InferSplit,
    .prepare = PrepareKernel<SplitKernel>,
    .layouts = SplitLayouts,
    .field = SplitField,
    .can_omit_output0 = true,
};

}  // namespace tessera
