// Tensors of ONNX files.
#pragma once

#include <onnx/onnx_pb.h>

#include <filesystem>
#include <string>

#include "ops/tensor.h"

namespace tessera {

// An element type by its number in onnx.TensorProto.DataType. Throws Unsupported, with `what` in
// front, for those that DType does not have.
DType ToDType(int type, const std::string& what);

// The tensor; external data is looked for in `folder`, and refused if that is empty. Throws Error,
// with `what` in front, where data and shape do not fit; nothing is allocated that the file does
// not hold.
Tensor ReadTensor(const onnx::TensorProto& proto, const std::filesystem::path& folder,
                  const std::string& what);

}  // namespace tessera
