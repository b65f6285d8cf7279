#include "pipeline/quantization/model_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "engine/onnx_import.h"
#include "ops/error.h"
#include "pipeline/quantization/int8_network.h"
#include "tests/engine/test_model.h"
#include "tests/temporary_folder.h"

namespace tessera {
namespace {

class ModelCacheTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  ModelCache cache_{folder_ / "a" / "b"};
};

TEST_F(ModelCacheTest, GivesWhatWasPut) {
  EXPECT_EQ(cache_.Find("key"), std::nullopt);
  cache_.Put("key", "model");
  cache_.Put("other", "");
  EXPECT_EQ(cache_.Find("key"), "model");
  EXPECT_EQ(cache_.Find("other"), "");
  cache_.Put("key", "another model");
  EXPECT_EQ(cache_.Find("key"), "another model");
}

TEST_F(ModelCacheTest, FindsNoDamagedFiles) {
  const std::string model(1000, 'm');
  cache_.Put("key", model);
  const std::string bytes = ReadBytes(cache_.File("key"));
  const auto expect_missing = [&](const std::string& damaged) {
    WriteBytes(cache_.File("key"), damaged);
    EXPECT_EQ(cache_.Find("key"), std::nullopt);
  };
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{10}, std::size_t{500}, bytes.size() - 1})
    expect_missing(bytes.substr(0, size));
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{999}, std::size_t{1000}, bytes.size() - 1}) {
    std::string changed = bytes;
    changed[at] ^= 1;
    expect_missing(changed);
  }
  expect_missing(bytes + 'x');
  WriteBytes(cache_.File("key"), bytes);
  EXPECT_EQ(cache_.Find("key"), model);
}

TEST_F(ModelCacheTest, KeptModelsAreOnnxFiles) {
  TestModel m;
  m.Input("x", {1, 3, 4, 4}).Output("y").Node("Relu", {"x"}, {"y"});
  cache_.Put("key", m.Bytes());
  EXPECT_EQ(Session::Load(cache_.File("key"))->inputs()[0].name, "x");
}

TEST_F(ModelCacheTest, SaysWhyAModelCannotBeKept) {
  WriteBytes(folder_ / "a", "a file");
  try {
    cache_.Put("key", "model");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(cache_.File("key").filename().string()));
  }
  EXPECT_EQ(cache_.Find("key"), std::nullopt);
}

TEST_F(ModelCacheTest, OfUserFollowsTheSpecification) {
  const auto with = [](const char* cache, const char* home) {
    ::setenv("XDG_CACHE_HOME", cache, 1);
    ::setenv("HOME", home, 1);
    const auto found = ModelCache::OfUser();
    return found ? found->File("k").parent_path().string() : "none";
  };
  const std::string old_home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  EXPECT_EQ(with("/c", "/h"), "/c/tessera/int8");
  EXPECT_EQ(with("relative", "/h"), "/h/.cache/tessera/int8");
  EXPECT_EQ(with("", "/h"), "/h/.cache/tessera/int8");
  EXPECT_EQ(with("", ""), "none");
  ::unsetenv("XDG_CACHE_HOME");
  ::setenv("HOME", old_home.c_str(), 1);
}

Graph Import(const TestModel& model) {
  const std::string bytes = model.Bytes();
  return ImportOnnx(std::as_bytes(std::span(bytes)), "m.onnx", {});
}

TEST_F(ModelCacheTest, NetworksAreFoundByTheirWeightsAndUse) {
  const auto network = [](float weight) {
    TestModel m;
    m.Input("x", {1, 1, 4, 4}).Output("y").Floats("w", {1}, {weight});
    return Import(m.Node("Mul", {"x", "w"}, {"y"}));
  };
  const Int8Network one(network(1), cache_), two(network(2), cache_), used(network(1), cache_, "b");
  EXPECT_EQ(one.Find(), nullptr);
  std::vector<std::string> notes;
  one.Keep(one.graph(), [&](const std::string& note) { notes.push_back(note); });
  EXPECT_THAT(notes, testing::ElementsAre(testing::HasSubstr("kept as")));
  EXPECT_NE(one.Find(), nullptr);
  EXPECT_EQ(two.Find(), nullptr);
  EXPECT_EQ(used.Find(), nullptr);
}

TEST_F(ModelCacheTest, QuantisedNetworksStayAsTheyAre) {
  TestModel m;
  m.Input("x", {1, 1, 4, 4}).Output("y").Floats("s", {}, {0.5F});
  m.Node("QuantizeLinear", {"x", "s"}, {"q"}).Node("DequantizeLinear", {"q", "s"}, {"y"});
  const Int8Network network(Import(m), std::nullopt);
  EXPECT_TRUE(IsQuantized(network.graph()));
  ASSERT_NE(network.Find(), nullptr);
}

}  // namespace
}  // namespace tessera
