#include "pipeline/quantization/raw_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "ops/error.h"
#include "tests/engine/test_model.h"
#include "tests/temporary_folder.h"

namespace tessera {
namespace {

using testing::HasSubstr;

class RawSamples : public testing::Test {
 protected:
  RawSamples() {
    TestModel one;
    one.Input("x", {1, 2, 3}).Output("y").Node("Relu", {"x"}, {"y"});
    one_ = one.Load();
    TestModel two;
    two.Input("a", {1, -1}).Input("b:c", {1, -1}).Output("y").Node("Add", {"a", "b:c"}, {"y"});
    two_ = two.Load();
  }

  std::string Write(const std::string& name, int count, float first = 0) {
    std::vector<float> values(static_cast<std::size_t>(count));
    std::iota(values.begin(), values.end(), first);
    WriteBytes(folder_ / name, {reinterpret_cast<const char*>(values.data()), 4 * values.size()});
    return (folder_ / name).string();
  }

  void ExpectError(Session& network, const std::vector<std::string>& texts,
                   const std::string& part) {
    try {
      ReadRawSamples(network, texts);
      ADD_FAILURE() << part;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(part));
    }
  }

  TemporaryFolder folder_;
  std::shared_ptr<Session> one_, two_;
};

TEST_F(RawSamples, AFileMayHoldSeveral) {
  const std::vector<std::string> texts = {Write("a.f32", 12), Write("b.f32", 6, 100)};
  const std::vector<Sample> samples = ReadRawSamples(*one_, texts);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(samples[1][0].shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(samples[1][0].data<float>()[0], 6);
  EXPECT_EQ(samples[2][0].data<float>()[5], 105);
}

TEST_F(RawSamples, OfSeveralInputsGoTogetherByTheirPlace) {
  const std::vector<std::string> texts = {"b:c:1x4:" + Write("b.f32", 8, 10),
                                          "a:1x4:" + Write("a.f32", 8)};
  const std::vector<Sample> samples = ReadRawSamples(*two_, texts);
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[1][0].data<float>()[0], 4);
  EXPECT_EQ(samples[1][1].data<float>()[0], 14);
}

TEST_F(RawSamples, SayWhatIsWrong) {
  const std::string six = Write("six.f32", 6), seven = Write("seven.f32", 7);
  ExpectError(*one_, {seven}, "seven.f32");
  ExpectError(*one_, {Write("empty.f32", 0)}, "empty.f32");
  ExpectError(*one_, {(folder_ / "none.f32").string()}, "none.f32");
  ExpectError(*one_, {"z:1x6:" + six}, "no input 'z'");
  ExpectError(*two_, {six}, "for which of the inputs");
  ExpectError(*two_, {"a:1x6:" + six}, "'b:c'");
  TestModel open;
  open.Input("x", {1, -1}).Output("y").Node("Relu", {"x"}, {"y"});
  ExpectError(*open.Load(), {six}, "is not fixed");
}

TEST_F(RawSamples, AreToldByTheirName) {
  EXPECT_TRUE(IsRawSpec("a.f32"));
  EXPECT_TRUE(IsRawSpec("x:1x3:a.f32"));
  EXPECT_FALSE(IsRawSpec("a.png"));
}

}  // namespace
}  // namespace tessera
