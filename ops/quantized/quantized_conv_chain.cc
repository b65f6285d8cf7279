// QuantizedConvChain: parameters, shapes, layouts, and the kernel for comparison.
#include "ops/quantized/quantized_conv_chain.h"

#include <algorithm>
#include <string>
#include <utility>

namespace tessera {
namespace {

std::string Prefix(std::size_t i) { return StrCat(i, '_'); }

std::size_t Length(std::size_t inputs) {
  return (inputs - kChainOperands + kOperandsOfChained - 1) / kOperandsOfChained;
}

// Convolution i as a node of its own.
OpNode Part(const OpNode& chain, std::size_t i) {
  OpNode part{.name = chain.name, .type = "QuantizedConv", .opset = chain.opset, .attributes = {}};
  const std::string prefix = Prefix(i);
  for (const auto& [name, value] : chain.attributes) {
    if (name.starts_with(prefix)) part.attributes.Set(name.substr(prefix.size()), value);
  }
  return part;
}

// From all inputs of the chain, those of convolution i, which reads `x`.
template <typename T>
std::vector<T> InputsOfPart(std::span<const T> inputs, std::size_t i, const T& x) {
  std::vector<T> part(kQuantizedAddend + 1);
  part[0] = x;
  const std::size_t first = kChainOperands + i * kOperandsOfChained;
  for (std::size_t k = 0; k < kOperandsOfChained && first + k < inputs.size(); ++k) {
    part[kQuantizedWeights + k] = inputs[first + k];
  }
  if (i + 1 == Length(inputs.size())) part[kQuantizedAddend] = inputs[kChainAddend];
  return part;
}

// Shape and type of each convolution's output. Throws Error for what does not fit.
std::vector<TensorInfo> InferParts(const OpNode& node, std::span<const TensorInfo> inputs) {
  static const OpDef* const conv = FindOp("QuantizedConv");
  std::vector<TensorInfo> results;
  for (std::size_t i = 0; i < Length(inputs.size()); ++i) {
    const std::vector<TensorInfo> part =
        InputsOfPart(inputs, i, i == 0 ? inputs[0] : results[i - 1]);
    std::vector<TensorInfo> output(1);
    conv->infer({Part(node, i), part, output});
    results.push_back(output[0]);
  }
  return results;
}

void InferChain(const InferContext& context) {
  const TensorInfo y = InferParts(context.node, context.inputs).back();
  context.SetOutput(0, y.dtype, y.shape);
}

std::vector<QuantizedConvParams> ReadChain(const OpNode& node, std::span<const TensorInfo> inputs) {
  const std::vector<TensorInfo> results = InferParts(node, inputs);
  std::vector<QuantizedConvParams> chain;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const bool is_last = i + 1 == results.size();
    chain.push_back(ReadQuantizedConv(Part(node, i),
                                      i == 0 ? inputs[0].shape : results[i - 1].shape,
                                      inputs[kChainOperands + i * kOperandsOfChained].shape,
                                      is_last && inputs[kChainAddend].present));
  }
  return chain;
}

// One reference kernel after the other.
class ReferenceChain final : public Kernel {
 public:
  ReferenceChain(std::span<const QuantizedConvParams> chain,
                 std::span<const QuantizedConvConstants> constants) {
    for (std::size_t i = 0; i < chain.size(); ++i) {
      const ConvParams& p = chain[i].conv;
      kernels_.push_back(MakeReferenceQuantizedConv(chain[i], constants[i]));
      results_.push_back({p.batch, p.out_channels, p.out_height, p.out_width});
      flops_ += p.Flops();
    }
  }

  std::string_view name() const override { return "quantized_conv_chain_reference"; }
  double Flops() const override { return flops_; }
  std::size_t ScratchBytesPerThread() const override {
    std::size_t bytes = 0;
    for (const Shape& shape : results_) bytes += static_cast<std::size_t>(shape.NumElements());
    return bytes;
  }
  void Run(const RunContext& run) const override {
    TensorView x = run.inputs[0];
    auto* scratch = run.Scratch<std::uint8_t>(0);
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      const std::vector<TensorView> inputs = InputsOfPart(run.inputs, i, x);
      x = {DType::kUint8, Layout::kRowMajor, results_[i], scratch};
      if (i + 1 == kernels_.size()) x = run.outputs[0];
      scratch += results_[i].NumElements();
      kernels_[i]->Run({inputs, {&x, 1}, run.parallel, nullptr, 0});
    }
  }

 private:
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<Shape> results_;
  double flops_ = 0;
};

LayoutChoice ChainLayouts(const LayoutContext& context) {
  if (!IsQuantizedChain(ReadChain(context.node, context.inputs))) return {};
  LayoutChoice choice{std::vector<Layout>(context.inputs.size(), Layout::kRowMajor),
                      {Layout::kChannelsLast}};
  choice.inputs[0] = Layout::kChannelsLast;
  if (context.inputs[kChainAddend].present) choice.inputs[kChainAddend] = Layout::kChannelsLast;
  return choice;
}

std::unique_ptr<Kernel> PrepareChain(const PrepareContext& context) {
  const std::vector<QuantizedConvParams> chain = ReadChain(context.node, context.inputs);
  std::vector<QuantizedConvConstants> constants;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const auto constant = [&](std::size_t k) -> std::shared_ptr<const Tensor> {
      const std::size_t at = kChainOperands + i * kOperandsOfChained + k;
      if (!context.HasInput(at)) return nullptr;
      Require(context.inputs[at].constant != nullptr, "input ", at, " has to be constant");
      return context.inputs[at].constant;
    };
    constants.push_back({constant(0), constant(1), constant(2), constant(3)});
  }
  if (context.reference || context.outputs[0].layout != Layout::kChannelsLast) {
    return std::make_unique<ReferenceChain>(chain, constants);
  }
  return MakeQuantizedChain(chain, constants, context.packs);
}

}  // namespace

Attributes ChainAttributes(std::span<const Attributes* const> convolutions) {
  Attributes chain;
  for (std::size_t i = 0; i < convolutions.size(); ++i) {
    for (const auto& [name, value] : *convolutions[i]) chain.Set(Prefix(i) + name, value);
  }
  return chain;
}

extern const OpDef kQuantizedConvChainOp;
const OpDef kQuantizedConvChainOp = {.type = "QuantizedConvChain",
                                     .min_inputs = kChainOperands + kOperandsOfChained + 2,
                                     .max_inputs = kChainOperands + kMaxChain * kOperandsOfChained,
                                     .infer = InferChain,
                                     .prepare = PrepareChain,
                                     .layouts = ChainLayouts,
                                     .internal = true};

}  // namespace tessera
