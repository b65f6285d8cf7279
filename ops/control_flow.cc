// If and Loop. The engine, which knows graphs, runs them (engine/node_runner.h): here is only what
// an importer has to know.
// https://onnx.ai/onnx/operators/onnx__If.html, https://onnx.ai/onnx/operators/onnx__Loop.html
#include "ops/op.h"

namespace tessera {
namespace {

// What comes out depends on the condition. (Where that is known, the branch has taken the place of
// the If already.)
void InferIf(const InferContext&) { throw NeedsValue(0); }

// The number of iterations may end early, so nothing is known before the run.
void InferLoop(const InferContext&) { throw NeedsValue(0); }

}  // namespace

extern const OpDef kIfOp, kLoopOp;
const OpDef kIfOp = {
    .type = "If",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferIf,
    .num_bodies = 2,
};
const OpDef kLoopOp = {
    .type = "Loop",
    .min_inputs = 0,  // trip count and condition may be left out
    .max_inputs = -1,
    .infer = InferLoop,
    .num_bodies = 1,
};

}  // namespace tessera
