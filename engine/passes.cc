#include "engine/passes.h"

#include <cstdlib>
#include <sstream>

#include "engine/passes/passes.h"

namespace tessera {
namespace {

// To add a pass, write its file in engine/passes and list it here. Those of stage kPlan are part of
// the planner.
const Pass kPasses[] = {
    {"widen-float16", "float16 weights and inputs become float32", PassStage::kRequired,
     WidenFloat16},
    {"use-integers", "DequantizeLinear -> operator -> QuantizeLinear is computed on integers",
     PassStage::kQuantized, UseIntegers},
    {"drop-requantize",
     "Relu, Clip and changes of scale between bytes vanish where they change nothing, or become "
     "bounds of the operator before them",
     PassStage::kQuantized, DropRequantize},
    {"remove-identity", "Identity and Dropout vanish", PassStage::kCanonical, RemoveIdentity},
    {"split-conv-transpose",
     "ConvTranspose becomes a Conv of all phases of the output, which are interleaved after it",
     PassStage::kCanonical, SplitConvTranspose},
    {"fold-batch-norm", "BatchNormalization goes into the weights of the Conv before it",
     PassStage::kCanonical, FoldBatchNorm},
    {"fold-pad", "zeros that a Pad adds become pads of the Conv after it", PassStage::kCanonical,
     FoldPad},
    {"fold-scale-shift",
     "Mul, Div, Add and Sub by constants go into the weights of the Conv before or after them",
     PassStage::kCanonical, FoldScaleShift},
    {"fold-pointwise",
     "a Conv that only a 1x1 Conv reads, perhaps in a Concat, makes its share of that one's result",
     PassStage::kCanonical, FoldPointwise},
    {"drop-reshape", "Reshape and Expand to the shape that a tensor has already vanish",
     PassStage::kFast, DropReshape},
    {"fuse-activation",
     "Conv + Relu, LeakyRelu, PRelu, Clip, Sigmoid, HardSigmoid, HardSwish or x*sigmoid(x); "
     "Gemm and Mul + those of them that have no operands",
     PassStage::kFast, FuseActivation},
    {"fuse-compare", "a comparison of floats whose result is cast to float", PassStage::kFast,
     FuseCompare},
    {"fuse-gate", "Conv + SPAN's gate (x + shortcut) * (sigmoid(x) - 0.5)", PassStage::kFast,
     FuseGate},
    {"fuse-residual", "Conv + x * scale + shortcut", PassStage::kFast, FuseResidual},
    {"fuse-mul-add", "x * scale + shift in one step", PassStage::kFast, FuseMulAdd},
    {"fuse-upsampled-shortcut", "DepthToSpace + an image enlarged as much by repeating its pixels",
     PassStage::kFast, FuseUpsampledShortcut},
    {"fuse-correlation", "MatMul of a template's pixels with those of a search area",
     PassStage::kFast, FuseCorrelation},
    {"share-winograd-input",
     "convolutions of a dense block read channels that were transformed for Winograd once",
     PassStage::kFast, ShareWinogradInput},
    {"stream-depthwise", "depthwise and pointwise convolutions are computed together, by rows",
     PassStage::kFast, StreamDepthwise},
    {"stream-quantized",
     "pointwise and depthwise convolutions on bytes that follow each other are computed together",
     PassStage::kFast, StreamQuantized},
    {"quantize-in-conv",
     "a float image is quantised by the convolution on bytes that alone reads it so",
     PassStage::kFast, QuantizeInConv},
    {"view-one-pixel", "tensors of one pixel change their layout in place", PassStage::kPlan,
     nullptr},
    {"concat-in-place", "inputs of a Concat that only appends are computed in their place in it",
     PassStage::kPlan, nullptr},
};

}  // namespace

std::span<const Pass> AllPasses() { return kPasses; }

void RunPasses(Graph& graph, PassStage stage, const std::set<std::string, std::less<>>& disabled,
               RewriteCounts* counts) {
  for (const Pass& pass : kPasses) {
    if (pass.stage != stage || disabled.contains(pass.name)) continue;
    const int rewrites = pass.run(graph);
    if (rewrites > 0) graph.RemoveDeadNodes();
    if (counts != nullptr) (*counts)[pass.name] += rewrites;
  }
  if (stage == PassStage::kFast || stage == PassStage::kQuantized) return;
  for (Node& node : graph.nodes) {
    for (std::shared_ptr<const Graph>& body : node.bodies) {
      auto rewritten = std::make_shared<Graph>(*body);
      RunPasses(*rewritten, stage, disabled, counts);
      body = std::move(rewritten);
    }
  }
}

std::set<std::string, std::less<>> DisabledPasses(std::span<const std::string> names) {
  std::set<std::string, std::less<>> disabled(names.begin(), names.end());
  if (const char* list = std::getenv("TESSERA_DISABLE")) {
    std::istringstream in(list);
    for (std::string name; std::getline(in, name, ',');) {
      if (!name.empty()) disabled.insert(name);
    }
  }
  std::set<std::string_view> known;
  for (const Pass& pass : kPasses) {
    if (pass.stage != PassStage::kRequired) known.insert(pass.name);
  }
  for (const std::string& name : disabled) {
    if (known.contains(name)) continue;
    std::string list;
    for (const std::string_view pass : known) list += StrCat(list.empty() ? "" : ", ", pass);
    throw Error(StrCat("'", name, "' is no pass that could be disabled; those are ", list));
  }
  return disabled;
}

}  // namespace tessera
