// Scales of channels between convolutions.
//
// Where convolutions follow each other with nothing between them but functions with
// f(s * x) = s * f(x), s > 0, a channel may be divided by s in the first and multiplied by it in
// the second: the network computes the same, but the channels of the tensor between them, which
// share a scale once they are quantised, get ranges that are more alike (M. Nagel et al., 2019,
// arXiv:1906.04721; with ranges of activations in place of those of weights, as G. Xiao et al.,
// SmoothQuant, 2022, arXiv:2211.10438, have it: weights have a scale for each output channel).
//
// 8 bits with a zero point need not be symmetric. So ranges are made alike at both ends, as far as
// that goes, and a channel before a PRelu that reaches further below 0 than above is turned over:
// PRelu(x) with slope s > 0 is -s times PRelu(-x) with slope 1 / s.
#pragma once

#include <map>
#include <vector>

#include "engine/graph.h"
#include "engine/quantization/histogram.h"

namespace tessera {

// `ranges` are those of each channel of a value, `shapes` a graph of the same values with their
// shapes. Tensors that several convolutions and additions share (residuals) are scaled
// together. Returns the number of sets of values that were scaled.
int EqualizeChannels(Graph& graph, const Graph& shapes,
                     const std::map<ValueId, std::vector<ValueRange>>& ranges);

}  // namespace tessera
