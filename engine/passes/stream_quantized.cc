// Pointwise and depthwise QuantizedConv's that follow each other become a QuantizedConvChain.
#include <algorithm>
#include <utility>

#include "engine/passes/conv_fusion.h"
#include "engine/passes/passes.h"
#include "ops/quantized/quantized_conv_chain.h"
#include "ops/quantized/quantized_depthwise.h"

namespace tessera {
namespace {

class Streamer {
 public:
  explicit Streamer(Graph& graph)
      : graph_(graph), producers_(graph.Producers()), consumers_(graph.Consumers()) {}

  int Run() {
    int rewrites = 0;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!IsConv(i) || !IsQuantizedDepthwise(Params(i))) continue;
      if (StreamAround(i)) ++rewrites;
    }
    return rewrites;
  }

 private:
  const Node& node(std::size_t i) const { return graph_.nodes[i]; }
  bool IsConv(std::size_t i) const { return node(i).op.type == "QuantizedConv"; }

  QuantizedConvParams Params(std::size_t i) const {
    const Node& conv = node(i);
    const bool has_addend =
        conv.inputs.size() > kQuantizedAddend && conv.inputs[kQuantizedAddend] != kNoValue;
    return ReadQuantizedConv(conv.op, graph_.value(conv.inputs[0]).info.shape,
                             graph_.value(conv.inputs[kQuantizedWeights]).info.shape, has_addend);
  }

  // All but X and the addend are.
  bool HasConstants(std::size_t i) const {
    const Node& conv = node(i);
    for (std::size_t k = kQuantizedWeights; k < std::min(conv.inputs.size(), kQuantizedAddend);
         ++k) {
      if (conv.inputs[k] != kNoValue && graph_.Constant(conv.inputs[k]) == nullptr) return false;
    }
    return true;
  }

  // The convolution that makes `value`, or reads it, if only it and its reader need the value.
  std::vector<std::size_t> Before(ValueId value) const {
    if (OnlyProducer(graph_, value, "QuantizedConv", producers_, consumers_) == nullptr) return {};
    return {static_cast<std::size_t>(producers_[static_cast<std::size_t>(value)])};
  }
  std::vector<std::size_t> After(ValueId value) const {
    const auto& readers = consumers_[static_cast<std::size_t>(value)];
    if (readers.size() != 1 || graph_.IsOutput(value)) return {};
    const auto reader = static_cast<std::size_t>(readers[0]);
    if (!IsConv(reader) || node(reader).inputs[0] != value) return {};
    return {reader};
  }

  // Whether a pointwise convolution had better be the first of a chain of its own.
  bool LeadsOn(std::size_t pointwise) const {
    const std::vector<std::size_t> next = After(node(pointwise).outputs[0]);
    if (next.empty() || !IsQuantizedDepthwise(Params(next[0]))) return false;
    const QuantizedConvParams pair[] = {Params(pointwise), Params(next[0])};
    return StreamsWell(pair);
  }

  // The depthwise convolution with both of its neighbours, or with one of them.
  bool StreamAround(std::size_t depthwise) {
    const std::vector<std::size_t> before = Before(node(depthwise).inputs[0]);
    std::vector<std::size_t> after = After(node(depthwise).outputs[0]);
    if (!after.empty() && LeadsOn(after[0])) after.clear();
    const auto chain = [&](bool with_before, bool with_after) {
      std::vector<std::size_t> list;
      if (with_before) list = before;
      list.push_back(depthwise);
      if (with_after) list.insert(list.end(), after.begin(), after.end());
      return Stream(list);
    };
    return chain(true, true) || chain(true, false) || chain(false, true);
  }

  bool Stream(const std::vector<std::size_t>& chain) {
    std::vector<QuantizedConvParams> params;
    for (const std::size_t i : chain) {
      if (!HasConstants(i)) return false;
      params.push_back(Params(i));
    }
    if (!StreamsWell(params)) return false;

    Node& last = graph_.nodes[chain.back()];
    std::vector<const Attributes*> attributes;
    std::vector<ValueId> inputs = {node(chain[0]).inputs[0], params.back().has_addend
                                                                 ? last.inputs[kQuantizedAddend]
                                                                 : kNoValue};
    for (const std::size_t i : chain) {
      attributes.push_back(&node(i).op.attributes);
      for (std::size_t k = kQuantizedWeights; k < kQuantizedWeights + kOperandsOfChained; ++k) {
        inputs.push_back(k < node(i).inputs.size() ? node(i).inputs[k] : kNoValue);
      }
    }
    Attributes joined = ChainAttributes(attributes);
    last.op.type = "QuantizedConvChain";
    last.op.attributes = std::move(joined);
    last.def = FindOp(last.op.type);
    last.inputs = std::move(inputs);
    for (const std::size_t i : chain) {
      if (i == chain.back()) continue;
      Node& dead = graph_.nodes[i];
      dead.outputs[0] = graph_.AddValue(dead.op.name + ".streamed");
    }
    return true;
  }

  Graph& graph_;
  std::vector<int> producers_;
  std::vector<std::vector<int>> consumers_;
};

}  // namespace

int StreamQuantized(Graph& graph) { return Streamer(graph).Run(); }

}  // namespace tessera
