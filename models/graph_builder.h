// Writes an ONNX model node by node.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "models/weights.h"

namespace tessera {

// How weights are stored. Either way the network computes in float32: float16 weights pass
// through a Cast.
enum class WeightStorage : std::uint8_t { kFloat32, kFloat16 };

class GraphBuilder {
 public:
  // A tensor of the graph, by its name.
  using Value = std::string;
  using Attribute =
      std::pair<std::string_view,
                std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>>>;
  // A fixed size, or the name of one that is known at run time only.
  using Dim = std::variant<std::int64_t, std::string>;

  // `weights` has to outlive the builder.
  GraphBuilder(std::string_view graph_name, int opset, WeightSource& weights,
               WeightStorage storage);

  Value Input(std::string_view name, onnx::TensorProto::DataType type, std::vector<Dim> dims);
  // Declares that `value` is an output of the graph.
  void Output(const Value& value, onnx::TensorProto::DataType type, std::vector<Dim> dims);

  // Adds a node with one output, which takes the node's name. An empty input is an omitted one.
  Value Node(std::string_view op_type, std::string_view name, std::vector<Value> inputs,
             std::vector<Attribute> attributes = {});

  // Trained values, taken from the weight source. Throws Error if one does not fit in float16.
  Value Weight(std::string_view name, const std::vector<std::int64_t>& dims,
               const WeightInit& init);

  // Constants that belong to the architecture; always stored as they are.
  Value Floats(std::string_view name, const std::vector<std::int64_t>& dims,
               const std::vector<float>& values);
  Value Scalar(std::string_view name, float value) { return Floats(name, {}, {value}); }
  // A list of integers (rank 1), for shapes and axes.
  Value Ints(std::string_view name, const std::vector<std::int64_t>& values);

  // Number of weights so far.
  std::int64_t parameters() const { return parameters_; }
  // The model; the builder is empty afterwards.
  onnx::ModelProto Finish();

 private:
  void AddInitializer(std::string_view name, onnx::TensorProto::DataType type,
                      std::span<const std::int64_t> dims, std::span<const std::byte> data);

  onnx::ModelProto model_;
  WeightSource& weights_;
  WeightStorage storage_;
  std::int64_t parameters_ = 0;
};

}  // namespace tessera
