#include "tests/engine/passes/pass_test_util.h"

namespace tessera {
namespace {

TEST(FoldBatchNorm, FoldsIntoConvolutionsOnly) {
  for (const bool bias : {true, false}) {
    TestModel m;
    m.Input("x", {1, 3, -1, -1}).Noise("w", {4, 3, 3, 3}).Noise("b", {4}).Noise("gamma", {4});
    m.Noise("beta", {4}).Noise("mean", {4}).Floats("var", {4}, {0.5f, 1, 2, 3});
    m.Node("Conv",
           bias ? std::vector<std::string>{"x", "w", "b"} : std::vector<std::string>{"x", "w"},
           {"c"});
    m.Node("BatchNormalization", {"c", "gamma", "beta", "mean", "var"}, {"y"}).Output("y");
    EXPECT_EQ(Rewrites(m, "fold-batch-norm"), 1);
    ExpectSameWithoutPass(m, "fold-batch-norm");
    m.Output("c");  // somebody else wants the convolution's own result
    EXPECT_EQ(Rewrites(m, "fold-batch-norm"), 0);
    ExpectSameWithoutPass(m, "fold-batch-norm");
  }
}

}  // namespace
}  // namespace tessera
