// The models inside the program are the files that build-model writes from trained weights.
#include "models/builtin_models.h"

#include <gtest/gtest.h>
#include <onnx/checker.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <set>

#include "models/networks.h"
#include "ops/tensor.h"

namespace tessera {
namespace {

onnx::ModelProto Parse(const BuiltinModel& model) {
  onnx::ModelProto proto;
  EXPECT_TRUE(proto.ParseFromArray(model.onnx.data(), static_cast<int>(model.onnx.size())));
  return proto;
}

void ClearFloat16Data(onnx::ModelProto& model) {
  for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (tensor.data_type() == onnx::TensorProto::FLOAT16) tensor.clear_raw_data();
  }
}

TEST(BuiltinModels, HaveNamesLicencesAndAlignedBytes) {
  std::set<std::string_view> names;
  for (const BuiltinModel& model : BuiltinModels()) {
    EXPECT_TRUE(names.insert(model.name).second) << model.name;
    EXPECT_EQ(FindBuiltinModel(model.name), &model);
    EXPECT_FALSE(model.description.empty());
    EXPECT_FALSE(model.licence.empty());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(model.onnx.data()) % 64, 0u);
    EXPECT_LT(model.onnx.size(), 1000000u) << "built-in models are small";
  }
  EXPECT_EQ(FindBuiltinModel("no such model"), nullptr);
}

TEST(BuiltinModels, TheDefaultEnlargesNoMoreThanItHasTo) {
  for (const double scale : {0.5, 1.5, 2.0}) EXPECT_EQ(DefaultModel(scale).name, "default-x2");
  for (const double scale : {2.01, 4.0, 8.0}) EXPECT_EQ(DefaultModel(scale).name, "default-x4");
}

TEST(BuiltinModels, AreTheNetworksOfTheirNames) {
  for (const BuiltinModel& model : BuiltinModels()) {
    onnx::ModelProto embedded = Parse(model);
    ASSERT_NO_THROW(onnx::checker::check_model(embedded));
    const NetworkDef* network = FindNetwork(model.name);
    ASSERT_NE(network, nullptr) << model.name;
    EXPECT_EQ(model.parameters, CountParameters(*network));

    SeededWeights weights(1);
    onnx::ModelProto built = BuildNetwork(*network, weights, WeightStorage::kFloat16);
    ClearFloat16Data(built);
    ClearFloat16Data(embedded);
    EXPECT_EQ(embedded.SerializeAsString(), built.SerializeAsString())
        << "write models/weights/" << model.name << ".onnx again with build-model --fp16";
  }
}

// Training gives no NaN, and leaves neither zeros nor the seeded start behind.
TEST(BuiltinModels, HoldFiniteTrainedWeights) {
  for (const BuiltinModel& model : BuiltinModels()) {
    const onnx::ModelProto proto = Parse(model);
    for (const onnx::TensorProto& tensor : proto.graph().initializer()) {
      if (tensor.data_type() != onnx::TensorProto::FLOAT16) continue;
      double squares = 0;
      for (std::size_t i = 0; i < tensor.raw_data().size(); i += 2) {
        std::uint16_t half;
        std::memcpy(&half, tensor.raw_data().data() + i, 2);
        const float value = HalfToFloat(half);
        ASSERT_TRUE(std::isfinite(value)) << tensor.name();
        squares += double{value} * value;
      }
      EXPECT_GT(squares, 0) << tensor.name();
    }
  }
}

}  // namespace
}  // namespace tessera
