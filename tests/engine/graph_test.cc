#include "tests/engine/passes/pass_test_util.h"

namespace tessera {
namespace {

TEST(RemoveDeadNodes, ForgetsConstantsThatNobodyReads) {
  const std::string bytes = ConvModel().Noise("unused", {8}).Output("c").Bytes();
  Graph graph = ImportOnnx(std::as_bytes(std::span(bytes)), "test.onnx", {});
  graph.RemoveDeadNodes();
  for (const Value& value : graph.values) {
    const bool read = value.name == "w" || value.name == "b";
    EXPECT_EQ(value.info.constant != nullptr, read) << value.name;
  }
}

}  // namespace
}  // namespace tessera
