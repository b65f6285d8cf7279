// A look at an ONNX file before it is parsed: two bytes of it can become hundreds in memory.
#pragma once

#include <google/protobuf/io/zero_copy_stream.h>

#include <string>

namespace tessera {

// Reads the tags of a serialised ModelProto, passes over the weights, and throws Error, with
// `file` in front, where it has groups, or more nodes or deeper bodies than engine/model_limits.h
// allows, and MemoryLimitExceeded where its messages and numbers would take more memory than the
// present MemoryScope has left. Says nothing of bytes that are no model: parsing tells better.
void ScanOnnx(google::protobuf::io::ZeroCopyInputStream& bytes, const std::string& file);

}  // namespace tessera
