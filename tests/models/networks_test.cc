// The networks as written: valid ONNX, the published sizes, the same bits everywhere.
#include "models/networks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/checker.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "ops/error.h"
#include "ops/tensor.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

onnx::ModelProto Seeded(std::string_view name, std::uint64_t seed = 1,
                        WeightStorage storage = WeightStorage::kFloat32) {
  SeededWeights weights(seed);
  return BuildNetwork(*FindNetwork(name), weights, storage);
}

// Shapes of the outputs for a picture of 12 x 10 pixels, by the ONNX library's own inference.
std::vector<std::vector<std::int64_t>> InferredOutputs(onnx::ModelProto model) {
  for (onnx::ValueInfoProto& input : *model.mutable_graph()->mutable_input()) {
    auto& dims = *input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim();
    for (auto& dim : dims) {
      if (dim.dim_param() == "batch") dim.set_dim_value(1);
      if (dim.dim_param() == "height") dim.set_dim_value(12);
      if (dim.dim_param() == "width") dim.set_dim_value(10);
    }
  }
  onnx::ShapeInferenceOptions options(/*check_type_val=*/true, /*strict_mode_val=*/1);
  onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(), options);
  std::vector<std::vector<std::int64_t>> shapes;
  for (const onnx::ValueInfoProto& output : model.graph().output()) {
    std::vector<std::int64_t>& shape = shapes.emplace_back();
    for (const auto& dim : output.type().tensor_type().shape().dim()) {
      shape.push_back(dim.dim_value());
    }
  }
  return shapes;
}

class EveryNetwork : public ::testing::TestWithParam<std::string_view> {};

TEST_P(EveryNetwork, IsValidOnnxAndHasTheRightShapes) {
  const onnx::ModelProto model = Seeded(GetParam());
  ASSERT_NO_THROW(onnx::checker::check_model(model));
  if (GetParam().starts_with("f5dctnet")) {
    EXPECT_THAT(InferredOutputs(model), ElementsAre(ElementsAre(1, 2), ElementsAre(1, 1)));
    EXPECT_EQ(model.graph().output(0).name(), "logits_detect");
    EXPECT_EQ(model.graph().output(1).name(), "beta_raw");
  } else if (GetParam().starts_with("siamese")) {
    EXPECT_THAT(InferredOutputs(model),
                ElementsAre(ElementsAre(1, 1, 16, 16), ElementsAre(1, 4, 16, 16)));
    EXPECT_EQ(model.graph().output(0).name(), "classes");
    EXPECT_EQ(model.graph().output(1).name(), "boxes");
  } else {
    const std::int64_t scale = GetParam().ends_with("x2") ? 2 : 4;
    EXPECT_THAT(InferredOutputs(model), ElementsAre(ElementsAre(1, 3, 12 * scale, 10 * scale)));
    EXPECT_EQ(model.graph().output(0).name(), "output");
  }
}

TEST_P(EveryNetwork, HasTheDocumentedNumberOfWeights) {
  // The first five are the sizes of the published networks.
  const std::map<std::string_view, std::int64_t> expected = {
      {"srvgg-x4v3", 1213296},      {"srvgg-animevideov3", 621424},
      {"rrdbnet-x4plus", 16697987}, {"rrdbnet-x4plus-anime-6b", 4467779},
      {"span-x4", 426288},          {"default-x4", 272160},
      {"default-x2", 256572},       {"default-x4-restore", 272160},
      {"f5dctnet-v1", 845731},      {"f5dctnet-v1s", 213203},
      {"f5dctnet-v1ss", 213203},    {"siamese-two-tower", 566157},
  };
  EXPECT_EQ(CountParameters(*FindNetwork(GetParam())), expected.at(GetParam()));
}

TEST_P(EveryNetwork, StoresFloat16Weights) {
  const onnx::ModelProto half = Seeded(GetParam(), 1, WeightStorage::kFloat16);
  ASSERT_NO_THROW(onnx::checker::check_model(half));
  EXPECT_EQ(InferredOutputs(half), InferredOutputs(Seeded(GetParam())));
  std::int64_t halves = 0;
  for (const onnx::TensorProto& tensor : half.graph().initializer()) {
    if (tensor.data_type() == onnx::TensorProto::FLOAT16) {
      halves += static_cast<std::int64_t>(tensor.raw_data().size() / 2);
    }
  }
  EXPECT_EQ(halves, CountParameters(*FindNetwork(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Models, EveryNetwork, ::testing::ValuesIn([] {
                           std::vector<std::string_view> names;
                           for (const NetworkDef& network : Networks()) {
                             names.push_back(network.name);
                           }
                           return names;
                         }()),
                         [](const auto& info) {
                           std::string name(info.param);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(Networks, UnknownNamesAreNull) { EXPECT_EQ(FindNetwork("srvgg"), nullptr); }

std::uint64_t Fnv1a(std::string_view bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), 0xcbf29ce484222325u,
                         [](std::uint64_t hash, char c) {
                           return (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
                         });
}

// Goldens are made on one machine and checked on others: the bytes must not depend on it.
TEST(Networks, SeededBytesAreTheSameEverywhere) {
  EXPECT_EQ(Fnv1a(Seeded("span-x4", 7).SerializeAsString()), 12940589426126772099u);
  EXPECT_EQ(Fnv1a(Seeded("f5dctnet-v1s", 7).SerializeAsString()), 6039681173335731071u);
  EXPECT_NE(Seeded("span-x4", 7).SerializeAsString(), Seeded("span-x4", 8).SerializeAsString());
}

// The two towers of a tracker differ in nothing but the size of what they see.
TEST(Networks, SiameseTowersShareTheirWeights) {
  const onnx::ModelProto model = Seeded("siamese-two-tower");
  std::map<std::string, std::vector<std::string>> weights;
  for (const onnx::NodeProto& node : model.graph().node()) {
    if (node.op_type() != "Conv") continue;
    const std::string tower = node.name().substr(0, node.name().find('.'));
    weights[tower].insert(weights[tower].end(), node.input().begin() + 1, node.input().end());
  }
  EXPECT_GT(weights["template"].size(), 40u);
  EXPECT_EQ(weights["template"], weights["search"]);
}

TEST(Networks, TakeListedWeightsInNetworkOrder) {
  const NetworkDef& network = *FindNetwork("default-x4");
  std::vector<float> values(static_cast<std::size_t>(CountParameters(network)));
  std::iota(values.begin(), values.end(), 0.0f);
  ListedWeights weights(values);
  const onnx::ModelProto model = BuildNetwork(network, weights);
  EXPECT_EQ(weights.remaining(), 0u);

  float next = 0;
  std::vector<std::string> names;
  for (const onnx::TensorProto& tensor : model.graph().initializer()) {
    if (names.size() < 4) names.push_back(tensor.name());
    if (tensor.name() == "base.scales") continue;
    ASSERT_EQ(tensor.raw_data().size() % sizeof(float), 0u);
    for (std::size_t i = 0; i < tensor.raw_data().size(); i += sizeof(float)) {
      float value;
      std::memcpy(&value, tensor.raw_data().data() + i, sizeof(float));
      ASSERT_EQ(value, next++) << tensor.name();
    }
  }
  EXPECT_THAT(names, ElementsAre("body.0.weight", "body.0.bias", "body.1.weight", "body.2.weight"));
}

TEST(Networks, TooFewOrTooLargeWeightsAreErrors) {
  const NetworkDef& network = *FindNetwork("default-x4");
  const auto count = static_cast<std::size_t>(CountParameters(network));
  ListedWeights few(std::vector<float>(count - 1));
  EXPECT_THAT([&] { BuildNetwork(network, few); },
              ::testing::ThrowsMessage<Error>(HasSubstr("the network takes more")));
  ListedWeights large(std::vector<float>(count, 70000.0f));
  EXPECT_THAT([&] { BuildNetwork(network, large, WeightStorage::kFloat16); },
              ::testing::ThrowsMessage<Error>(HasSubstr("does not fit in float16")));
}

TEST(SeededWeights, FollowTheirDistribution) {
  std::vector<float> values(200000);
  SeededWeights(3).Next({.mean = 0.5, .deviation = 0.25}, values);
  double sum = 0, squares = 0, fourths = 0;
  for (const float value : values) {
    const double z = (value - 0.5) / 0.25;
    sum += z;
    squares += z * z;
    fourths += z * z * z * z;
  }
  const auto n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.01);
  // 3 for a normal distribution, 2.9 for the sum of twelve uniform numbers.
  EXPECT_NEAR(fourths / n, 2.9, 0.1);
}

}  // namespace
}  // namespace tessera
