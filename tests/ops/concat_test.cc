#include "simd/cpu_target.h"
#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

TEST(Concat, JoinsAlongAnyAxis) {
  const auto a = [] { return Floats({2, 2}, {1, 2, 3, 4}); };
  const auto b = [] { return Floats({2, 1}, {5, 6}); };
  EXPECT_EQ(ToVector<float>(OpCall("Concat").Attr("axis", 1).In(a()).In(b()).RunOne()),
            (std::vector<float>{1, 2, 5, 3, 4, 6}));
  EXPECT_EQ(ToVector<float>(OpCall("Concat").Attr("axis", -2).In(a()).In(a()).RunOne()),
            (std::vector<float>{1, 2, 3, 4, 1, 2, 3, 4}));
  EXPECT_EQ(ToVector<float>(OpCall("Concat").Attr("axis", 0).In(a()).RunOne()),
            (std::vector<float>{1, 2, 3, 4}));
}

TEST(Concat, TakesAnyTypeAndEmptyInputs) {
  EXPECT_EQ(ToVector<std::int64_t>(OpCall("Concat")
                                       .Attr("axis", 0)
                                       .In(Int64s({1}))
                                       .In(Int64s({}))
                                       .In(Int64s({2, 3}))
                                       .RunOne()),
            (std::vector<std::int64_t>{1, 2, 3}));
  const Tensor y = OpCall("Concat")
                       .Attr("axis", 0)
                       .In(Values<bool>({1}, {true}))
                       .In(Values<bool>({1}, {false}))
                       .RunOne();
  EXPECT_EQ(ToVector<bool>(y), (std::vector<bool>{true, false}));
}

TEST(Concat, CopiesLargeRowsInPieces) {
  const Shape s{2, 3, 200, 301};
  const Tensor y = OpCall("Concat").Attr("axis", 1).In(Iota(s)).In(Iota({2, 1, 200, 301})).RunOne();
  const std::int64_t plane = 200 * 301;
  for (std::int64_t i = 0; i < y.size(); ++i) {
    const std::int64_t n = i / (4 * plane), rest = i % (4 * plane);
    const std::int64_t want =
        rest < 3 * plane ? n * 3 * plane + rest : n * plane + rest - 3 * plane;
    ASSERT_EQ(y.data<float>()[i], static_cast<float>(want)) << i;
  }
}

TEST(Concat, JoinsBlockedInputsAtBlockBoundaries) {
  std::mt19937 random(6);
  const std::int64_t lanes = FloatLanes();
  for (const std::int64_t last : {lanes, std::int64_t{5}}) {
    OpCall call("Concat");
    call.Attr("axis", 1);
    call.In(RandomTensor({2, 2 * lanes, 5, 7}, random)).In(RandomTensor({2, lanes, 5, 7}, random));
    call.In(RandomTensor({2, last, 5, 7}, random));
    EXPECT_EQ(call.BlockedChoice().outputs[0], Layout::kBlocked);
    call.RunAll(0);
  }
  if (lanes == 1) return;
  OpCall uneven("Concat");
  uneven.Attr("axis", 1)
      .In(RandomTensor({1, 3, 5, 7}, random))
      .In(RandomTensor({1, lanes, 5, 7}, random));
  EXPECT_EQ(uneven.BlockedChoice().outputs[0], Layout::kRowMajor);
  uneven.RunAll(0);
}

TEST(Concat, RefusesInputsThatDiffer) {
  EXPECT_THROW(OpCall("Concat").In(Iota({2})).Infer(), Error);  // no axis
  EXPECT_THROW(OpCall("Concat").Attr("axis", 2).In(Iota({2, 2})).Infer(), Error);
  EXPECT_THROW(OpCall("Concat").Attr("axis", 0).In(Iota({2, 2})).In(Iota({2, 3})).Infer(), Error);
  EXPECT_THROW(OpCall("Concat").Attr("axis", 0).In(Iota({2})).In(Iota({2, 2})).Infer(), Error);
  EXPECT_THROW(OpCall("Concat").Attr("axis", 0).In(Iota({2})).In(Int64s({1})).Infer(), Error);
}

}  // namespace
}  // namespace tessera
