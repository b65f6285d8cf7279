#include "ops/conv_pair.h"

#include <algorithm>
#include <array>

#include "simd/cpu_target.h"
#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

using Ints = std::vector<std::int64_t>;

Attributes ConvAttributes(std::int64_t groups, Ints strides, Ints pads, const Epilogue& epilogue) {
  Attributes a;
  a.Set("group", groups);
  a.Set("strides", std::move(strides));
  a.Set("pads", std::move(pads));
  WriteEpilogue(epilogue, a);
  return a;
}

// RunOne compares the plain pair with the streamed one in every layout, on several threads.
TEST(ConvPair, DepthwiseThenPointwise) {
  std::mt19937 random(31);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  const std::array<std::int64_t, 5> channels = {3, 16, 24, 48, 70};
  const std::array<std::int64_t, 6> widths = {1, 6, 16, 31, 64, 128};
  for (const std::string& target : AvailableCpuTargets()) {
    ASSERT_TRUE(ForceCpuTarget(target));
    for (int i = 0; i < 25; ++i) {
      const std::int64_t between = channels[static_cast<std::size_t>(pick(0, 4))];
      const std::int64_t out = channels[static_cast<std::size_t>(pick(0, 4))];
      const std::int64_t kernel = pick(1, 5), stride = pick(1, 2), pad = pick(0, kernel / 2);
      const Shape x{pick(1, 2), between, kernel + pick(0, 20),
                    std::max(kernel, widths[static_cast<std::size_t>(pick(0, 5))])};
      const Epilogue inner = {.activation = static_cast<Activation>(i % 3 == 0 ? 1 : 0)};
      const Epilogue outer = {.activation = static_cast<Activation>(pick(0, 8)),
                              .alpha = 0.2f,
                              .beta = 0.7f,
                              .combine = i % 2 == 0 ? Combine::kNone : Combine::kAdd,
                              .scale = 0.5f};
      OpCall call("ConvPair");
      for (const auto& [name, value] :
           PairAttributes(ConvAttributes(between, {stride, stride}, {pad, pad, pad, pad}, inner),
                          ConvAttributes(1, {1, 1}, {0, 0, 0, 0}, outer))) {
        call.Attr(name, value);
      }
      call.In(RandomTensor(x, random)).Const(RandomTensor({out, between, 1, 1}, random));
      i % 4 == 0 ? call.Absent() : call.Const(RandomTensor({out}, random));
      outer.activation == Activation::kPRelu ? call.Const(RandomTensor({out}, random))
                                             : call.Absent();
      const auto size = [&](std::int64_t in) { return (in + 2 * pad - kernel) / stride + 1; };
      outer.combine == Combine::kNone
          ? call.Absent()
          : call.In(RandomTensor({x[0], out, size(x[2]), size(x[3])}, random));
      call.Const(RandomTensor({between, 1, kernel, kernel}, random));
      if (i % 5 != 0) call.Const(RandomTensor({between}, random));
      SCOPED_TRACE(StrCat(target, " ", x, " kernel ", kernel, " stride ", stride, " pad ", pad,
                          " to ", out, " channels"));
      call.RunOne(1e-5);
      if (testing::Test::HasFailure()) return;
    }
  }
  ForceCpuTarget(AvailableCpuTargets().front());
}

TEST(ConvPair, StreamsDepthwiseThenPointwiseOnly) {
  const auto params = [](std::int64_t in, std::int64_t out, std::int64_t groups,
                         std::int64_t kernel) {
    const OpNode node{.name = "test",
                      .type = "Conv",
                      .opset = 17,
                      .attributes = ConvAttributes(groups, {1, 1}, Ints(4, kernel / 2), {})};
    return ReadConvParams(node, {1, in, 16, 16}, {out, in / groups, kernel, kernel});
  };
  EXPECT_TRUE(StreamsWell(params(96, 96, 96, 3), params(96, 96, 1, 1)));
  EXPECT_FALSE(StreamsWell(params(96, 96, 1, 1), params(96, 96, 96, 3)));
  EXPECT_FALSE(StreamsWell(params(96, 96, 1, 3), params(96, 96, 1, 1)));
  EXPECT_FALSE(StreamsWell(params(96, 96, 96, 3), params(96, 96, 1, 3)));
  EXPECT_FALSE(StreamsWell(params(512, 512, 512, 3), params(512, 512, 1, 1)));  // many weights
}

}  // namespace
}  // namespace tessera
