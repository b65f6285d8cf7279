// Real and built networks against ONNX Runtime's outputs. A manifest.json lists model, inputs and
// outputs; ../shared/golden has the one for published weights, tests/golden that for the networks
// that models/ builds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "engine/session.h"
#include "models/networks.h"
#include "ops/error.h"
#include "simd/cpu_target.h"
#include "tests/every_target.h"
#include "tests/json.h"
#include "tests/shared_files.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

Tensor ReadFloats(const fs::path& path, const Shape& shape) {
  Tensor t(DType::kFloat32, shape);
  std::ifstream in(path, std::ios::binary);
  in.read(t.data<char>(), static_cast<std::streamsize>(t.bytes()));
  Require(in.gcount() == static_cast<std::streamsize>(t.bytes()), path.string(), ": too short");
  return t;
}

using google::protobuf::Value;

Shape ReadShape(const Value& list) {
  Shape shape;
  for (const Value& d : list.list_value().values()) {
    shape.PushBack(static_cast<std::int64_t>(d.number_value()));
  }
  return shape;
}

struct GoldenCase {
  fs::path model;         // file
  std::string distances;  // the output that holds distances in pixels, if one does
  std::vector<std::pair<std::string, Tensor>> inputs;
  std::vector<std::pair<std::string, Tensor>> outputs;
};

std::vector<GoldenCase> ReadManifest(const fs::path& manifest, const fs::path& root,
                                     const std::vector<std::string>& models) {
  const Value json = ReadJson(manifest);
  std::vector<GoldenCase> cases;
  for (const Value& entry : json.list_value().values()) {
    const std::string& model = Field(entry, "model").string_value();
    if (std::find(models.begin(), models.end(), model) == models.end()) continue;
    GoldenCase c{root / model, model.find("_head") != std::string::npos ? "output2" : "", {}, {}};
    for (const auto& [key, list] : {std::pair{"inputs", &c.inputs}, {"outputs", &c.outputs}}) {
      for (const Value& t : Field(entry, key).list_value().values()) {
        list->emplace_back(
            Field(t, "name").string_value(),
            ReadFloats(root / Field(t, "file").string_value(), ReadShape(Field(t, "shape"))));
      }
    }
    cases.push_back(std::move(c));
  }
  return cases;
}

struct Difference {
  double max = 0, mean = 0;
};

// Absolute, or of what is above 1 `relative` to it: distances of trackers' heads, up to 500 pixels,
// are exponentials, whose errors grow with them.
Difference DifferenceOf(const std::vector<float>& a, const std::vector<float>& golden,
                        bool relative) {
  EXPECT_EQ(a.size(), golden.size());
  Difference difference;
  for (std::size_t i = 0; i < std::min(a.size(), golden.size()); ++i) {
    const float scale = relative ? std::max(1.0f, std::abs(golden[i])) : 1.0f;
    const double d = std::abs(a[i] - golden[i]) / scale;
    if (std::isnan(d)) return {d, d};
    difference.max = std::max(difference.max, d);
    difference.mean += d / static_cast<double>(a.size());
  }
  return difference;
}

void Check(Session& session, const GoldenCase& c, const Difference& tolerance,
           const std::string& what) {
  std::vector<NamedView> inputs;
  for (const auto& [name, tensor] : c.inputs) inputs.push_back({name, tensor.view()});
  std::vector<Tensor> outputs;
  session.Run(inputs, outputs);
  ASSERT_EQ(outputs.size(), c.outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    ASSERT_EQ(session.outputs()[i].name, c.outputs[i].first);
    ASSERT_EQ(outputs[i].shape(), c.outputs[i].second.shape());
    const Difference difference =
        DifferenceOf(ToFloats(outputs[i].view()), ToFloats(c.outputs[i].second.view()),
                     c.outputs[i].first == c.distances);
    EXPECT_LE(difference.max, tolerance.max) << what;
    EXPECT_LE(difference.mean, tolerance.mean) << what;
    std::printf("  %s %s: difference %.2e at most, %.2e in the mean\n", what.c_str(),
                ToString(c.inputs[0].second.shape()).c_str(), difference.max, difference.mean);
  }
}

void Check(const GoldenCase& c, const fs::path& model, double tolerance,
           const SessionOptions& options) {
  Check(*Session::Load(model, options), c, {tolerance, tolerance}, model.filename().string());
}

const std::string kPublishedNetworks[] = {
    "models/x4v3.onnx",
    "models/animevideov3-x2.onnx",
    "models/spanx4.onnx",
    "models/spanx2.onnx",
    "models/nanotrack/nanotrackv1_backbone.onnx",
    "models/nanotrack/nanotrackv1_head.onnx",
    "models/nanotrack/nanotrackv2_backbone.onnx",
    "models/nanotrack/nanotrackv2_head.onnx",
    "models/nanotrack/nanotrackv3_backbone.onnx",
    "models/nanotrack/nanotrackv3_head.onnx",
};

// GoogleTest allows no other characters.
std::string TestName(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

class SharedGolden : public testing::TestWithParam<std::string> {};

TEST_P(SharedGolden, MatchesOnnxRuntime) {
  const auto shared = SharedFolder();
  if (!shared) GTEST_SKIP() << "the folder 'shared' with published networks is not there";
  const auto cases = ReadManifest(*shared / "golden/manifest.json", *shared, {GetParam()});
  ASSERT_FALSE(cases.empty());
  OnEveryTarget([&] {
    for (const GoldenCase& c : cases) Check(c, c.model, 1e-4, {});
  });
}

INSTANTIATE_TEST_SUITE_P(PublishedNetworks, SharedGolden, testing::ValuesIn(kPublishedNetworks),
                         [](const auto& info) { return TestName(fs::path(info.param).stem()); });

// Networks in int8, with QLinearConv and as QDQ (float operators between QuantizeLinear and
// DequantizeLinear).
//
// Integer arithmetic has one result, so that the first kind is held to ONNX Runtime's own.
//
// The second is computed with float convolutions in ONNX Runtime, and here with integers. Sums that
// are rounded another way are, now and then, quantised to the next step, and the layers after it
// make more of that: mostly little, within two steps of the output for all but one value of a
// thousand. The backbone, with global averages that reach every pixel, makes much of it. What to
// expect there is told by ONNX Runtime itself: when the last bit of each input changes, its output
// (within 16.2) moves by up to 4.8, by 0.25 in the mean, and less than half of the values stay
// within two steps. Against the network in float32 the mean is 1.4: a wrong scale or zero point
// would be seen. For SPAN, 5e-3.
struct Int8Network {
  const char* model;
  Difference tolerance;
  double steps;  // that all but a thousandth of the values may be off; 0: any
  std::vector<float> step_of_output{};  // y_scale of the last QLinearConv before each
};

const float kBackboneStep = 0.07747419f, kSpanStep = 0.0075543965f;
const std::vector<float> kHeadSteps = {0.040035706f, 0.0328923f};

const Int8Network kInt8Networks[] = {
    {"models/int8/nanotrackv2_backbone_qdq.onnx", {4.6, 0.25}, 0, {kBackboneStep}},
    {"models/int8/nanotrackv2_backbone_qlinear.onnx", {1e-6, 1e-6}, 1, {kBackboneStep}},
    {"models/int8/nanotrackv2_head_qdq.onnx", {1e-5, 1e-5}, 2, kHeadSteps},
    {"models/int8/nanotrackv2_head_qlinear.onnx", {1e-6, 1e-6}, 1, kHeadSteps},
    {"models/int8/spanx2_qdq.onnx", {0.04, 1e-3}, 2, {kSpanStep}},
    {"models/int8/spanx2_qlinear.onnx", {1e-6, 1e-6}, 1, {kSpanStep}},
};

// The share of values that differ by more than `limit`; of distances, that is of their logarithm,
// which is what the network quantises.
double ShareBeyond(const std::vector<float>& a, const std::vector<float>& b, double limit,
                   bool distances) {
  EXPECT_EQ(a.size(), b.size());
  std::size_t beyond = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double d =
        distances ? std::log(double{a[i]}) - std::log(double{b[i]}) : double{a[i]} - double{b[i]};
    if (!(std::abs(d) <= limit)) ++beyond;
  }
  return static_cast<double>(beyond) / static_cast<double>(a.size());
}

class Int8Golden : public testing::TestWithParam<Int8Network> {
 protected:
  static std::vector<Tensor> Run(Session& session, const GoldenCase& c) {
    std::vector<NamedView> inputs;
    for (const auto& [name, tensor] : c.inputs) inputs.push_back({name, tensor.view()});
    std::vector<Tensor> outputs;
    session.Run(inputs, outputs);
    return outputs;
  }

  static void CheckSteps(const std::vector<Tensor>& outputs, const GoldenCase& c, double steps) {
    for (std::size_t i = 0; i < c.outputs.size(); ++i) {
      const double share =
          ShareBeyond(ToFloats(outputs[i].view()), ToFloats(c.outputs[i].second.view()),
                      steps * GetParam().step_of_output[i], c.outputs[i].first == c.distances);
      EXPECT_LE(share, 1e-3) << c.outputs[i].first;
    }
  }
};

TEST_P(Int8Golden, MatchesOnnxRuntime) {
  const auto shared = SharedFolder();
  if (!shared) GTEST_SKIP() << "the folder 'shared' with published networks is not there";
  const auto cases = ReadManifest(*shared / "golden/manifest.json", *shared, {GetParam().model});
  ASSERT_FALSE(cases.empty());
  OnEveryTarget([&] {
    for (const GoldenCase& c : cases) {
      const auto session = Session::Load(c.model, {});
      Check(*session, c, GetParam().tolerance, c.model.filename().string());
      if (GetParam().steps > 0) CheckSteps(Run(*session, c), c, GetParam().steps);
    }
  });
}

// Integers against plain float operators with the roundings in between: functions between them, as
// Sigmoid, are rounded another way too.
TEST_P(Int8Golden, MatchesSimulationInFloat) {
  const auto shared = SharedFolder();
  if (!shared) GTEST_SKIP() << "the folder 'shared' with published networks is not there";
  auto cases = ReadManifest(*shared / "golden/manifest.json", *shared, {GetParam().model});
  ASSERT_FALSE(cases.empty());
  const std::string model = GetParam().model;
  const bool backbone = model.find("backbone") != std::string::npos;
  for (GoldenCase& c : cases) {
    std::vector<Tensor> plain = Run(*Session::Load(c.model, {.reference = true}), c);
    for (std::size_t i = 0; i < plain.size(); ++i) c.outputs[i].second = std::move(plain[i]);
    const auto session = Session::Load(c.model, {});
    const Difference tolerance = backbone ? Difference{4.6, 0.25} : Difference{0.04, 1e-3};
    Check(*session, c, tolerance, model);
    if (!backbone) CheckSteps(Run(*session, c), c, 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, Int8Golden, testing::ValuesIn(kInt8Networks),
                         [](const auto& info) {
                           return TestName(fs::path(info.param.model).stem());
                         });

TEST(SharedGolden, NcnnFilesMatchOnnxRuntime) {
  const auto shared = SharedFolder();
  if (!shared) GTEST_SKIP() << "the folder 'shared' with published networks is not there";
  const std::pair<const char*, const char*> networks[] = {
      {"realesr-general-x4v3", "models/x4v3.onnx"},
      {"realesr-animevideov3-x2", "models/animevideov3-x2.onnx"},
      {"spanx4_ch48", "models/spanx4.onnx"}};
  for (const auto& [name, onnx] : networks) {
    auto cases = ReadManifest(*shared / "golden/manifest.json", *shared, {onnx});
    ASSERT_FALSE(cases.empty());
    for (GoldenCase& c : cases) {
      c.inputs[0].first = "data";  // as the text of all three calls it
      Check(c, *shared / "models/ncnn" / (std::string(name) + ".param"), 1e-4, {});
    }
  }
}

TEST(SharedGolden, Float16FileMatchesFloat32Golden) {
  const auto shared = SharedFolder();
  if (!shared) GTEST_SKIP() << "the folder 'shared' with published networks is not there";
  const auto cases =
      ReadManifest(*shared / "golden/manifest.json", *shared, {"models/spanx2.onnx"});
  ASSERT_FALSE(cases.empty());
  for (const GoldenCase& c : cases) Check(c, *shared / "models/spanx2-fp16.onnx", 3e-3, {});
}

TEST(SharedGolden, ReferenceKernelsMatchOnnxRuntime) {
  const auto shared = SharedFolder();
  if (!shared) GTEST_SKIP() << "the folder 'shared' with published networks is not there";
  const auto cases = ReadManifest(*shared / "golden/manifest.json", *shared,
                                  {"models/spanx2.onnx", "models/nanotrack/nanotrackv2_head.onnx"});
  ASSERT_FALSE(cases.empty());
  for (const GoldenCase* c : {&cases.front(), &cases.back()}) {
    Check(*c, c->model, 1e-4, {.reference = true});
  }
}

// The inputs of tests/golden/manifest.json, by the formula in its README.
Tensor HashTensor(const std::string& dtype, const Shape& shape) {
  const auto hash = [](std::uint32_t i) {
    std::uint32_t h = i + 1;
    for (int round = 0; round < 2; ++round) h = (h ^ (h >> 16)) * 0x45d9f3bu;
    return h ^ (h >> 16);
  };
  const auto n = static_cast<std::uint32_t>(shape.NumElements());
  if (dtype == "float32") {
    Tensor t(DType::kFloat32, shape);
    for (std::uint32_t i = 0; i < n; ++i) {
      t.data<float>()[i] = static_cast<float>(hash(i) >> 8) * 0x1p-24f;
    }
    return t;
  }
  Require(dtype == "int16", "unknown dtype ", dtype);
  Tensor t(DType::kInt16, shape);
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t h = hash(i);
    t.data<std::int16_t>()[i] =
        static_cast<std::int16_t>(static_cast<int>(h & 7) - static_cast<int>((h >> 8) & 7));
  }
  return t;
}

std::shared_ptr<Session> LoadBuilt(const Value& entry, const SessionOptions& options) {
  const auto& fields = entry.struct_value().fields();
  if (fields.contains("model")) {
    return Session::Load(fs::path(TESSERA_SOURCE_DIR) / fields.at("model").string_value(), options);
  }
  SeededWeights weights(static_cast<std::uint64_t>(fields.at("seed").number_value()));
  const bool half = fields.contains("storage") && fields.at("storage").string_value() == "float16";
  const std::string& name = fields.at("network").string_value();
  const std::string bytes = BuildNetwork(*FindNetwork(name), weights,
                                         half ? WeightStorage::kFloat16 : WeightStorage::kFloat32)
                                .SerializeAsString();
  return Session::LoadFromMemory(std::as_bytes(std::span(bytes)), name, options);
}

void CheckBuiltNetworks(const SessionOptions& options) {
  const fs::path root = fs::path(TESSERA_SOURCE_DIR) / "tests/golden";
  const Value manifest = ReadJson(root / "manifest.json");
  int cases = 0;
  for (const Value& entry : Field(manifest, "cases").list_value().values()) {
    GoldenCase c;
    c.distances = "boxes";
    for (const Value& t : Field(entry, "inputs").list_value().values()) {
      c.inputs.emplace_back(
          Field(t, "name").string_value(),
          HashTensor(Field(t, "dtype").string_value(), ReadShape(Field(t, "shape"))));
    }
    for (const Value& t : Field(entry, "outputs").list_value().values()) {
      c.outputs.emplace_back(
          Field(t, "name").string_value(),
          ReadFloats(root / Field(t, "file").string_value(), ReadShape(Field(t, "shape"))));
    }
    const auto& fields = entry.struct_value().fields();
    const std::string what =
        fields.at(fields.contains("model") ? "model" : "network").string_value();
    Check(*LoadBuilt(entry, options), c, {1e-4, 1e-4}, what);
    ++cases;
  }
  EXPECT_GE(cases, 8);
}

TEST(BuiltGolden, ReferenceKernelsMatchOnnxRuntime) { CheckBuiltNetworks({.reference = true}); }

void CheckPublishedNetworks(const SessionOptions& options) {
  const auto shared = SharedFolder();
  if (!shared) GTEST_SKIP() << "the folder 'shared' with published networks is not there";
  const auto cases = ReadManifest(*shared / "golden/manifest.json", *shared,
                                  {std::begin(kPublishedNetworks), std::end(kPublishedNetworks)});
  ASSERT_GE(cases.size(), std::size(kPublishedNetworks));
  for (const GoldenCase& c : cases) Check(c, c.model, 1e-4, options);
}

// With a pass switched off.
class GoldenWithout : public testing::TestWithParam<std::string> {};

TEST_P(GoldenWithout, PublishedNetworksMatchOnnxRuntime) {
  CheckPublishedNetworks({.disabled_passes = {GetParam()}});
}

TEST_P(GoldenWithout, BuiltNetworksMatchOnnxRuntime) {
  CheckBuiltNetworks({.disabled_passes = {GetParam()}});
}

INSTANTIATE_TEST_SUITE_P(Pass, GoldenWithout, testing::ValuesIn(PassNames()),
                         [](const auto& info) { return TestName(info.param); });

// On every instruction set that this CPU has.
class GoldenOn : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(ForceCpuTarget(GetParam())); }
  void TearDown() override { ForceCpuTarget(before_); }

 private:
  const std::string before_ = CpuTargetName();
};

TEST_P(GoldenOn, PublishedNetworksMatchOnnxRuntime) { CheckPublishedNetworks({}); }
TEST_P(GoldenOn, BuiltNetworksMatchOnnxRuntime) { CheckBuiltNetworks({}); }

INSTANTIATE_TEST_SUITE_P(Target, GoldenOn, testing::ValuesIn(AvailableCpuTargets()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tessera
