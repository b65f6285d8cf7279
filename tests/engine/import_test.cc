// What files the importer takes, and what it says about the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine/onnx_import.h"
#include "engine/session.h"
#include "engine/unsupported.h"
#include "ops/error.h"
#include "tests/engine/test_model.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string LoadError(const TestModel& model) {
  try {
    model.Load();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

std::string LoadError(const std::filesystem::path& path) {
  try {
    Session::Load(path);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TestModel ReluModel() {
  TestModel m;
  m.Input("x", {1, 2}).Node("Relu", {"x"}, {"y"}).Output("y");
  return m;
}

class ImportFiles : public testing::Test {
 protected:
  ImportFiles()
      : folder_(std::filesystem::temp_directory_path() /
                ("tessera_import_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~ImportFiles() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path Write(const std::string& name, const std::string& bytes) {
    const auto path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  std::filesystem::path folder_;
};

TEST_F(ImportFiles, NamesFileAndReasonWhenThereIsNoModel) {
  EXPECT_THAT(LoadError(folder_ / "missing.onnx"),
              AllOf(HasSubstr("missing.onnx"), HasSubstr("no such file")));
  EXPECT_THAT(LoadError(folder_), HasSubstr("is a folder"));
  EXPECT_THAT(LoadError(Write("empty.onnx", "")), HasSubstr("empty"));
  EXPECT_THAT(LoadError(Write("text.onnx", "this is no model")), HasSubstr("not an ONNX model"));
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);  // must not wait for a writer
  EXPECT_THAT(LoadError(folder_ / "pipe"), HasSubstr("not a file"));
}

TEST_F(ImportFiles, ReadsSingleTensors) {
  const Tensor tensor = ImportOnnxTensor(Write("t.pb", FloatTensorBytes({1, -2.5f})));
  EXPECT_EQ(tensor.dtype(), DType::kFloat32);
  EXPECT_EQ(tensor.shape(), Shape({2}));
  EXPECT_THAT(tensor.values<float>(), testing::ElementsAre(1, -2.5f));
  EXPECT_THROW(ImportOnnxTensor(folder_ / "missing.pb"), Error);
  EXPECT_THROW(ImportOnnxTensor(Write("cut.pb", FloatTensorBytes({1, 2}).substr(0, 5))), Error);
  onnx::TensorProto strings;
  strings.set_data_type(onnx::TensorProto::STRING);
  EXPECT_THROW(ImportOnnxTensor(Write("s.pb", strings.SerializeAsString())), Unsupported);
}

TEST_F(ImportFiles, ListsOperators) {
  TestModel m;
  m.Input("x", {1}).Node("Relu", {"x"}, {"y"}).Node("Wibble", {"y"}, {"z"}).Output("z");
  m.proto.mutable_graph()->mutable_node(1)->set_domain("com.example");
  EXPECT_THAT(OperatorsOfOnnx(Write("m.onnx", m.Bytes())),
              testing::ElementsAre("Relu", "com.example.Wibble"));
}

TEST_F(ImportFiles, EveryTruncationIsAnError) {
  TestModel m;
  m.Input("x", {1, 1, 4, 4}).Noise("w", {2, 1, 3, 3}).Node("Conv", {"x", "w"}, {"y"}).Output("y");
  const std::string bytes = m.Bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto path = Write("cut.onnx", bytes.substr(0, size));
    EXPECT_THAT(LoadError(path), HasSubstr("cut.onnx")) << size << " of " << bytes.size();
  }
  EXPECT_EQ(LoadError(Write("whole.onnx", bytes)), "no error");
}

TEST(Import, RefusesVersionsItDoesNotKnow) {
  TestModel m = ReluModel();
  m.proto.mutable_opset_import(0)->set_version(0);
  EXPECT_THAT(LoadError(m), HasSubstr("opset 0"));
  m.proto.mutable_opset_import(0)->set_version(22);
  EXPECT_THAT(LoadError(m), HasSubstr("opset 22"));
  m = ReluModel();
  m.proto.set_ir_version(2);
  EXPECT_THAT(LoadError(m), HasSubstr("IR version 2"));
  m = ReluModel();
  m.proto.clear_opset_import();
  EXPECT_THAT(LoadError(m), HasSubstr("names no opset"));
}

TEST(Import, ListsAllUnsupportedOperatorsAtOnce) {
  TestModel m;
  m.Input("x", {1, 2})
      .Node("Wibble", {"x"}, {"a"})
      .Node("Relu", {"a"}, {"b"})
      .Node("Wobble", {"b"}, {"c"})
      .Output("c");
  EXPECT_THAT(LoadError(m), AllOf(HasSubstr("Wibble"), HasSubstr("Wibble_a"), HasSubstr("Wobble"),
                                  testing::Not(HasSubstr("Relu"))));
}

TEST(Import, ListsOperatorsOfSubgraphsToo) {
  TestModel m;
  m.Input("c", {}, onnx::TensorProto::BOOL).Node("Wibble", {"c"}, {"y"}).Output("y");
  onnx::AttributeProto* branch = m.proto.mutable_graph()->mutable_node(0)->add_attribute();
  branch->set_name("then_branch");
  branch->set_type(onnx::AttributeProto::GRAPH);
  TestModel inner;
  inner.Node("Wobble", {"c"}, {"z"});
  *branch->mutable_g() = inner.proto.graph();
  EXPECT_THAT(LoadError(m), AllOf(HasSubstr("Wibble"), HasSubstr("Wobble (node 'Wobble_z')")));
}

TEST(Import, TellsWhatIsNotSupportedFromWhatIsWrong) {
  TestModel m = ReluModel();
  m.proto.mutable_graph()->mutable_node(0)->set_op_type("Wibble");
  EXPECT_THROW(m.Load(), Unsupported);
  m = ReluModel();
  m.proto.mutable_opset_import(0)->set_version(22);
  EXPECT_THROW(m.Load(), Unsupported);
  m = ReluModel();
  onnx::TypeProto* type = m.proto.mutable_graph()->mutable_input(0)->mutable_type();
  type->mutable_tensor_type()->set_elem_type(onnx::TensorProto::STRING);
  EXPECT_THROW(m.Load(), Unsupported);
  EXPECT_THAT(LoadError(m), HasSubstr("element type STRING"));
  type->mutable_sequence_type();
  EXPECT_THROW(m.Load(), Unsupported);
  EXPECT_THAT(LoadError(m), HasSubstr("input 'x' is a sequence, which is not supported"));
  m = ReluModel();
  m.proto.mutable_graph()->mutable_node(0)->set_input(0, "nowhere");
  try {
    m.Load();
    ADD_FAILURE();
  } catch (const Unsupported&) {
    ADD_FAILURE();
  } catch (const Error&) {
  }
}

TEST(Import, MessagesAreOneLineWhateverNamesHold) {
  TestModel m;
  m.Input("x", {1}).Node("Relu", {"x"}, {"y"}, {{"alpha", 1.0f}});
  auto* node = m.proto.mutable_graph()->mutable_node(0);
  node->set_name("two\nlines\x1B[31m");
  node->set_input(0, "no\rwhere");
  m.Output("y");
  EXPECT_THAT(LoadError(m), AllOf(HasSubstr("'two lines [31m'"), HasSubstr("'no where'")));
}

TEST(Import, FusedOperatorsAndForeignDomainsAreNotAccepted) {
  TestModel m;
  m.Input("x", {1, 1, 3, 3}).Noise("w", {1, 1, 1, 1});
  m.Node("FusedConv", {"x", "w"}, {"y"}).Output("y");
  EXPECT_THAT(LoadError(m), HasSubstr("FusedConv"));
  TestModel foreign = ReluModel();
  foreign.proto.mutable_graph()->mutable_node(0)->set_domain("com.example");
  EXPECT_THAT(LoadError(foreign), HasSubstr("com.example.Relu"));
}

TEST(Import, GraphsHaveToBeSound) {
  TestModel cycle;
  cycle.Input("x", {1}).Node("Add", {"x", "b"}, {"a"}).Node("Relu", {"a"}, {"b"}).Output("b");
  EXPECT_THAT(LoadError(cycle), HasSubstr("cycle"));

  TestModel missing;
  missing.Input("x", {1}).Node("Add", {"x", "nowhere"}, {"y"}).Output("y");
  EXPECT_THAT(LoadError(missing), AllOf(HasSubstr("nowhere"), HasSubstr("Add_y")));

  TestModel twice;
  twice.Input("x", {1}).Node("Relu", {"x"}, {"y"}).Node("Relu", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(LoadError(twice), HasSubstr("taken already"));

  TestModel no_output;
  no_output.Input("x", {1}).Node("Relu", {"x"}, {"y"});
  EXPECT_THAT(LoadError(no_output), HasSubstr("no output"));

  TestModel dangling;
  dangling.Input("x", {1}).Node("Relu", {"x"}, {"y"}).Output("z");
  EXPECT_THAT(LoadError(dangling), HasSubstr("'z' is made by no node"));

  TestModel two_inputs;
  two_inputs.Input("x", {1}).Input("x", {2}).Node("Relu", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(LoadError(two_inputs), HasSubstr("input 'x'"));

  TestModel arity;
  arity.Input("x", {1}).Node("Relu", {"x", "x"}, {"y"}).Output("y");
  EXPECT_THAT(LoadError(arity), HasSubstr("2 inputs"));
}

// Optional inputs and outputs are left out by an empty name; the others cannot be.
TEST(Import, RequiredInputsAndOutputsHaveToBeNamed) {
  TestModel cast;
  cast.Input("x", {1}).Node("Cast", {"x"}, {""}, {{"to", std::int64_t{10}}});
  cast.Node("Relu", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(LoadError(cast), AllOf(HasSubstr("Cast"), HasSubstr("no output 0")));

  TestModel bn;
  bn.Input("x", {1, 2}).Noise("w", {2});
  bn.Node("BatchNormalization", {"", "w", "w", "w", "x"}, {"y"}).Output("y");
  EXPECT_THAT(LoadError(bn), AllOf(HasSubstr("BatchNormalization"), HasSubstr("input 0")));
}

// Recurrent layers may leave out the states of all steps; something has to be left.
TEST(Import, RecurrentLayersMayLeaveOutTheirFirstOutput) {
  TestModel rnn(14);
  rnn.Input("x", {2, 1, 1}).Floats("w", {1, 1, 1}, {1}).Floats("r", {1, 1, 1}, {0});
  rnn.Node("RNN", {"x", "w", "r"}, {"", "h"}).Output("h");
  const Tensor x = Tensor::FromVector<float>({2, 1, 1}, {0, 100});
  std::vector<Tensor> outputs;
  const std::vector<NamedView> views = {{"x", x.view()}};
  SerialParallel serial;
  rnn.Load()->Run(views, outputs, &serial);
  EXPECT_EQ(outputs[0].shape(), (Shape{1, 1, 1}));
  EXPECT_EQ(*outputs[0].data<float>(), 1.f);

  TestModel nothing(14);
  nothing.Input("x", {2, 1, 1}).Floats("w", {1, 1, 1}, {1}).Floats("r", {1, 1, 1}, {0});
  nothing.Node("RNN", {"x", "w", "r"}, {"", ""}).Node("Relu", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(LoadError(nothing), AllOf(HasSubstr("RNN"), HasSubstr("no output 0")));
}

// TopK whose indices alone are wanted, Split whose first part nobody needs.
TEST(Import, SomeOperatorsMayLeaveOutTheirFirstOutput) {
  TestModel m;
  m.Input("x", {4}).Ints("k", {2}).Ints("parts", {1, 3});
  m.Node("TopK", {"x", "k"}, {"", "i"}).Output("i", onnx::TensorProto::INT64);
  m.Node("Split", {"x", "parts"}, {"", "rest"}).Output("rest");
  const Tensor x = Tensor::FromVector<float>({4}, {1, 7, 3, 5});
  std::vector<Tensor> outputs;
  m.Load()->Run(std::vector<NamedView>{{"x", x.view()}}, outputs);
  EXPECT_THAT(ToInt64s(outputs[0].view()), testing::ElementsAre(1, 3));
  EXPECT_THAT(ToFloats(outputs[1].view()), testing::ElementsAre(7, 3, 5));
}

TEST(Import, ErrorsOfPassesNameTheNode) {
  TestModel cast;
  cast.Input("x", {1}).Node("Cast", {"x"}, {"y"}, {{"to", "FLOAT16"}}).Output("y");
  EXPECT_THAT(LoadError(cast), AllOf(HasSubstr("test.onnx"), HasSubstr("'Cast_y' (Cast)"),
                                     HasSubstr("not of type int")));
  TestModel bn;
  bn.Input("x", {1, 1, 4, 4}).Noise("w", {1, 1, 1, 1}).Floats("one", {1}, {1});
  bn.Node("Conv", {"x", "w"}, {"c"});
  bn.Node("BatchNormalization", {"c", "one", "one", "one", "one"}, {"y"},
          {{"epsilon", std::int64_t{1}}});
  bn.Output("y");
  EXPECT_THAT(LoadError(bn), AllOf(HasSubstr("test.onnx"), HasSubstr("(BatchNormalization)"),
                                   HasSubstr("'epsilon'")));
}

TEST(Import, LackOfMemoryIsAnError) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers abort where memory is refused";
#endif
  // Some systems promise any amount of memory.
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit limited = before;
  limited.rlim_cur = std::min<rlim_t>(before.rlim_max, rlim_t{1} << 40);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limited), 0);
  TestModel m;
  m.Ints("shape", {1 << 20, 1 << 20}).Node("ConstantOfShape", {"shape"}, {"y"}).Output("y");
  EXPECT_THAT(LoadError(m), AllOf(HasSubstr("test.onnx"), HasSubstr("(ConstantOfShape)"),
                                  HasSubstr("not enough memory")));
  setrlimit(RLIMIT_AS, &before);
}

TEST(Import, NodesMayComeInAnyOrder) {
  TestModel m;
  m.Input("x", {1, 3}).Node("Neg", {"a"}, {"y"}).Node("Relu", {"x"}, {"a"}).Output("y");
  const auto session = m.Load();
  const Tensor x = Tensor::FromVector<float>({1, 3}, {-1, 2, 3});
  std::vector<Tensor> y;
  session->Run(std::vector<NamedView>{{"x", x.view()}}, y);
  EXPECT_THAT(y[0].values<float>(), testing::ElementsAre(0, -2, -3));
}

TEST(Import, TensorsWhoseDataDoesNotFitTheirShapeAreRefused) {
  TestModel m;
  m.Input("x", {1}).Floats("w", {2}, {1, 2, 3}).Node("Add", {"x", "w"}, {"y"}).Output("y");
  EXPECT_THAT(LoadError(m), AllOf(HasSubstr("initializer 'w'"), HasSubstr("3 values")));

  auto* w = m.proto.mutable_graph()->mutable_initializer(0);
  w->clear_float_data();
  w->set_raw_data(std::string(7, '\0'));
  EXPECT_THAT(LoadError(m), HasSubstr("7 bytes"));

  // A shape that claims exabytes is refused before anything is allocated.
  w->set_dims(0, std::int64_t{1} << 40);
  EXPECT_THAT(LoadError(m), HasSubstr("initializer 'w'"));
  w->set_dims(0, -4);
  EXPECT_THAT(LoadError(m), HasSubstr("negative dimension"));
}

// Whatever a file says for true, in memory it is 1.
TEST(Import, RawBoolsAreZeroOrOne) {
  TestModel m;
  auto* t = m.proto.mutable_graph()->add_initializer();
  t->set_name("b");
  t->set_data_type(onnx::TensorProto::BOOL);
  t->add_dims(4);
  t->set_raw_data(std::string("\x00\x01\x02\xFF", 4));
  m.Input("x", {4}, onnx::TensorProto::BOOL);
  m.Node("Xor", {"x", "b"}, {"y"}).Output("y", onnx::TensorProto::BOOL);
  const Tensor x = Tensor::FromVector<bool>({4}, {true, true, true, false});
  std::vector<Tensor> outputs;
  m.Load()->Run(std::vector<NamedView>{{"x", x.view()}}, outputs);
  EXPECT_THAT(ToInt64s(outputs[0].view()), testing::ElementsAre(1, 0, 0, 1));
}

TEST(Import, TypedDataOfEveryTypeIsRead) {
  using P = onnx::TensorProto;
  const std::pair<int, DType> types[] = {
      {P::FLOAT, DType::kFloat32}, {P::DOUBLE, DType::kFloat64}, {P::INT8, DType::kInt8},
      {P::INT16, DType::kInt16},   {P::INT32, DType::kInt32},    {P::INT64, DType::kInt64},
      {P::UINT8, DType::kUint8},   {P::UINT16, DType::kUint16},  {P::UINT32, DType::kUint32},
      {P::UINT64, DType::kUint64}, {P::BOOL, DType::kBool},      {P::FLOAT16, DType::kFloat16}};
  for (const auto& [type, dtype] : types) {
    TestModel m;
    auto* t = m.proto.mutable_graph()->add_initializer();
    t->set_name("w");
    t->set_data_type(type);
    t->add_dims(2);
    for (int v : {0, 1}) {
      switch (type) {
        case P::FLOAT:
          t->add_float_data(static_cast<float>(v));
          break;
        case P::DOUBLE:
          t->add_double_data(v);
          break;
        case P::INT64:
          t->add_int64_data(v);
          break;
        case P::UINT32:
        case P::UINT64:
          t->add_uint64_data(static_cast<std::uint64_t>(v));
          break;
        case P::FLOAT16:
          t->add_int32_data(v == 0 ? 0 : 0x3C00);
          break;
        default:
          t->add_int32_data(v);
      }
    }
    m.Input("x", {2}).Node("Cast", {"w"}, {"c"}, {{"to", std::int64_t{P::FLOAT}}});
    m.Node("Add", {"c", "x"}, {"y"}).Output("y");
    const Tensor x = Tensor::FromVector<float>({2}, {10, 20});
    std::vector<Tensor> y;
    m.Load()->Run(std::vector<NamedView>{{"x", x.view()}}, y);
    EXPECT_THAT(y[0].values<float>(), testing::ElementsAre(10, 21)) << Name(dtype);
  }
}

TEST_F(ImportFiles, ExternalDataIsReadFromBesideTheModelAndNowhereElse) {
  TestModel m;
  m.Input("x", {2}).Node("Add", {"x", "w"}, {"y"}).Output("y");
  auto* w = m.proto.mutable_graph()->add_initializer();
  w->set_name("w");
  w->set_data_type(onnx::TensorProto::FLOAT);
  w->add_dims(2);
  w->set_data_location(onnx::TensorProto::EXTERNAL);
  const auto set = [&](const std::string& location, const std::string& offset,
                       const std::string& length) {
    w->clear_external_data();
    for (const auto& [key, value] : {std::pair<std::string, std::string>{"location", location},
                                     {"offset", offset},
                                     {"length", length}}) {
      auto* entry = w->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    return Write("model.onnx", m.Bytes());
  };
  const float values[3] = {7, 1, 2};
  Write("data/weights.bin", std::string(reinterpret_cast<const char*>(values), sizeof(values)));

  const auto session = Session::Load(set("data/weights.bin", "4", "8"));
  const Tensor x = Tensor::FromVector<float>({2}, {10, 20});
  std::vector<Tensor> y;
  session->Run(std::vector<NamedView>{{"x", x.view()}}, y);
  EXPECT_THAT(y[0].values<float>(), testing::ElementsAre(11, 22));

  EXPECT_THAT(LoadError(set("data/weights.bin", "8", "8")), HasSubstr("12 bytes"));
  EXPECT_THAT(LoadError(set("data/weights.bin", "-4", "8")), HasSubstr("initializer 'w'"));
  EXPECT_THAT(LoadError(set("data/weights.bin", "0", "12")), HasSubstr("external data of 12"));
  EXPECT_THAT(LoadError(set("data/weights.bin", "zero", "8")), HasSubstr("not a number"));
  EXPECT_THAT(LoadError(set("nowhere.bin", "0", "8")), HasSubstr("cannot be opened"));
  EXPECT_THAT(LoadError(set("data", "0", "8")), HasSubstr("not a file"));
  EXPECT_THAT(LoadError(set("../weights.bin", "0", "8")), HasSubstr("outside"));
  EXPECT_THAT(LoadError(set("data/../../weights.bin", "0", "8")), HasSubstr("outside"));
  EXPECT_THAT(LoadError(set("/etc/passwd", "0", "8")), HasSubstr("outside"));
}

}  // namespace
}  // namespace tessera
