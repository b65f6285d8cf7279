// Scales of channels between convolutions.
//
// Where convolutions follow each other with nothing between them but functions with
// f(s * x) = s * f(x), s > 0, a channel may be divided by s in the first and multiplied by it in
// the second: the network computes the same, but the channels of the tensor between them, which
// share a scale once they are quantised, get ranges that are more alike (M. Nagel et al., 2019,
// arXiv:1906.04721; with ranges of activations in place of those of weights, as G. Xiao et al.,
// SmoothQuant, 2022, arXiv:2211.10438, have it: weights have a scale for each output channel).
// A Concat hands scales on to the convolutions that read it.
//
// Where a map is there in float, as the product of two maps is, nothing before it is changed:
// convolutions read a copy that a Mul divides by the channels' scales. QuantizeLinear can do that
// on the way (see engine/quantization/insert_qdq.h).
#pragma once

#include "engine/graph.h"
#include "engine/quantization/calibrate.h"

namespace tessera {

// `ranges` are those of the channels of each value, `shapes` a graph of the same values with their
// shapes. Tensors that several convolutions and additions share (residuals) are scaled together.
// Returns the number of sets of values that were scaled.
int EqualizeChannels(Graph& graph, const Graph& shapes, const ChannelRanges& ranges);

}  // namespace tessera
