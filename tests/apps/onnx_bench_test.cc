// The command onnx-bench: what it measures, writes and says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <set>

#include "simd/cpu_target.h"
#include "tests/apps/run_program.h"
#include "tests/engine/test_model.h"
#include "tests/json.h"
#include "tests/pipeline/test_pictures.h"

namespace tessera {
namespace {

using onnx::TensorProto;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

class OnnxBenchCommand : public testing::Test {
 protected:
  // Two convolutions and an addition, with a name that has to be escaped everywhere.
  std::string Network() const {
    TestModel m;
    m.Input("x", {1, 3, -1, -1}).Output("y");
    m.Noise("w1", {8, 3, 3, 3}).Noise("w2", {3, 8, 3, 3});
    m.Node("Conv", {"x", "w1"}, {"a"}, {{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}})
        .Node("Conv", {"a", "w2"}, {"b"}, {{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}})
        .Node("Add", {"b", "x"}, {"y"});
    m.proto.mutable_graph()->mutable_node(0)->set_name(kOddName);
    return Write("net.onnx", m.Bytes());
  }

  // y = x + 0 in a type of its own.
  std::string Identity(int type) const {
    TestModel m;
    m.Input("x", {1, 64}, type).Output("y", type).Node("Identity", {"x"}, {"y"});
    return Write("identity.onnx", m.Bytes());
  }

  std::string Write(const std::string& name, const std::string& bytes) const {
    WriteBytes(folder_ / name, bytes);
    return folder_ / name;
  }

  ProgramResult Bench(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "onnx-bench");
    return RunProgram(arguments);
  }

  // A backend test: y = Identity(x) for x = {1, 2}, expecting `want`.
  void WriteBackendTest(const std::string& name, const std::vector<float>& want,
                        const std::string& type = "Identity") const {
    TestModel m;
    m.Input("x", {2}).Output("y").Node(type, {"x"}, {"y"});
    const std::filesystem::path set = folder_ / name / "test_data_set_0";
    std::filesystem::create_directories(set);
    WriteBytes(set.parent_path() / "model.onnx", m.Bytes());
    WriteBytes(set / "input_0.pb", FloatTensorBytes({1, 2}));
    WriteBytes(set / "output_0.pb", FloatTensorBytes(want));
  }

  // What the command writes when all is well.
  std::string Output(const std::vector<std::string>& arguments) const {
    const ProgramResult result = Bench(arguments);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.err, "");
    return result.out;
  }

  std::vector<float> DumpedFloats(const std::string& name) const {
    const std::string bytes = ReadBytes(folder_ / "dump" / name);
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    return values;
  }

  static constexpr const char* kOddName = "first \"conv\" \\ \n\x1b[31m \xff";
  TemporaryFolder folder_;
};

TEST_F(OnnxBenchCommand, PrintsTimesAndOutputs) {
  const std::string out =
      Output({Network(), "--input", "x:1x3x20x16", "--iters", "3", "--warmup", "1"});
  EXPECT_THAT(out, MatchesRegex("tessera net\\.onnx threads=1 load=[0-9]+\\.[0-9]ms "
                                "min=[0-9]+\\.[0-9][0-9]ms p50=[0-9]+\\.[0-9][0-9]ms "
                                "mean=[0-9]+\\.[0-9][0-9]ms iters=3\n"
                                "output y float32 1x3x20x16\n"
                                "memory buffers=[0-9]+\\.[0-9][0-9]MB weights=[0-9.]+MB "
                                "packed=[0-9.]+MB peak=[0-9.]+MB\n"));
}

TEST_F(OnnxBenchCommand, ExportsTheModel) {
  const std::string net = Network(), copy = folder_ / "copy.onnx";
  EXPECT_EQ(Output({net, "--export", copy}), "");
  const std::vector<std::string> run = {"--input", "x:1x3x20x16", "--dump", folder_ / "dump"};
  const auto dump = [&](const std::string& model) {
    std::vector<std::string> arguments = run;
    arguments.push_back(model);
    Output(arguments);
    return DumpedFloats("y.f32");
  };
  EXPECT_EQ(dump(copy), dump(net));
  const std::string before = ReadBytes(net);
  const ProgramResult itself = Bench({net, "--export", net});
  EXPECT_EQ(itself.exit_code, 2);
  EXPECT_THAT(itself.err, HasSubstr("net.onnx: is the model itself"));
  EXPECT_EQ(ReadBytes(net), before);
  EXPECT_EQ(Bench({net, "--export", folder_ / "no/such/folder.onnx"}).exit_code, 2);
  const ProgramResult data = Bench({net, "--export", folder_ / "weights.data"});
  EXPECT_EQ(data.exit_code, 2);
  EXPECT_THAT(data.err, HasSubstr("weights.data: the name of an ONNX file has to end with .onnx"));
}

TEST_F(OnnxBenchCommand, ListsPasses) {
  const std::string list = Output({"--passes"});
  EXPECT_THAT(list, HasSubstr("\nfuse-residual            Conv + x * scale + shortcut\n"));
  EXPECT_THAT(list, HasSubstr("\nview-one-pixel "));
  EXPECT_THAT(list, Not(HasSubstr("widen-float16")));  // cannot be disabled
}

TEST_F(OnnxBenchCommand, CountsRewrites) {
  const std::string net = Network();
  const auto fired = [&](std::vector<std::string> arguments, const std::string& pass, int count) {
    arguments.insert(arguments.end(), {net, "--passes"});
    EXPECT_THAT(Output(arguments), HasSubstr("    " + std::to_string(count) + "  " + pass + " "));
  };
  const std::vector<std::string> shape = {"--input", "x:1x3x20x16"};
  fired(shape, "fuse-residual", 1);
  fired(shape, "fuse-gate", 0);
  fired({"--input", "x:1x3x20x16", "--disable", "fuse-residual"}, "fuse-residual", 0);
  const ProgramResult open = Bench({net, "--passes"});
  EXPECT_EQ(open.exit_code, 2);
  EXPECT_THAT(open.err, HasSubstr("input 'x' may have any size: say one with --input"));

  // Of the declared size; a Concat in the place of its inputs.
  TestModel m;
  m.Input("x", {1, 16, 8, 8}).Output("y").Node("Relu", {"x"}, {"a"}).Node("Abs", {"x"}, {"b"});
  m.Node("Concat", {"a", "b"}, {"c"}, {{"axis", std::int64_t{1}}}).Node("Neg", {"c"}, {"y"});
  const std::string declared = Output({Write("concat.onnx", m.Bytes()), "--passes"});
  EXPECT_THAT(declared, HasSubstr("    1  concat-in-place "));
  EXPECT_THAT(declared, HasSubstr("    0  use-integers "));
}

TEST_F(OnnxBenchCommand, OptionsStandAnywhere) {
  const std::string net = Network();
  const std::string disabled = "fuse-residual,fuse-activation";
  Output({"--input", "x:1x3x20x16", net});
  Output({"--input", "x:1x3x20x16", "--disable", disabled, net});
  Output({"--disable", "fuse-residual", net, "--disable", "fuse-gate", "--input=x:1x3x20x16"});
}

TEST_F(OnnxBenchCommand, ProfilePrintsEachStep) {
  const std::string out = Output({Network(), "--input", "x:1x3x20x16", "--profile"});
  EXPECT_THAT(out, HasSubstr("GFLOP/s"));
  EXPECT_THAT(out, HasSubstr("first \"conv\" \\ \\n\\x1B[31m \\xFF\n"));
  EXPECT_THAT(out, HasSubstr("Conv_b"));
  EXPECT_THAT(out, AllOf(HasSubstr(" steps\n"), HasSubstr("\nmemory buffers=")));
}

TEST_F(OnnxBenchCommand, JsonHoldsTheSameAsText) {
  const std::vector<std::string> arguments = {Network(), "--input", "x:1x3x20x16", "--json",
                                              "--iters", "5",       "--threads",   "2"};
  JsonValue report = ParseJson(Output(arguments));
  EXPECT_EQ(String(report, "model"), "net.onnx");
  EXPECT_EQ(String(report, "target"), CpuTargetName());
  EXPECT_EQ(Number(report, "threads"), 2);
  EXPECT_EQ(Number(report, "iterations"), 5);
  EXPECT_GT(Number(report, "load_ms"), 0);
  EXPECT_GT(Number(report, "min_ms"), 0);
  EXPECT_GE(Number(report, "p50_ms"), Number(report, "min_ms"));
  EXPECT_GE(Number(report, "mean_ms"), Number(report, "min_ms"));
  EXPECT_GE(Number(report, "arena_bytes"), 8 * 20 * 16 * 4);  // "a"
  EXPECT_GE(Number(report, "weight_bytes"), 8 * 3 * 9 * 4);
  EXPECT_GE(Number(report, "packed_bytes"), 8 * 3 * 9 * 4);
  EXPECT_GT(Number(report, "peak_rss_bytes"), 1 << 20);
  ASSERT_EQ(Elements(report, "outputs").size(), 1);
  const JsonValue& output = Elements(report, "outputs")[0];
  EXPECT_EQ(String(output, "name"), "y");
  EXPECT_EQ(String(output, "dtype"), "float32");
  EXPECT_EQ(Elements(output, "shape").size(), 4);
  EXPECT_EQ(Elements(output, "shape")[2].number_value(), 20);
  EXPECT_FALSE(report.struct_value().fields().contains("steps"));
}

TEST_F(OnnxBenchCommand, JsonHoldsTheStepsOfAProfile) {
  const JsonValue report =
      ParseJson(Output({Network(), "--input", "x:1x3x20x16", "--json", "--profile"}));
  double share = 0, end = 0;
  for (const JsonValue& step : Elements(report, "steps")) {
    EXPECT_FALSE(String(step, "kernel").empty());
    EXPECT_THAT(String(step, "layout"), testing::StartsWith("NCHW"));
    EXPECT_THAT(String(step, "shape"), testing::EndsWith("x20x16"));
    EXPECT_GE(Number(step, "start_ms") + 1e-3, end);
    end = Number(step, "start_ms") + Number(step, "ms");
    share += Number(step, "share");
  }
  EXPECT_GT(share, 0.5);
  EXPECT_LT(share, 1.001);
  const auto is_conv = [](const JsonValue& step) {
    return String(step, "type") == "Conv" && Number(step, "gflops") > 0 &&
           Number(step, "gbytes_per_s") > 0;
  };
  EXPECT_GE(std::ranges::count_if(Elements(report, "steps"), is_conv), 1);
}

TEST_F(OnnxBenchCommand, RunsOnTheInstructionSetThatIsAskedFor) {
  const std::vector<std::string> arguments = {"onnx-bench", Network(), "--input", "x:1x3x8x8",
                                              "--json"};
  for (const std::string& target : AvailableCpuTargets()) {
    const ProgramResult result = RunProgram(arguments, {"TESSERA_TARGET=" + target});
    EXPECT_EQ(String(ParseJson(result.out), "target"), target);
    std::string lower = target;
    std::ranges::transform(lower, lower.begin(), ::tolower);
    const std::string out =
        Output({Network(), "--input", "x:1x3x8x8", "--json", "--target", lower});
    EXPECT_EQ(String(ParseJson(out), "target"), target);
    EXPECT_THAT(Output({"--version", "--target", lower}), HasSubstr("(" + target + ")"));
  }
  const ProgramResult unknown = RunProgram(arguments, {"TESSERA_TARGET=abacus"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("TESSERA_TARGET=abacus: no such instruction set here; "
                                     "there are " +
                                     AvailableCpuTargets().front()));
  const ProgramResult unknown_option = RunProgram({"onnx-bench", "--ops", "--target", "abacus"});
  EXPECT_EQ(unknown_option.exit_code, 2);
  EXPECT_THAT(unknown_option.err, HasSubstr("--target abacus: no such instruction set here; "
                                            "there are " +
                                            AvailableCpuTargets().front()));
}

// Complete events of one thread, one after the other, as the Trace Event Format wants them.
TEST_F(OnnxBenchCommand, TraceIsInTheChromeFormat) {
  Output({Network(), "--input", "x:1x3x20x16", "--trace", folder_ / "trace.json"});
  const JsonValue trace = ReadJson(folder_ / "trace.json");
  double end = 0;
  bool odd_name = false;
  int steps = 0;
  for (const JsonValue& event : Elements(trace, "traceEvents")) {
    EXPECT_EQ(Number(event, "pid"), 1);
    EXPECT_EQ(Number(event, "tid"), 1);
    if (String(event, "ph") == "M") {
      EXPECT_EQ(String(event, "name"), "process_name");
      EXPECT_EQ(String(Field(event, "args"), "name"), "net.onnx");
      continue;
    }
    EXPECT_EQ(String(event, "ph"), "X");
    EXPECT_FALSE(String(event, "name").empty());
    EXPECT_FALSE(String(event, "cat").empty());
    EXPECT_GE(Number(event, "ts") + 0.01, end);
    EXPECT_GE(Number(event, "dur"), 0);
    end = Number(event, "ts") + Number(event, "dur");
    EXPECT_EQ(String(Field(event, "args"), "output").substr(0, 2), "1x");
    odd_name |= String(Field(event, "args"), "node") == "first \"conv\" \\ \\n\\x1B[31m \\xFF";
    ++steps;
  }
  EXPECT_TRUE(odd_name);
  EXPECT_GE(steps, 2);
}

TEST_F(OnnxBenchCommand, NoiseSuitsEveryType) {
  struct Case {
    int type;
    float low, high;  // all values lie there
    std::size_t distinct;
  };
  for (const Case& c : {Case{TensorProto::FLOAT, 0, 1, 64},
                        {TensorProto::FLOAT16, 0, 1, 50},
                        {TensorProto::DOUBLE, 0, 1, 64},
                        {TensorProto::INT8, -8, 7, 10},
                        {TensorProto::INT16, -8, 7, 10},
                        {TensorProto::INT32, -8, 7, 10},
                        {TensorProto::INT64, -8, 7, 10},
                        {TensorProto::UINT8, 0, 15, 10},
                        {TensorProto::UINT16, 0, 15, 10},
                        {TensorProto::UINT32, 0, 15, 10},
                        {TensorProto::BOOL, 0, 1, 2}}) {
    SCOPED_TRACE(TensorProto::DataType_Name(static_cast<TensorProto::DataType>(c.type)));
    Output({Identity(c.type), "--input", "x:1x64", "--dump", folder_ / "dump"});
    const std::vector<float> values = DumpedFloats("y.f32");
    ASSERT_EQ(values.size(), 64u);
    EXPECT_THAT(values, testing::Each(testing::AllOf(testing::Ge(c.low), testing::Le(c.high))));
    EXPECT_GE(std::set(values.begin(), values.end()).size(), c.distinct);
  }
  // What the runner of ONNX Runtime (tests/bench/ort_bench.js) makes, too.
  Output({Identity(TensorProto::INT16), "--input", "x:1x5", "--dump", folder_ / "dump"});
  EXPECT_THAT(DumpedFloats("y.f32"), ElementsAre(6, 0, -2, -8, 7));
}

TEST_F(OnnxBenchCommand, FilesAreConvertedToTheInputsType) {
  const std::vector<float> values = {-3, 0, 7, 300};
  const std::string bytes(reinterpret_cast<const char*>(values.data()), 16);
  const std::string spec = "x:1x4:" + Write("in.f32", bytes);
  Output({Identity(TensorProto::INT16), "--input", spec, "--dump", folder_ / "dump"});
  EXPECT_EQ(DumpedFloats("y.f32"), values);
  const ProgramResult narrow = Bench({Identity(TensorProto::INT8), "--input", spec});
  EXPECT_EQ(narrow.exit_code, 2);
  EXPECT_THAT(narrow.err, HasSubstr("in.f32: its value 300 does not fit in int8"));
}

// Weights are in memory once, and one tensor of them twice, while a file is read.
TEST_F(OnnxBenchCommand, LoadingTakesLittleMoreThanTheWeights) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep what is freed";
#endif
  constexpr std::int64_t kTensors = 8, kFloats = 2 << 20;
  TestModel m;
  m.Input("x", {1}, TensorProto::INT64).Output("y");
  std::string sum;
  for (std::int64_t i = 0; i < kTensors; ++i) {
    const std::string n = std::to_string(i);
    auto* t = m.proto.mutable_graph()->add_initializer();
    t->set_name("w" + n);
    t->set_data_type(TensorProto::FLOAT);
    t->add_dims(kFloats);
    t->set_raw_data(std::string(kFloats * sizeof(float), static_cast<char>(i)));
    m.Node("Gather", {"w" + n, "x"}, {"g" + n});
    if (i > 0) m.Node("Add", {sum, "g" + n}, {i + 1 < kTensors ? "s" + n : "y"});
    sum = i == 0 ? "g0" : "s" + n;
  }
  const auto peak_bytes = [&](const std::string& model, const std::string& input) {
    return Number(ParseJson(Output({model, "--input", input, "--json"})), "peak_rss_bytes");
  };
  const double base = peak_bytes(Identity(TensorProto::FLOAT), "x:1x64");
  const double weights = kTensors * kFloats * sizeof(float);
  const double peak = peak_bytes(Write("large.onnx", m.Bytes()), "x:1");
  EXPECT_GT(peak, weights);
  EXPECT_LT(peak, base + 1.4 * weights);
}

TEST_F(OnnxBenchCommand, RunsBackendTests) {
  WriteBackendTest("tests/a/test_good", {1, 2});
  WriteBackendTest("tests/a/test_odd", {1, 2}, "Wibble");
  const std::string folder = folder_ / "tests";
  EXPECT_EQ(Output({"--backend-tests", folder}),
            "a/test_good: passed\n"
            "a/test_odd: not supported: operators that are not supported: Wibble (node "
            "'Wibble_y')\n"
            "1 passed, 0 failed, 1 not supported\n");
  WriteBackendTest("tests/b/test_wrong", {1, 3});
  const ProgramResult result = Bench({"--backend-tests", folder, "--filter", "wrong"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out,
            "b/test_wrong: failed: output 0: 1 of 2 values differ, the first at 1: 2, expected 3\n"
            "0 passed, 1 failed, 0 not supported\n");
}

TEST_F(OnnxBenchCommand, ListsOperators) {
  const std::string out = Output({"--ops"});
  EXPECT_THAT(out, testing::StartsWith("Abs 7-21\n"));
  EXPECT_THAT(out, HasSubstr("\nResize 10-21\n"));
  EXPECT_THAT(out, HasSubstr("\nUpsample 7-9\n"));
  EXPECT_THAT(out, testing::Not(HasSubstr("Fused")));
}

TEST_F(OnnxBenchCommand, WrongUse) {
  const std::string net = Network();
  const auto expect_failure = [&](const std::vector<std::string>& arguments,
                                  const std::string& reason) {
    const ProgramResult result = Bench(arguments);
    EXPECT_EQ(result.exit_code, 2) << reason;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(reason));
  };
  expect_failure({}, "onnx-bench: MODEL");
  expect_failure({"none.onnx", "--input", "x:1x3x8x8"}, "none.onnx: no such file");
  expect_failure({net, "--ops"}, "--ops");
  expect_failure({"--filter", "a"}, "--backend-tests");
  expect_failure({"--backend-tests", "none"}, "none: is no folder");
  expect_failure({"--backend-tests", folder_.path()}, ": holds no backend tests");
  expect_failure({net}, "0 inputs given, the model has 1");
  expect_failure({net, "--input", "x:1x3x8x8", "more"}, "not expected: more");
  expect_failure({net, "--input", "x"}, "--input x: want NAME:1x3x64x64[:FILE]");
  expect_failure({net, "--input", "x:1x3xx8"}, "want NAME:1x3x64x64[:FILE]");
  expect_failure({net, "--input", "x:1x3x8x8:"}, "want NAME:1x3x64x64[:FILE]");
  expect_failure({net, "--input", "z:1x3x8x8"}, "no such input (it has: x)");
  expect_failure({net, "--input", "x:1x3x8x8", "--input", "x:1x3x8x8"}, "given twice");
  expect_failure({net, "--input", "x:1x3x8x8:none.f32"}, "none.f32: cannot be opened");
  const std::string short_spec = "x:1x3x8x8:" + Write("short.f32", "1234");
  expect_failure({net, "--input", short_spec}, "does not have the 768 bytes of 1x3x8x8");
  expect_failure({net, "--input", "x:1x3x8x8", "--iters", "0"}, "--iters");
  expect_failure({net, "--input", "x:1x3x8x8", "--trace", "none/trace.json"},
                 "none/trace.json: cannot write: No such file");
  expect_failure({net, "--input", "x:1x3x8x8", "--dump", net + "/dump"},
                 "net.onnx/dump: cannot create this folder: Not a directory");
  expect_failure({net, "--input", "x:1x3x8x8", "--disable", "all"}, "those are concat-in-place, ");
}

}  // namespace
}  // namespace tessera
