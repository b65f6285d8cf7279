// Models from before opset 7.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

namespace tessera {

inline constexpr int kOldestOpset = 1;

// Rewrites a model of opset 1 to 6 into one of opset 7 that means the same; leaves others alone.
// What changed up to 7: tensors were broadcast along an axis that an attribute named (and along
// channels by PRelu), operators said whether they ran for training, and listed inputs that they
// overwrote. Throws Unsupported, naming file and node, where an operator had other inputs or
// attributes in that opset, ran for training, or where a rank is needed that the model does not
// tell. Source: onnx/docs/Changelog.md.
void RaiseOpset(onnx::ModelProto& model, const std::string& file);

}  // namespace tessera
