// The export: a standard model by ONNX's own checker, which gives what the graph gave.
#include "engine/onnx_export.h"

#include <gtest/gtest.h>
#include <onnx/checker.h>
#include <onnx/onnx_pb.h>

#include <cstring>

#include "engine/model_file.h"
#include "engine/onnx_import.h"
#include "models/networks.h"
#include "tests/engine/ncnn_test_model.h"
#include "tests/engine/test_model.h"
#include "tests/shared_files.h"

namespace tessera {
namespace {

Graph Import(const std::string& bytes) {
  return ImportOnnx(std::as_bytes(std::span(bytes)), "model", {});
}

void Check(const std::string& bytes) {
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(bytes));
  EXPECT_NO_THROW(onnx::checker::check_model(model));
}

// The outputs of output after output, byte by byte.
std::string Outputs(const std::string& bytes, const std::vector<Shape>& shapes) {
  const auto session = Session::LoadFromMemory(std::as_bytes(std::span(bytes)), "model");
  std::vector<Tensor> inputs, outputs;
  std::vector<NamedView> views;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const DType type = session->inputs()[i].dtype;
    inputs.emplace_back(type, shapes[i]);
    const auto n = static_cast<std::size_t>(shapes[i].NumElements());
    const std::vector<float> noise = TestModel::NoiseValues(n, 5);
    for (std::size_t k = 0; k < n; ++k) {
      if (type == DType::kInt16) {
        inputs[i].data<std::int16_t>()[k] = static_cast<std::int16_t>(noise[k] * 8);
      } else {
        inputs[i].data<float>()[k] = noise[k];
      }
    }
    views.push_back({session->inputs()[i].name, inputs[i].view()});
  }
  session->Run(views, outputs);
  std::string all;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    all += StrCat(session->outputs()[i].name, outputs[i].dtype(), outputs[i].shape());
    all.append(outputs[i].data<char>(), outputs[i].bytes());
  }
  return all;
}

void CheckRoundTrip(const std::string& bytes, const std::vector<Shape>& shapes) {
  const std::string exported = ExportOnnx(Import(bytes));
  Check(exported);
  EXPECT_EQ(Outputs(bytes, shapes), Outputs(exported, shapes));
  // What has been exported once does not change any more.
  EXPECT_EQ(ExportOnnx(Import(exported)), exported);
}

TEST(OnnxExport, BuiltNetworksGiveTheSameBytes) {
  for (const char* name : {"span-x4", "srvgg-animevideov3", "f5dctnet-v1ss"}) {
    SCOPED_TRACE(name);
    SeededWeights weights(3);
    const NetworkDef* network = FindNetwork(name);
    ASSERT_NE(network, nullptr);
    const std::string bytes = BuildNetwork(*network, weights).SerializeAsString();
    const bool picture = std::string_view(name).find("dct") == std::string_view::npos;
    CheckRoundTrip(bytes, {picture ? Shape{1, 3, 9, 12} : Shape{1, 65536}});
  }
}

TEST(OnnxExport, Float16Weights) {
  SeededWeights weights(3);
  CheckRoundTrip(
      BuildNetwork(*FindNetwork("span-x4"), weights, WeightStorage::kFloat16).SerializeAsString(),
      {{1, 3, 8, 8}});
}

TEST(OnnxExport, KeepsDeclarationsAttributesAndOmittedInputs) {
  TestModel m(13);
  m.Input("x", {1, 2, -1, 4}).Output("y").Floats("scales", {4}, {1, 1, 2, 2});
  m.proto.mutable_graph()
      ->mutable_output(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->add_dim()
      ->set_dim_value(1);
  m.Node("Resize", {"x", "", "scales"}, {"r"}, {{"mode", std::string("nearest")}})
      .Node("Transpose", {"r"}, {"t"}, {{"perm", std::vector<std::int64_t>{0, 2, 3, 1}}})
      .Node("LeakyRelu", {"t"}, {"y"}, {{"alpha", 0.25f}});
  onnx::ModelProto out;
  const std::string bytes = ExportOnnx(Import(m.Bytes()));
  ASSERT_TRUE(out.ParseFromString(bytes));
  EXPECT_EQ(out.opset_import(0).version(), 13);
  EXPECT_EQ(out.ir_version(), 7);
  const auto& dims = out.graph().input(0).type().tensor_type().shape();
  ASSERT_EQ(dims.dim_size(), 4);
  EXPECT_EQ(dims.dim(1).dim_value(), 2);
  EXPECT_FALSE(dims.dim(2).has_dim_value());
  EXPECT_EQ(out.graph().node(0).input(1), "");
  EXPECT_EQ(out.graph().node(0).attribute(0).s(), "nearest");
  EXPECT_EQ(out.graph().node(1).attribute(0).ints_size(), 4);
  EXPECT_EQ(out.graph().node(2).attribute(0).f(), 0.25f);
  ASSERT_EQ(out.graph().initializer_size(), 1);
  EXPECT_EQ(out.graph().initializer(0).raw_data().size(), 16u);
}

TEST(OnnxExport, ValuesOfOneNameAreTold) {
  TestModel m;
  m.Input("x", {1, 4}).Output("y").Node("Relu", {"x"}, {"h"}).Node("Relu", {"h"}, {"y"});
  Graph graph = Import(m.Bytes());
  for (Value& value : graph.values) {
    if (value.name == "h") value.name = "x";
  }
  onnx::ModelProto out;
  ASSERT_TRUE(out.ParseFromString(ExportOnnx(graph)));
  EXPECT_EQ(out.graph().node(0).input(0), "x");
  EXPECT_NE(out.graph().node(0).output(0), "x");
  EXPECT_EQ(out.graph().node(0).output(0), out.graph().node(1).input(0));
}

// A graph in a graph reads x and the weights around it by their names.
TEST(OnnxExport, BranchesAndLoops) {
  TestModel then, otherwise, body, m;
  then.Node("Mul", {"x", "w"}, {"product"}).Output("product");
  otherwise.Output("x");
  body.Input("i", {}, onnx::TensorProto::INT64).Input("on", {}, onnx::TensorProto::BOOL);
  body.Input("sum", {2}).Node("Add", {"sum", "x"}, {"next"}).Node("Identity", {"on"}, {"go"});
  body.Output("go", onnx::TensorProto::BOOL).Output("next");
  m.Input("x", {2}).Floats("w", {2}, {3, 5}).Floats("half", {1}, {0.5f}).Ints("times", {4});
  m.Ints("first", {0}).Node("Gather", {"x", "first"}, {"x0"});
  m.Node("Greater", {"x0", "half"}, {"large"});
  m.Node("If", {"large"}, {"branch"});
  m.Body("then_branch", then).Body("else_branch", otherwise);
  m.Node("Loop", {"times", "", "branch"}, {"total"}).Body("body", body).Output("total");
  m.proto.mutable_graph()
      ->mutable_output(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->add_dim()
      ->set_dim_value(2);
  const std::string exported = ExportOnnx(Import(m.Bytes()));
  Check(exported);
  onnx::ModelProto proto;
  ASSERT_TRUE(proto.ParseFromString(exported));
  const onnx::GraphProto& loop = proto.graph().node(proto.graph().node_size() - 1).attribute(0).g();
  // ONNX Runtime runs no loop where these are not declared.
  EXPECT_EQ(loop.input(0).type().tensor_type().elem_type(), onnx::TensorProto::INT64);
  EXPECT_EQ(loop.input(1).type().tensor_type().elem_type(), onnx::TensorProto::BOOL);
  EXPECT_TRUE(loop.input(0).type().tensor_type().has_shape());
  EXPECT_TRUE(loop.input(1).type().tensor_type().has_shape());
  const auto session = Session::LoadFromMemory(std::as_bytes(std::span(exported)), "exported");
  for (const bool large : {false, true}) {
    const Tensor x = Tensor::FromVector<float>({2}, {large ? 1.0f : 0.25f, 2});
    std::vector<Tensor> outputs;
    session->Run(std::vector<NamedView>{{"x", x.view()}}, outputs);
    const std::vector<float> expected =
        large ? std::vector<float>{3 + 4, 10 + 8} : std::vector<float>{1.25f, 10};
    EXPECT_EQ(ToFloats(outputs[0].view()), expected);
  }
}

TEST(OnnxExport, RefusesOperatorsOfItsOwn) {
  TestModel m;
  m.Input("x", {1, 4}).Output("y").Node("Relu", {"x"}, {"y"});
  Graph graph = Import(m.Bytes());
  graph.nodes[0].op.type = "MulAdd";
  graph.nodes[0].def = FindOp("MulAdd");
  EXPECT_THROW(ExportOnnx(graph), Error);
}

TEST(OnnxExport, NcnnModelsPassTheChecker) {
  const auto shared = SharedFolder();
  if (!shared) GTEST_SKIP() << "the folder 'shared' with published networks is not there";
  for (const char* name : {"realesr-general-x4v3", "realesr-animevideov3-x2", "spanx4_ch48"}) {
    SCOPED_TRACE(name);
    const std::filesystem::path file = *shared / "models/ncnn" / StrCat(name, ".param");
    const std::string exported = ExportOnnx(ImportModel(file));
    Check(exported);
    EXPECT_EQ(ExportOnnx(Import(exported)), exported);
  }
}

}  // namespace
}  // namespace tessera
