// The passes; engine/passes.cc says what each does and when it runs. All return the number of
// rewrites and leave dead nodes to the caller.
#pragma once

#include "engine/graph.h"

namespace tessera {

int WidenFloat16(Graph& graph);
int RemoveIdentity(Graph& graph);
int DropRequantize(Graph& graph);
int DropReshape(Graph& graph);
int FoldBatchNorm(Graph& graph);
int FoldPad(Graph& graph);
int FoldPointwise(Graph& graph);
int FoldScaleShift(Graph& graph);
int FuseActivation(Graph& graph);
int FuseCompare(Graph& graph);
int FuseCorrelation(Graph& graph);
int FuseGate(Graph& graph);
int FuseMulAdd(Graph& graph);
int FuseResidual(Graph& graph);
int FuseUpsampledShortcut(Graph& graph);
int QuantizeInConv(Graph& graph);
int ShareWinogradInput(Graph& graph);
int SplitConvTranspose(Graph& graph);
int StreamDepthwise(Graph& graph);
int StreamQuantized(Graph& graph);
int UseIntegers(Graph& graph);

}  // namespace tessera
