#include "tests/engine/passes/pass_test_util.h"

namespace tessera {
namespace {

TEST(FuseMulAdd, WhateverTheOperandsAre) {
  const std::vector<std::string> shifts{"x", "k", "half"};
  for (const bool flip : {false, true}) {
    for (const std::string& shift : shifts) {
      TestModel m;
      m.Input("x", {1, 3, -1, -1}).Noise("k", {3, 1, 1}).Floats("half", {}, {0.5f});
      m.Node("Exp", {"x"}, {"e"});
      m.Node("Mul",
             flip ? std::vector<std::string>{"half", "e"} : std::vector<std::string>{"e", "k"},
             {"p"});
      m.Node("Add",
             flip ? std::vector<std::string>{shift, "p"} : std::vector<std::string>{"p", shift},
             {"y"});
      m.Output("y");
      EXPECT_EQ(Rewrites(m, "fuse-mul-add"), 1);
      ExpectSameWithoutPass(m, "fuse-mul-add");
      m.Output("p");
      EXPECT_EQ(Rewrites(m, "fuse-mul-add"), 0);
    }
  }
  // The sum is larger than the product.
  TestModel larger;
  larger.Input("x", {1, 3, -1, -1}).Floats("half", {}, {0.5f});
  larger.Node("GlobalAveragePool", {"x"}, {"g"}).Node("Mul", {"g", "half"}, {"p"});
  larger.Node("Add", {"p", "x"}, {"y"}).Output("y");
  EXPECT_EQ(Rewrites(larger, "fuse-mul-add"), 0);
  ExpectSameWithoutPass(larger, "fuse-mul-add");
}

}  // namespace
}  // namespace tessera
