// Real and built networks against ONNX Runtime's outputs. A manifest.json lists model, inputs and
// outputs; ../shared/golden has the one for published weights, tests/golden that for the networks
// that models/ builds.
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine/session.h"
#include "ops/error.h"
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

using google::protobuf::ListValue;
using google::protobuf::Value;

const Value& Field(const Value& object, const std::string& key) {
  return object.struct_value().fields().at(key);
}

Shape ReadShape(const Value& list) {
  Shape shape;
  for (const Value& d : list.list_value().values()) {
    shape.PushBack(static_cast<std::int64_t>(d.number_value()));
  }
  return shape;
}

struct GoldenCase {
  fs::path model;
  std::vector<std::pair<std::string, Tensor>> inputs;
  std::vector<std::pair<std::string, Tensor>> outputs;
};

std::vector<GoldenCase> ReadManifest(const fs::path& manifest, const fs::path& root,
                                     const std::vector<std::string>& models) {
  std::ifstream in(manifest);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  ListValue root_list;
  Require(google::protobuf::util::JsonStringToMessage(text, &root_list).ok(), manifest.string(),
          ": cannot be read");
  std::vector<GoldenCase> cases;
  for (const Value& entry : root_list.values()) {
    const std::string& model = Field(entry, "model").string_value();
    if (std::find(models.begin(), models.end(), model) == models.end()) continue;
    GoldenCase c{root / model, {}, {}};
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

double MaxDifference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double d = std::abs(a[i] - b[i]);
    if (!(d <= worst)) worst = d;  // NaN counts as worst
  }
  return worst;
}

void Check(const GoldenCase& c, const fs::path& model, double tolerance,
           const SessionOptions& options) {
  const auto session = Session::Load(model, options);
  std::vector<NamedView> inputs;
  for (const auto& [name, tensor] : c.inputs) inputs.push_back({name, tensor.view()});
  std::vector<Tensor> outputs;
  session->Run(inputs, outputs);
  ASSERT_EQ(outputs.size(), c.outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    ASSERT_EQ(session->outputs()[i].name, c.outputs[i].first);
    ASSERT_EQ(outputs[i].shape(), c.outputs[i].second.shape());
    const double difference =
        MaxDifference(ToFloats(outputs[i].view()), ToFloats(c.outputs[i].second.view()));
    EXPECT_LE(difference, tolerance) << model << " on " << c.inputs[0].second.shape();
    testing::Test::RecordProperty("max_difference", std::to_string(difference));
    std::printf("  %s %s: max difference %.2e\n", model.filename().c_str(),
                ToString(c.inputs[0].second.shape()).c_str(), difference);
  }
}

class SharedGolden : public testing::TestWithParam<std::string> {};

TEST_P(SharedGolden, MatchesOnnxRuntime) {
  const auto shared = SharedFolder();
  if (!shared) GTEST_SKIP() << "the folder 'shared' with published networks is not there";
  const auto cases = ReadManifest(*shared / "golden/manifest.json", *shared, {GetParam()});
  ASSERT_FALSE(cases.empty());
  for (const GoldenCase& c : cases) Check(c, c.model, 1e-4, {});
}

INSTANTIATE_TEST_SUITE_P(PublishedNetworks, SharedGolden,
                         testing::Values("models/x4v3.onnx", "models/animevideov3-x2.onnx",
                                         "models/spanx4.onnx", "models/spanx2.onnx"),
                         [](const auto& info) {
                           std::string name = fs::path(info.param).stem();
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(SharedGolden, Float16FileMatchesFloat32Golden) {
  const auto shared = SharedFolder();
  if (!shared) GTEST_SKIP() << "the folder 'shared' with published networks is not there";
  const auto cases =
      ReadManifest(*shared / "golden/manifest.json", *shared, {"models/spanx2.onnx"});
  ASSERT_FALSE(cases.empty());
  for (const GoldenCase& c : cases) Check(c, *shared / "models/spanx2-fp16.onnx", 3e-3, {});
}

// Every pass off, one at a time, and the plain kernels.
TEST(SharedGolden, HoldsWithoutEachPass) {
  const auto shared = SharedFolder();
  if (!shared) GTEST_SKIP() << "the folder 'shared' with published networks is not there";
  const auto cases = ReadManifest(*shared / "golden/manifest.json", *shared,
                                  {"models/spanx2.onnx", "models/animevideov3-x2.onnx"});
  ASSERT_FALSE(cases.empty());
  for (const std::string& pass : PassNames()) {
    SCOPED_TRACE(pass);
    for (const GoldenCase& c : cases) Check(c, c.model, 1e-4, {.disabled_passes = {pass}});
  }
  Check(cases[0], cases[0].model, 1e-4, {.reference = true});
}

}  // namespace
}  // namespace tessera
