// What counts as a backend test, how it is judged, and what counts as equal.
#include "apps/backend_tests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/error.h"
#include "tests/engine/test_model.h"
#include "tests/pipeline/test_pictures.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

template <typename T>
std::string Difference(const std::vector<T>& got, const std::vector<T>& want,
                       const BackendTolerance& tolerance = {}) {
  const Shape shape = {static_cast<std::int64_t>(got.size())};
  return FindDifference(Tensor::FromVector(shape, got).view(),
                        Tensor::FromVector(shape, want).view(), tolerance);
}

TEST(FindDifference, FloatsAreEqualWithinTheTolerance) {
  EXPECT_EQ(Difference<float>({100.09f, 0.9e-7f}, {100, 0}), "");
  EXPECT_EQ(Difference<float>({100.2f, 0}, {100, 0}),
            "1 of 2 values differ, the first at 0: 100.2, expected 100");
  EXPECT_EQ(Difference<float>({100, 2e-7f}, {100, 0}),
            "1 of 2 values differ, the first at 1: 2e-07, expected 0");
  EXPECT_EQ(Difference<double>({-1.0009}, {-1}), "");
  EXPECT_NE(Difference<double>({-1.0011}, {-1}), "");
  EXPECT_EQ(Difference<double>({-1.0019}, {-1}, {.relative = 2e-3}), "");
  EXPECT_EQ(Difference<double>({1.5}, {1}, {.absolute = 0.6}), "");
}

TEST(FindDifference, TheToleranceIsOfTheExpectedValue) {
  EXPECT_EQ(Difference<double>({149}, {100}, {.relative = 0.5, .absolute = 0}), "");
  EXPECT_NE(Difference<double>({100}, {201}, {.relative = 0.5, .absolute = 0}), "");
}

TEST(FindDifference, InfinitiesAndNan) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = NAN;
  EXPECT_EQ(Difference<float>({kInf, -kInf, kNan}, {kInf, -kInf, kNan}), "");
  EXPECT_NE(Difference<float>({kInf}, {-kInf}), "");
  EXPECT_NE(Difference<float>({1}, {kInf}), "");
  EXPECT_NE(Difference<float>({kInf}, {1}), "");
  EXPECT_NE(Difference<float>({kNan}, {1}), "");
  EXPECT_NE(Difference<float>({1}, {kNan}), "");
}

TEST(FindDifference, IntegersAreExact) {
  EXPECT_EQ(Difference<std::int64_t>({1'000'000}, {1'000'000}), "");
  EXPECT_NE(Difference<std::int64_t>({1'000'000}, {1'000'001}), "");
  EXPECT_EQ(Difference<std::uint8_t>({7, 65}, {7, 66}),
            "1 of 2 values differ, the first at 1: 65, expected 66");
  EXPECT_NE(Difference<std::int8_t>({-1}, {1}), "");
  EXPECT_NE(Difference<bool>({true}, {false}), "");
}

TEST(FindDifference, Float16) {
  const auto halves = [](const std::vector<float>& values) {
    Tensor t(DType::kFloat16, Shape{static_cast<std::int64_t>(values.size())});
    std::ranges::transform(values, t.data<std::uint16_t>(), FloatToHalf);
    return t;
  };
  const Tensor a = halves({1, 2}), b = halves({1.01f, 2});
  EXPECT_EQ(FindDifference(a.view(), a.view(), {}), "");
  EXPECT_THAT(FindDifference(b.view(), a.view(), {}), HasSubstr("1 of 2 values"));
}

TEST(FindDifference, TypesAndShapesCount) {
  const Tensor floats = Tensor::FromVector<float>({2}, {1, 2});
  EXPECT_EQ(FindDifference(floats.view(), Tensor::FromVector<std::int32_t>({2}, {1, 2}).view(), {}),
            "is float32, expected int32");
  EXPECT_EQ(FindDifference(floats.view(), Tensor::FromVector<float>({1, 2}, {1, 2}).view(), {}),
            "has shape 2, expected 1x2");
  EXPECT_EQ(FindDifference(Tensor(DType::kFloat32, {0, 2}).view(),
                           Tensor(DType::kFloat32, {0, 2}).view(), {}),
            "");
}

TEST(BackendCounts, AreSaidInOneLine) {
  BackendCounts counts;
  for (const BackendOutcome outcome : {BackendOutcome::kPassed, BackendOutcome::kPassed,
                                       BackendOutcome::kFailed, BackendOutcome::kNotSupported}) {
    counts.Add(outcome);
  }
  EXPECT_EQ(ToString(counts), "2 passed, 1 failed, 1 not supported");
}

class BackendTests : public testing::Test {
 protected:
  // A model with one operator from x (two floats) to y, in `name`.
  void WriteModel(const std::string& name, const std::string& type = "Relu") const {
    TestModel m;
    m.Input("x", {2}).Output("y").Node(type, {"x"}, {"y"});
    Write(name + "/model.onnx", m.Bytes());
  }
  void WriteSet(const std::string& name, const std::string& set, const std::vector<float>& input,
                const std::vector<float>& output) const {
    Write(name + "/" + set + "/input_0.pb", FloatTensorBytes(input));
    Write(name + "/" + set + "/output_0.pb", FloatTensorBytes(output));
  }
  void Write(const std::string& name, const std::string& bytes) const {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    WriteBytes(path, bytes);
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const BackendTest& test : FindBackendTests(folder_.path())) names.push_back(test.name);
    return names;
  }
  BackendResult Run(const std::string& name) const {
    SerialParallel serial;
    return RunBackendTest({name, folder_ / name}, serial);
  }

  TemporaryFolder folder_;
};

TEST_F(BackendTests, AreFoundInFoldersOfFolders) {
  EXPECT_THAT(Names(), IsEmpty());
  WriteModel("b/test_2");
  WriteModel("b/test_1");
  Write("c/test_3/data.json", "{}");
  Write("c/other/file", "");
  EXPECT_THAT(Names(), ElementsAre("b/test_1", "b/test_2", "c/test_3"));
  const auto itself = FindBackendTests(folder_ / "b/test_1");
  ASSERT_EQ(itself.size(), 1u);
  EXPECT_EQ(itself[0].name, "test_1");
  EXPECT_THROW(FindBackendTests(folder_ / "none"), Error);
  EXPECT_THROW(FindBackendTests(folder_ / "c/other/file"), Error);
}

TEST_F(BackendTests, PassIfAllSetsDo) {
  WriteModel("t");
  EXPECT_EQ(ToString(Run("t")), "failed: there is no test_data_set");
  WriteSet("t", "test_data_set_0", {-1, 2}, {0, 2});
  const BackendResult result = Run("t");
  EXPECT_EQ(ToString(result), "passed");
  EXPECT_THAT(result.operators, ElementsAre("Relu"));
  WriteSet("t", "test_data_set_1", {3, 4}, {3, 5});
  EXPECT_EQ(ToString(Run("t")),
            "failed: output 0: 1 of 2 values differ, the first at 1: 4, expected 5");
}

TEST_F(BackendTests, FailIfTensorsAreMissingOrWrong) {
  WriteModel("t");
  WriteSet("t", "test_data_set_0", {-1, 2}, {0, 2});
  Write("t/test_data_set_0/output_1.pb", FloatTensorBytes({1}));
  EXPECT_EQ(ToString(Run("t")), "failed: 1 outputs, expected 2");
  std::filesystem::remove(folder_ / "t/test_data_set_0/output_1.pb");
  Write("t/test_data_set_0/input_1.pb", FloatTensorBytes({1}));
  EXPECT_EQ(ToString(Run("t")), "failed: 2 inputs for the model's 1");
  std::filesystem::remove(folder_ / "t/test_data_set_0/input_1.pb");
  Write("t/test_data_set_0/input_0.pb", "no tensor");
  EXPECT_THAT(ToString(Run("t")), HasSubstr("failed: test_data_set_0/input_0.pb: "));
  Write("t/model.onnx", "no model");
  EXPECT_THAT(ToString(Run("t")), HasSubstr("failed: not an ONNX model"));
}

TEST_F(BackendTests, TellWhatIsNotSupported) {
  WriteModel("t", "Wibble");
  const BackendResult result = Run("t");
  EXPECT_EQ(result.outcome, BackendOutcome::kNotSupported);
  EXPECT_THAT(result.reason, HasSubstr("Wibble"));
  EXPECT_THAT(result.operators, ElementsAre("Wibble"));
  Write("far/data.json", R"({"url": "https://example.com/far.tar.gz"})");
  EXPECT_EQ(ToString(Run("far")),
            "not supported: no model.onnx here; data.json says where to download it");
}

TEST_F(BackendTests, MayHaveATolerance) {
  WriteModel("t");
  WriteSet("t", "test_data_set_0", {1, 2.0035f}, {1, 2});
  EXPECT_EQ(Run("t").outcome, BackendOutcome::kFailed);
  Write("t/data.json", R"({"atol": 1e-07, "model_name": "t", "rtol": 0.002})");
  EXPECT_EQ(ToString(Run("t")), "passed");
}

}  // namespace
}  // namespace tessera
