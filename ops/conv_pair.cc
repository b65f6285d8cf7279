#include "ops/conv_pair.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ops/depthwise_conv.h"
#include "ops/direct_conv.h"
#include "ops/elements.h"
#include "simd/cpu_target.h"

namespace tessera {
namespace {

constexpr std::string_view kFirst = "first_";

bool IsDepthwise(const ConvParams& p) {
  return p.groups == p.in_channels && p.groups == p.out_channels;
}

bool IsPointwise(const ConvParams& p) {
  return p.groups == 1 && p.kernel_h == 1 && p.kernel_w == 1 && p.stride_h == 1 &&
         p.stride_w == 1 && p.out_height == p.in_height && p.out_width == p.in_width;
}

struct PairParams {
  ConvParams first, second;
  Shape between;
};

PairParams ReadPairParams(const OpNode& node, const Shape& x, const Shape& first_weights,
                          const Shape& second_weights) {
  OpNode first{.name = node.name, .type = "FusedConv", .opset = node.opset, .attributes = {}};
  OpNode second = first;
  for (const auto& [name, value] : node.attributes) {
    if (name.starts_with(kFirst)) {
      first.attributes.Set(name.substr(kFirst.size()), value);
    } else {
      second.attributes.Set(name, value);
    }
  }
  PairParams p;
  p.first = ReadConvParams(first, x, first_weights);
  p.between = {p.first.batch, p.first.out_channels, p.first.out_height, p.first.out_width};
  p.second = ReadConvParams(second, p.between, second_weights);
  return p;
}

void InferConvPair(const InferContext& context) {
  const TensorInfo& x = context.Input(0);
  RequireType(x.dtype, TypeList<float>());
  Require(x.shape.rank() == 4, "X has shape ", x.shape);
  const ConvParams p = ReadPairParams(context.node, x.shape, context.Input(kPairWeights).shape,
                                      context.Input(1).shape)
                           .second;
  context.SetOutput(0, x.dtype, {p.batch, p.out_channels, p.out_height, p.out_width});
}

// Whether all operands that have to be packed are known, and the kernels want this pair.
bool CanStream(std::span<const TensorInfo> inputs, const PairParams& p) {
  for (const std::size_t i : {std::size_t{1}, kConvBias, kConvSlope, kPairWeights, kPairBias}) {
    if (i < inputs.size() && inputs[i].present && inputs[i].constant == nullptr) return false;
  }
  return StreamsWell(p.first, p.second);
}

LayoutChoice ConvPairLayouts(const LayoutContext& context) {
  const auto& inputs = context.inputs;
  if (!CanStream(inputs, ReadPairParams(context.node, inputs[0].shape, inputs[kPairWeights].shape,
                                        inputs[1].shape))) {
    return {};
  }
  LayoutChoice choice{std::vector<Layout>(inputs.size(), Layout::kRowMajor), {Layout::kBlocked}};
  choice.inputs[0] = Layout::kBlocked;
  if (inputs[kConvAddend].present) choice.inputs[kConvAddend] = Layout::kBlocked;
  return choice;
}

// One reference kernel after the other.
class ReferenceConvPair final : public Kernel {
 public:
  explicit ReferenceConvPair(const PairParams& p)
      : flops_(p.first.Flops() + p.second.Flops()),
        between_(p.between),
        first_(MakeReferenceConv(p.first)),
        second_(MakeReferenceConv(p.second)) {}

  std::string_view name() const override { return "conv_pair_reference"; }
  double Flops() const override { return flops_; }
  std::size_t ScratchBytesPerThread() const override {
    return StorageBytes(DType::kFloat32, between_, Layout::kRowMajor);
  }
  void Run(const RunContext& run) const override {
    const TensorView between{DType::kFloat32, Layout::kRowMajor, between_, run.Scratch<float>(0)};
    const auto input = [&](std::size_t i) {
      return i < run.inputs.size() ? run.inputs[i] : TensorView();
    };
    const TensorView first[] = {input(0), input(kPairWeights), input(kPairBias)};
    first_->Run({first, {&between, 1}, run.parallel, nullptr, 0});
    const TensorView second[] = {between, input(1), input(kConvBias), input(kConvSlope),
                                 input(kConvAddend)};
    second_->Run({second, run.outputs, run.parallel, nullptr, 0});
  }

 private:
  double flops_;
  Shape between_;
  std::unique_ptr<Kernel> first_, second_;
};

// Depthwise, then pointwise: a task computes some rows of what lies between them, for all
// channels, in its scratch memory, and the pointwise convolution reads them there.
class DepthwisePointwise final : public Kernel {
 public:
  DepthwisePointwise(DepthwisePlan depthwise, DirectPlan pointwise, std::int64_t band_rows)
      : depthwise_(std::move(depthwise)), pointwise_(std::move(pointwise)), band_rows_(band_rows) {
    const ConvParams& p = depthwise_.params;
    flops_ = p.Flops() + pointwise_.params.Flops();
    name_ = StrCat("conv", p.kernel_h, "x", p.kernel_w, "_1x1");
  }

  std::string_view name() const override { return name_; }
  double Flops() const override { return flops_; }
  std::size_t ScratchBytesPerThread() const override { return pointwise_.ScratchBytes(); }
  bool CanOverwriteInput(std::size_t i) const override { return i == kConvAddend; }

  void Run(const RunContext& run) const override {
    const BlockedLayout &in = depthwise_.input, &between = depthwise_.output;
    const std::int64_t bands = (between.height + band_rows_ - 1) / band_rows_;
    run.parallel.For(between.images * bands, [&](std::int64_t task, int thread) {
      const std::int64_t y = task % bands * band_rows_;
      const float* x = run.inputs[0].data<float>() + task / bands * in.image_stride;
      float* rows = run.Scratch<float>(thread);
      for (std::int64_t block = 0; block < between.blocks; ++block) {
        RunDepthwiseBand(depthwise_, {.block = block,
                                      .weights = DepthwiseWeights(depthwise_, block),
                                      .rows = {y, std::min(between.height, y + band_rows_)},
                                      .in = x + block * in.plane_stride,
                                      .in_stride = in.row_stride,
                                      .out = rows + block * pointwise_.block_stride,
                                      .out_stride = between.row_stride});
      }
      RunDirectTask(pointwise_, run, task, thread);
    });
  }

 private:
  DepthwisePlan depthwise_;
  DirectPlan pointwise_;
  std::int64_t band_rows_;
  double flops_;
  std::string name_;
};

std::unique_ptr<Kernel> PrepareConvPair(const PrepareContext& context) {
  const PairParams p = ReadPairParams(context.node, context.inputs[0].shape,
                                      context.inputs[kPairWeights].shape, context.inputs[1].shape);
  if (context.reference || context.outputs[0].layout != Layout::kBlocked) {
    return std::make_unique<ReferenceConvPair>(p);
  }
  const auto constant = [&](std::size_t i) {
    return context.HasInput(i) ? context.inputs[i].constant : nullptr;
  };
  const ConvConstants first = {constant(kPairWeights), constant(kPairBias), nullptr};
  const ConvConstants second = {constant(1), constant(kConvBias), constant(kConvSlope)};
  const BlockedLayout between(p.between);
  // Rows that stay in the L1 cache beside some weights, and tasks enough for several threads.
  constexpr std::int64_t kFloats = 24 * 1024 / sizeof(float), kWantedTasks = 4;
  const std::int64_t rows =
      std::clamp<std::int64_t>(kFloats / (between.blocks * between.row_stride), 1,
                               std::max<std::int64_t>(1, between.height / kWantedTasks));
  return std::make_unique<DepthwisePointwise>(
      MakeDepthwisePlan(p.first, first, context.packs),
      MakeDirectPlan(p.second, second, Layout::kBlocked, Layout::kBlocked, context.packs, rows),
      rows);
}

}  // namespace

Attributes PairAttributes(const Attributes& first, const Attributes& second) {
  Attributes pair = second;
  for (const auto& [name, value] : first) pair.Set(StrCat(kFirst, name), value);
  return pair;
}

bool StreamsWell(const ConvParams& first, const ConvParams& second) {
  const BlockedLayout between({first.batch, first.out_channels, first.out_height, first.out_width});
  // The weights are read again for each band of rows: they cost less than what lies between.
  return IsDepthwise(first) && IsPointwise(second) && first.epilogue.combine == Combine::kNone &&
         IsAsOneRow(between) && second.out_channels >= between.lanes &&
         second.in_channels * second.out_channels <= between.image_stride;
}

extern const OpDef kConvPairOp;
const OpDef kConvPairOp = {.type = "ConvPair",
                           .min_inputs = kPairWeights + 1,
                           .max_inputs = kPairBias + 1,
                           .infer = InferConvPair,
                           .prepare = PrepareConvPair,
                           .layouts = ConvPairLayouts,
                           .internal = true};

}  // namespace tessera
