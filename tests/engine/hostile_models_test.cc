// Models that ask for more than a machine has: memory, nodes, nesting, time. What they ask for is
// refused by name before it is taken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/model_limits.h"
#include "engine/ncnn_import.h"
#include "engine/onnx_import.h"
#include "engine/session.h"
#include "ops/error.h"
#include "simd/cpu_target.h"
#include "simd/memory_limit.h"
#include "tests/engine/test_model.h"
#include "tests/temporary_folder.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kInt64 = onnx::TensorProto::INT64, kBool = onnx::TensorProto::BOOL;
constexpr std::size_t kMegabyte = std::size_t{1} << 20;

std::string ErrorOf(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

// So many more megabytes than there are now.
SessionOptions Megabytes(std::size_t more) {
  return {.max_memory = AllocatedMemory() + more * kMegabyte};
}

std::string LoadError(const TestModel& model, const SessionOptions& options = {}) {
  return ErrorOf([&] { model.Load(options); });
}

auto NamesBothNumbers(const char* more = "") {
  return AllOf(HasSubstr("not enough memory"), HasSubstr(" MB are needed, "),
               HasSubstr(" MB are allowed (--max-memory)"), HasSubstr(more));
}

TEST(MaxMemory, HoldsForConstantsThatAreComputed) {
  TestModel m;
  m.Ints("shape", {1 << 20, 1 << 10}).Node("ConstantOfShape", {"shape"}, {"y"}).Output("y");
  EXPECT_THAT(LoadError(m, Megabytes(100)),
              NamesBothNumbers("test.onnx: node 'ConstantOfShape_y'"));
}

TEST(MaxMemory, HoldsForManySmallConstantsTogether) {
  TestModel m;
  m.Ints("shape", {1000, 200});  // 0.8 MB each
  std::vector<std::string> all;
  for (int i = 0; i < 200; ++i) {
    all.push_back(StrCat("c", i));
    m.Node("ConstantOfShape", {"shape"}, {all.back()});
  }
  m.Input("x", {1000, 200}).Node("Sum", all, {"sum"}).Node("Add", {"x", "sum"}, {"y"}).Output("y");
  EXPECT_THAT(LoadError(m, Megabytes(40)), NamesBothNumbers());
  EXPECT_EQ(LoadError(m, Megabytes(400)), "no error");
}

TEST(MaxMemory, HoldsForBuffersOfARun) {
  TestModel m;
  m.Input("x", {-1, -1}).Node("Transpose", {"x"}, {"t"}).Node("MatMul", {"x", "t"}, {"p"});
  m.Node("ReduceSum", {"p"}, {"y"}).Output("y");
  const Tensor x(DType::kFloat32, {20000, 1});
  std::fill_n(x.data<float>(), x.size(), 1.0f);
  const auto session = m.Load(Megabytes(500));
  std::vector<Tensor> y;
  EXPECT_THAT(ErrorOf([&] {
                session->Run(std::vector<NamedView>{{"x", x.view()}}, y);
              }),
              AllOf(NamesBothNumbers("test.onnx: "), HasSubstr("MB of buffers")));
  const Tensor small(DType::kFloat32, {200, 1});
  std::fill_n(small.data<float>(), small.size(), 1.0f);
  session->Run(std::vector<NamedView>{{"x", small.view()}}, y);  // goes on to serve others
  EXPECT_EQ(*y[0].data<float>(), 40000.0f);
}

TEST(MaxMemory, HoldsForWhatFollowsFromValues) {
  TestModel m;
  m.Input("shape", {1}, kInt64).Node("ConstantOfShape", {"shape"}, {"c"});
  m.Node("NonZero", {"c"}, {"n"}).Output("n", kInt64);
  const auto session = m.Load(Megabytes(100));
  const Tensor shape = Tensor::FromVector<std::int64_t>({1}, {std::int64_t{1} << 39});
  std::vector<Tensor> outputs;
  EXPECT_THAT(ErrorOf([&] {
                session->Run(std::vector<NamedView>{{"shape", shape.view()}}, outputs);
              }),
              NamesBothNumbers("test.onnx: node 'ConstantOfShape_c' (ConstantOfShape): "));
}

// v = concat(v, v), again and again.
TEST(MaxMemory, HoldsForLoopsWhoseValuesGrow) {
  TestModel body, m;
  body.Input("i", {}, kInt64).Input("go", {}, kBool).Input("v", {-1});
  body.Node("Concat", {"v", "v"}, {"longer"}, {{"axis", std::int64_t{0}}});
  body.Output("go", kBool).Output("longer");
  m.Input("x", {-1}).Node("Loop", {"", "", "x"}, {"y"}).Body("body", body).Output("y");
  const auto session = m.Load(Megabytes(100));
  const Tensor x = Tensor::FromVector<float>({2}, {1, 2});
  std::vector<Tensor> y;
  EXPECT_THAT(ErrorOf([&] {
                session->Run(std::vector<NamedView>{{"x", x.view()}}, y);
              }),
              NamesBothNumbers("test.onnx: node 'Loop_y' (Loop): "));
}

TEST(MaxMemory, HoldsForPackedWeights) {
  if (FloatLanes() == 1) GTEST_SKIP() << "packed weights are not so much larger";
  TestModel m;  // Winograd's are four times as many, and more
  m.Noise("w", {512, 512, 3, 3}).Input("x", {1, 512, 64, 64}).Node("Conv", {"x", "w"}, {"y"});
  m.Output("y");
  const auto session = m.Load(Megabytes(32));
  const std::vector<Shape> shapes = {{1, 512, 64, 64}};
  EXPECT_THAT(ErrorOf([&] { session->ArenaBytes(shapes); }),
              NamesBothNumbers("test.onnx: node 'Conv_y' (Conv): "));
}

// The same file over and over is memory each time.
TEST(MaxMemory, HoldsForExternalData) {
  const TemporaryFolder folder;
  WriteBytes(folder / "weights.bin", std::string(10 * kMegabyte, '\1'));
  TestModel m;
  std::vector<std::string> names = {"x"};
  for (int i = 0; i < 30; ++i) {
    names.push_back(StrCat("w", i));
    auto* w = m.proto.mutable_graph()->add_initializer();
    w->set_name(names.back());
    w->set_data_type(onnx::TensorProto::UINT8);
    w->add_dims(10 * kMegabyte);
    w->set_data_location(onnx::TensorProto::EXTERNAL);
    auto* entry = w->add_external_data();
    entry->set_key("location");
    entry->set_value("weights.bin");
  }
  m.Input("x", {1}, onnx::TensorProto::UINT8);
  m.Node("Concat", names, {"y"}, {{"axis", std::int64_t{0}}}).Output("y", onnx::TensorProto::UINT8);
  WriteBytes(folder / "model.onnx", m.Bytes());
  EXPECT_THAT(ErrorOf([&] { Session::Load(folder / "model.onnx", Megabytes(100)); }),
              NamesBothNumbers("model.onnx"));
}

// Two bytes of a file become hundreds in memory.
TEST(MaxMemory, HoldsForWhatParsingTakes) {
  TestModel m;
  m.Input("x", {1}).Node("Relu", {"x"}, {"y"}).Output("y");
  for (int i = 0; i < 1'000'000; ++i) m.proto.mutable_graph()->add_value_info();
  EXPECT_THAT(LoadError(m, Megabytes(50)), NamesBothNumbers("test.onnx: "));
}

// Of a group, which ONNX has none of, parsing keeps every field.
TEST(MaxMemory, HoldsForGroups) {
  TestModel m;
  m.Input("x", {1}).Node("Relu", {"x"}, {"y"}).Output("y");
  std::string bytes = m.proto.SerializeAsString();
  bytes += "\xDB\x3E";                                 // field 1003 begins a group
  for (int i = 0; i < 1000; ++i) bytes += "\x08\x01";  // field 1 is 1
  bytes += "\xDC\x3E";                                 // ends it
  const auto import = [&] { ImportOnnx(std::as_bytes(std::span(bytes)), "test.onnx", {}); };
  EXPECT_THAT(ErrorOf(import), testing::HasSubstr("test.onnx: not an ONNX model"));
}

TEST(MaxMemory, IsThatOfTheScopeUnlessOptionsSayMore) {
  TestModel m;
  m.Ints("shape", {10, 1 << 20}).Node("ConstantOfShape", {"shape"}, {"y"}).Output("y");
  {
    const MemoryScope scope(AllocatedMemory() + 20 * kMegabyte);
    EXPECT_THAT(LoadError(m), NamesBothNumbers());
    EXPECT_EQ(LoadError(m, Megabytes(100)), "no error");
  }
  EXPECT_EQ(LoadError(m), "no error");
}

TEST(MaxMemory, OfPartsIsThatOfTheWhole) {
  TestModel m;
  m.Input("a", {1, 1000}).Input("b", {1, 1000});
  m.Node("Transpose", {"a"}, {"t"}).Node("MatMul", {"t", "a"}, {"square"});
  m.Node("MatMul", {"b", "square"}, {"y"}).Output("y");
  const std::vector<Shape> shapes = {{1, 1000}, {1, 1000}};
  const auto session = m.Load(Megabytes(2));  // the square has 4
  const Session::Parts parts = session->Split("a", shapes);
  const Tensor a(DType::kFloat32, {1, 1000});
  std::fill_n(a.data<float>(), a.size(), 1.0f);
  std::vector<Tensor> outputs;
  EXPECT_THAT(ErrorOf([&] {
                parts.first->Run(std::vector<NamedView>{{"a", a.view()}}, outputs);
              }),
              NamesBothNumbers());
}

TEST(ModelLimits, NodesAreCountedBeforeTheyAreParsed) {
  TestModel m;
  m.Input("x", {1}).Node("Relu", {"x"}, {"y"}).Output("y");
  for (std::int64_t i = 0; i < kMaxNodes; ++i) m.proto.mutable_graph()->add_node();
  EXPECT_THAT(LoadError(m), HasSubstr(StrCat("test.onnx: has more than ", kMaxNodes)));
  std::string text = StrCat("7767517\n", kMaxNodes + 1, " 1\n");
  for (std::int64_t i = 0; i <= kMaxNodes; ++i) text += "Noop a 0 0\n";
  EXPECT_THAT(ErrorOf([&] { ImportNcnn(text, {}, "net.param"); }),
              HasSubstr(StrCat("net.param: has more than ", kMaxNodes)));
}

TestModel NestedIfs(int depth) {
  TestModel m;
  if (depth == 0) {
    m.Node("Relu", {"x"}, {"y0"}).Output("y0");
  } else {
    const TestModel body = NestedIfs(depth - 1);
    const std::string y = StrCat("y", depth);
    m.Node("If", {"c"}, {y}).Body("then_branch", body).Body("else_branch", body).Output(y);
  }
  return m;
}

TEST(ModelLimits, BodiesMayBeNestedALittle) {
  for (const int depth : {kMaxNesting, kMaxNesting + 1}) {
    TestModel m = NestedIfs(depth);
    m.Input("c", {}, kBool).Input("x", {1});
    EXPECT_THAT(LoadError(m),
                depth <= kMaxNesting ? HasSubstr("no error") : HasSubstr("test.onnx: its bodies"));
  }
}

// A body of 1000 iterations, 1000 levels of them: 10^9 for three.
TEST(ModelLimits, LoopsInLoopsAreCountedTogether) {
  TestModel m;
  for (int level = 0; level < 3; ++level) {
    TestModel body;
    const std::string v = StrCat("v", level), i = StrCat("i", level), go = StrCat("go", level),
                      w = StrCat("w", level);
    body.Input(i, {}, kInt64).Input(go, {}, kBool).Input(v, {1});
    if (level == 0) {
      body.Node("Identity", {v}, {w});
    } else {
      const std::string inner = std::to_string(level - 1);
      body.Node("Loop", {"trips", "", v}, {w}).Body("body", m);
    }
    body.Node("Identity", {go}, {StrCat("again", level)});
    body.Output(StrCat("again", level), kBool).Output(w);
    m = body;
  }
  TestModel whole;
  whole.Input("x", {1}).Input("trips", {}, kInt64);
  whole.Node("Loop", {"trips", "", "x"}, {"y"}).Body("body", m).Output("y");
  const auto session = whole.Load();
  const Tensor x = Tensor::FromVector<float>({1}, {1});
  const auto run = [&](std::int64_t count) {
    const Tensor trips = Tensor::FromVector<std::int64_t>({}, {count});
    return ErrorOf([&] {
      std::vector<Tensor> y;
      session->Run(std::vector<NamedView>{{"x", x.view()}, {"trips", trips.view()}}, y);
    });
  };
  EXPECT_EQ(run(5), "no error");
  EXPECT_THAT(run(1'000'000'000), AllOf(HasSubstr("test.onnx: node 'Loop_y' (Loop): "),
                                        HasSubstr("does not end within")));
}

TEST(ExternalData, IsNotReadThroughLinksThatLeadOutOfTheFolder) {
  const TemporaryFolder folder, elsewhere;
  WriteBytes(elsewhere / "secret.bin", "12345678");
  WriteBytes(folder / "real.bin", "12345678");
  std::filesystem::create_symlink(elsewhere / "secret.bin", folder / "out.bin");
  std::filesystem::create_directory_symlink(elsewhere.path(), folder / "sub");
  std::filesystem::create_symlink("real.bin", folder / "in.bin");
  const auto load = [&](const std::string& location) {
    TestModel m;
    m.Input("x", {2}).Node("Add", {"x", "w"}, {"y"}).Output("y");
    auto* w = m.proto.mutable_graph()->add_initializer();
    w->set_name("w");
    w->set_data_type(onnx::TensorProto::FLOAT);
    w->add_dims(2);
    w->set_data_location(onnx::TensorProto::EXTERNAL);
    auto* entry = w->add_external_data();
    entry->set_key("location");
    entry->set_value(location);
    WriteBytes(folder / "model.onnx", m.Bytes());
    return ErrorOf([&] { Session::Load(folder / "model.onnx"); });
  };
  EXPECT_EQ(load("real.bin"), "no error");
  EXPECT_EQ(load("in.bin"), "no error");
  EXPECT_THAT(load("out.bin"), HasSubstr("initializer 'w': external data 'out.bin' is a link"));
  EXPECT_THAT(load("sub/secret.bin"), HasSubstr("leads out of the model's folder"));
}

}  // namespace
}  // namespace tessera
