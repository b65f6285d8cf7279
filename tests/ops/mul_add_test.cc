#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

TEST(MulAdd, EveryWayToBroadcast) {
  std::mt19937 random(3);
  const Shape whole{2, 19, 5, 7};
  const std::vector<Shape> operands = {{2, 19, 5, 7}, {},  {1},   {19, 1, 1}, {1, 19, 1, 1},
                                       {2, 19, 1, 1}, {7}, {5, 1}};
  for (const Shape& scale : operands) {
    for (const Shape& shift : operands) {
      SCOPED_TRACE(ToString(scale) + " " + ToString(shift));
      const Tensor x = RandomTensor(whole, random), a = RandomTensor(scale, random),
                   b = RandomTensor(shift, random);
      const Tensor product = OpCall("Mul").In(x.Clone()).In(a.Clone()).RunOne();
      const Tensor sum = OpCall("Add").In(product.Clone()).In(b.Clone()).RunOne();
      ExpectClose(OpCall("MulAdd").In(x.Clone()).In(a.Clone()).In(b.Clone()).RunOne(), sum, 1e-6);
    }
  }
}

TEST(MulAdd, StaysBlockedWhereOperandsAllow) {
  const auto choice = [](const Shape& scale) {
    return OpCall("MulAdd").In(Iota({1, 16, 4, 4})).In(Iota(scale)).In(Iota({1, 16, 4, 4}));
  };
  EXPECT_EQ(choice({}).BlockedChoice().outputs[0], Layout::kBlocked);
  EXPECT_EQ(choice({4}).BlockedChoice().outputs[0], Layout::kRowMajor);
  EXPECT_EQ(choice({}).KernelName({}), "mul_add_vector");
}

TEST(MulAdd, RefusesOperandsThatAreLarger) {
  EXPECT_THROW(OpCall("MulAdd").In(Iota({3})).In(Iota({2, 3})).In(Iota({3})).Infer(), Error);
  EXPECT_THROW(OpCall("MulAdd").In(Iota({3})).In(Iota({3})).In(Int64s({1})).Infer(), Error);
}

}  // namespace
}  // namespace tessera
