// Small ONNX models for tests, written in a few lines.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/session.h"

namespace tessera {

class TestModel {
 public:
  using Attribute =
      std::pair<std::string,
                std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>>>;

  explicit TestModel(int opset = 13) {
    proto.set_ir_version(8);
    proto.add_opset_import()->set_version(opset);
    proto.mutable_graph()->set_name("test");
  }

  // A dimension of -1 has a name instead of a number.
  TestModel& Input(const std::string& name, const std::vector<std::int64_t>& dims,
                   int type = onnx::TensorProto::FLOAT) {
    Declare(*proto.mutable_graph()->add_input(), name, dims, type);
    return *this;
  }
  TestModel& Output(const std::string& name, int type = onnx::TensorProto::FLOAT) {
    auto* info = proto.mutable_graph()->add_output();
    info->set_name(name);
    info->mutable_type()->mutable_tensor_type()->set_elem_type(type);
    return *this;
  }
  TestModel& Floats(const std::string& name, const std::vector<std::int64_t>& dims,
                    const std::vector<float>& values) {
    auto* t = proto.mutable_graph()->add_initializer();
    t->set_name(name);
    t->set_data_type(onnx::TensorProto::FLOAT);
    for (std::int64_t d : dims) t->add_dims(d);
    for (float v : values) t->add_float_data(v);
    return *this;
  }
  TestModel& Ints(const std::string& name, const std::vector<std::int64_t>& values) {
    auto* t = proto.mutable_graph()->add_initializer();
    t->set_name(name);
    t->set_data_type(onnx::TensorProto::INT64);
    t->add_dims(static_cast<std::int64_t>(values.size()));
    for (std::int64_t v : values) t->add_int64_data(v);
    return *this;
  }
  // Seeded noise in [-scale, scale).
  TestModel& Noise(const std::string& name, const std::vector<std::int64_t>& dims,
                   float scale = 1.0f) {
    std::int64_t n = 1;
    for (std::int64_t d : dims) n *= d;
    return Floats(name, dims, NoiseValues(static_cast<std::size_t>(n), ++seed_, scale));
  }
  TestModel& Node(const std::string& type, const std::vector<std::string>& inputs,
                  const std::vector<std::string>& outputs,
                  const std::vector<Attribute>& attributes = {}) {
    auto* node = proto.mutable_graph()->add_node();
    node->set_op_type(type);
    node->set_name(type + "_" + outputs[0]);
    for (const auto& in : inputs) node->add_input(in);
    for (const auto& out : outputs) node->add_output(out);
    for (const auto& [name, value] : attributes) {
      auto* a = node->add_attribute();
      a->set_name(name);
      if (const auto* i = std::get_if<std::int64_t>(&value)) {
        a->set_type(onnx::AttributeProto::INT);
        a->set_i(*i);
      } else if (const auto* f = std::get_if<float>(&value)) {
        a->set_type(onnx::AttributeProto::FLOAT);
        a->set_f(*f);
      } else if (const auto* s = std::get_if<std::string>(&value)) {
        a->set_type(onnx::AttributeProto::STRING);
        a->set_s(*s);
      } else {
        a->set_type(onnx::AttributeProto::INTS);
        for (std::int64_t v : std::get<std::vector<std::int64_t>>(value)) a->add_ints(v);
      }
    }
    return *this;
  }

  // Gives the last node a sub-graph.
  TestModel& Body(const std::string& attribute, const TestModel& body) {
    auto& node = *proto.mutable_graph()->mutable_node(proto.graph().node_size() - 1);
    auto* a = node.add_attribute();
    a->set_name(attribute);
    a->set_type(onnx::AttributeProto::GRAPH);
    *a->mutable_g() = body.proto.graph();
    return *this;
  }

  std::string Bytes() const { return proto.SerializeAsString(); }
  std::shared_ptr<Session> Load(const SessionOptions& options = {}) const {
    const std::string bytes = Bytes();
    return Session::LoadFromMemory(std::as_bytes(std::span(bytes)), "test.onnx", options);
  }

  static std::vector<float> NoiseValues(std::size_t n, std::uint32_t seed, float scale = 1.0f) {
    std::vector<float> values(n);
    std::uint32_t s = seed * 2654435761u + 1;
    for (float& v : values) {
      s ^= s << 13;
      s ^= s >> 17;
      s ^= s << 5;
      v = scale * (static_cast<float>(s) * 0x1p-31f - 1.0f);
    }
    return values;
  }

  onnx::ModelProto proto;

 private:
  static void Declare(onnx::ValueInfoProto& info, const std::string& name,
                      const std::vector<std::int64_t>& dims, int type) {
    info.set_name(name);
    auto* tensor = info.mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    auto* shape = tensor->mutable_shape();
    for (std::size_t i = 0; i < dims.size(); ++i) {
      auto* dim = shape->add_dim();
      if (dims[i] >= 0) {
        dim->set_dim_value(dims[i]);
      } else {
        dim->set_dim_param(name + "_dim" + std::to_string(i));
      }
    }
  }

  std::uint32_t seed_ = 0;
};

}  // namespace tessera
