#include "models/graph_builder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>

#include "ops/error.h"
#include "ops/tensor.h"

namespace tessera {
namespace {

static_assert(std::endian::native == std::endian::little, "ONNX stores raw data little-endian");

// The oldest file format version that may carry an operator set (onnx/docs/Versioning.md).
int IrVersion(int opset) { return opset >= 15 ? 8 : 7; }

std::int64_t NumElements(std::span<const std::int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

void Declare(onnx::ValueInfoProto& info, std::string_view name, onnx::TensorProto::DataType type,
             const std::vector<GraphBuilder::Dim>& dims) {
  info.set_name(std::string(name));
  onnx::TypeProto::Tensor& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  for (const GraphBuilder::Dim& dim : dims) {
    auto& added = *tensor.mutable_shape()->add_dim();
    if (const auto* size = std::get_if<std::int64_t>(&dim)) {
      added.set_dim_value(*size);
    } else {
      added.set_dim_param(std::get<std::string>(dim));
    }
  }
}

struct AttributeWriter {
  onnx::AttributeProto& attribute;

  void operator()(std::int64_t value) const {
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(value);
  }
  void operator()(float value) const {
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(value);
  }
  void operator()(const std::string& value) const {
    attribute.set_type(onnx::AttributeProto::STRING);
    attribute.set_s(value);
  }
  void operator()(const std::vector<std::int64_t>& values) const {
    attribute.set_type(onnx::AttributeProto::INTS);
    attribute.mutable_ints()->Add(values.begin(), values.end());
  }
};

}  // namespace

GraphBuilder::GraphBuilder(std::string_view graph_name, int opset, WeightSource& weights,
                           WeightStorage storage)
    : weights_(weights), storage_(storage) {
  model_.set_ir_version(IrVersion(opset));
  model_.set_producer_name("tessera");
  onnx::OperatorSetIdProto& version = *model_.add_opset_import();
  version.set_domain("");
  version.set_version(opset);
  model_.mutable_graph()->set_name(std::string(graph_name));
}

GraphBuilder::Value GraphBuilder::Input(std::string_view name, onnx::TensorProto::DataType type,
                                        std::vector<Dim> dims) {
  Declare(*model_.mutable_graph()->add_input(), name, type, dims);
  return Value(name);
}

void GraphBuilder::Output(const Value& value, onnx::TensorProto::DataType type,
                          std::vector<Dim> dims) {
  Declare(*model_.mutable_graph()->add_output(), value, type, dims);
}

GraphBuilder::Value GraphBuilder::Node(std::string_view op_type, std::string_view name,
                                       std::vector<Value> inputs,
                                       std::vector<Attribute> attributes) {
  onnx::NodeProto& node = *model_.mutable_graph()->add_node();
  node.set_op_type(std::string(op_type));
  node.set_name(std::string(name));
  for (Value& input : inputs) node.add_input(std::move(input));
  node.add_output(std::string(name));
  for (const auto& [attribute_name, value] : attributes) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(std::string(attribute_name));
    std::visit(AttributeWriter{attribute}, value);
  }
  return Value(name);
}

GraphBuilder::Value GraphBuilder::Weight(std::string_view name,
                                         const std::vector<std::int64_t>& dims,
                                         const WeightInit& init) {
  std::vector<float> values(static_cast<std::size_t>(NumElements(dims)));
  weights_.Next(init, values);
  parameters_ += static_cast<std::int64_t>(values.size());
  if (storage_ == WeightStorage::kFloat32) {
    AddInitializer(name, onnx::TensorProto::FLOAT, dims, std::as_bytes(std::span(values)));
    return Value(name);
  }

  std::vector<std::uint16_t> halves(values.size());
  std::transform(values.begin(), values.end(), halves.begin(), [&](float value) {
    const std::uint16_t half = FloatToHalf(value);
    Require(std::isfinite(HalfToFloat(half)), "weight ", value, " of '", name,
            "' does not fit in float16");
    return half;
  });
  AddInitializer(name, onnx::TensorProto::FLOAT16, dims, std::as_bytes(std::span(halves)));
  return Node("Cast", Value(name) + ".float", {Value(name)},
              {{"to", std::int64_t{onnx::TensorProto::FLOAT}}});
}

GraphBuilder::Value GraphBuilder::Floats(std::string_view name,
                                         const std::vector<std::int64_t>& dims,
                                         const std::vector<float>& values) {
  AddInitializer(name, onnx::TensorProto::FLOAT, dims, std::as_bytes(std::span(values)));
  return Value(name);
}

GraphBuilder::Value GraphBuilder::Ints(std::string_view name,
                                       const std::vector<std::int64_t>& values) {
  const std::int64_t dims[] = {static_cast<std::int64_t>(values.size())};
  AddInitializer(name, onnx::TensorProto::INT64, dims, std::as_bytes(std::span(values)));
  return Value(name);
}

void GraphBuilder::AddInitializer(std::string_view name, onnx::TensorProto::DataType type,
                                  std::span<const std::int64_t> dims,
                                  std::span<const std::byte> data) {
  onnx::TensorProto& tensor = *model_.mutable_graph()->add_initializer();
  tensor.set_name(std::string(name));
  tensor.set_data_type(type);
  tensor.mutable_dims()->Add(dims.begin(), dims.end());
  tensor.set_raw_data(data.data(), data.size());
}

onnx::ModelProto GraphBuilder::Finish() { return std::exchange(model_, {}); }

}  // namespace tessera
