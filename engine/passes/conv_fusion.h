// What the passes that fuse nodes share, most of them into a convolution's epilogue.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "engine/graph.h"
#include "ops/epilogue.h"

namespace tessera {

// The node that makes `value` if it has this type and nobody but one reader needs its result,
// otherwise null.
const Node* OnlyProducer(const Graph& graph, ValueId value, std::string_view type,
                         const std::vector<int>& producers,
                         const std::vector<std::vector<int>>& consumers);

// Index of the Conv or FusedConv with constant weights that makes `value`, or -1; also -1 if
// `value` is not read exactly `uses` times or is an output of the graph.
int FusableConv(const Graph& graph, ValueId value, std::size_t uses,
                const std::vector<int>& producers, const std::vector<std::vector<int>>& consumers);

struct FusedActivation {
  Epilogue epilogue;
  ValueId slope = kNoValue;
};
// `node` as an epilogue of the convolution with so many output channels that makes its first input,
// if it is one.
std::optional<FusedActivation> AsActivation(const Graph& graph, const Node& node,
                                            std::int64_t channels);

// The node `conv` as a FusedConv with this epilogue that writes `output`. `slope` and `addend`
// may be kNoValue; inputs that it has already are kept.
Node MakeFusedConv(const Node& conv, const Epilogue& epilogue, ValueId slope, ValueId addend,
                   ValueId output);

// The convolution (or FusedConv without epilogue) whose weights and bias, if there is one, are
// float32 constants of rank 3 or more: those that can be changed.
bool HasFloatWeights(const Graph& graph, const Node& conv);
// Gives a convolution with HasFloatWeights new weights and a new bias, so that its output channel o
// becomes conv(x)[o] * scale[o] + shift[o]. `suffix` names them.
void ScaleOutputs(Graph& graph, Node& conv, std::span<const double> scale,
                  std::span<const double> shift, std::string_view suffix);

// The value of a float32 constant with one element.
std::optional<float> ScalarConstant(const Graph& graph, ValueId id);

}  // namespace tessera
