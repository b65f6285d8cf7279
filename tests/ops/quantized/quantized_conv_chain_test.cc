#include "ops/quantized/quantized_conv_chain.h"

#include <algorithm>
#include <iterator>

#include "ops/quantized/quantized_depthwise.h"
#include "tests/every_target.h"
#include "tests/ops/op_test_util.h"
#include "tests/ops/quantized/guarded_bytes.h"
#include "tests/ops/quantized/quantized_conv_cases.h"

namespace tessera {
namespace {

struct Pick {
  std::mt19937& random;
  std::int64_t operator()(std::int64_t low, std::int64_t high) const {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  }
  template <std::size_t n>
  std::int64_t operator()(const std::int64_t (&list)[n]) const {
    return list[random() % n];
  }
};

struct ChainCase {
  std::vector<QuantizedConvCase> convs;

  const ConvParams& first() const { return convs.front().params.conv; }
  const ConvParams& last() const { return convs.back().params.conv; }
  bool has_addend() const { return convs.back().params.has_addend; }
  std::vector<QuantizedConvParams> Params() const {
    std::vector<QuantizedConvParams> list;
    for (const QuantizedConvCase& c : convs) list.push_back(c.params);
    return list;
  }
  std::vector<QuantizedConvConstants> Constants() const {
    std::vector<QuantizedConvConstants> list;
    for (const QuantizedConvCase& c : convs) list.push_back(c.constants);
    return list;
  }
  Shape y() const {
    const ConvParams& p = last();
    return {p.batch, p.out_channels, p.out_height, p.out_width};
  }
  std::string Describe() const {
    std::string text;
    for (const QuantizedConvCase& c : convs) text += ToString(c) + "; ";
    return text;
  }
};

constexpr std::int64_t kChannels[] = {5, 16, 24, 33, 72, 96};
constexpr std::int64_t kWidths[] = {1, 2, 9, 31, 48, 64, 77, 131};

// `kinds`: a letter for each convolution, pointwise or depthwise.
ChainCase RandomChain(const char* kinds, std::mt19937& random) {
  const Pick pick{random};
  ChainCase chain;
  ConvParams p = {.batch = pick(1, 2),
                  .in_channels = pick(kChannels),
                  .in_height = pick(5, 30),
                  .in_width = pick(kWidths),
                  .out_channels = 0,
                  .out_height = 0,
                  .out_width = 0,
                  .kernel_h = 1,
                  .kernel_w = 1,
                  .stride_h = 1,
                  .stride_w = 1,
                  .dilation_h = 1,
                  .dilation_w = 1,
                  .pad_top = 0,
                  .pad_left = 0,
                  .pad_bottom = 0,
                  .pad_right = 0,
                  .groups = 1,
                  .epilogue = {}};
  if (p.in_width > 31) p.in_height = std::min<std::int64_t>(p.in_height, 11);  // slow references
  for (const char* kind = kinds; *kind != 0; ++kind) {
    ConvParams q = p;
    q.out_channels = pick(kChannels);
    if (*kind == 'd') {
      q.groups = q.out_channels = q.in_channels;
      q.kernel_h = pick(2, 5);
      q.kernel_w = q.in_width == 1 ? 1 : pick(2, 5);
      q.stride_h = pick(1, kind == kinds ? 3 : 2);
      q.stride_w = pick(1, 2);
      q.pad_top = pick(0, 2);
      q.pad_bottom = pick(0, 2);
      q.pad_left = q.pad_right = q.kernel_w / 2;
    }
    chain.convs.push_back(MakeQuantizedConvCase(q, random));
    QuantizedConvCase& c = chain.convs.back();
    c.params.to_float = false;
    c.params.has_addend = c.params.has_addend && kind[1] == 0;
    if (pick(0, 1) == 0) c.params.y.zero_point = 0;  // that of Relu: sums need no conversion
    if (kind != kinds) c.params.x = chain.convs[chain.convs.size() - 2].params.y;
    p.in_channels = c.params.conv.out_channels;
    p.in_height = c.params.conv.out_height;
    p.in_width = c.params.conv.out_width;
  }
  return chain;
}

// The reference kernels one after the other.
Tensor Expected(const ChainCase& chain) {
  Tensor x = chain.convs[0].x.Clone();
  for (const QuantizedConvCase& c : chain.convs) {
    const ConvParams& p = c.params.conv;
    Tensor y(DType::kUint8, {p.batch, p.out_channels, p.out_height, p.out_width});
    std::vector<TensorView> inputs(kQuantizedAddend + 1);
    inputs[0] = x.view();
    if (c.params.has_addend) inputs[kQuantizedAddend] = c.addend.view();
    RunKernel(*MakeReferenceQuantizedConv(c.params, c.constants), inputs, y, 1);
    x = std::move(y);
  }
  return x;
}

// On every target that has the kernel, by one thread and by several; where the kernel can, also
// with the result in the place of the addend.
void ExpectChainBytes(const ChainCase& chain) {
  SCOPED_TRACE(chain.Describe());
  const Tensor expected = Expected(chain);
  const Tensor x = ToChannelsLast(chain.convs[0].x);
  const Tensor addend = chain.has_addend() ? ToChannelsLast(chain.convs.back().addend) : Tensor();
  const GuardedBytes x_bytes(x), addend_bytes(addend);
  OnEveryTarget([&] {
    if (FloatLanes() == 1) return;  // not there
    ASSERT_TRUE(IsQuantizedChain(chain.Params()));
    PackCache packs;
    const auto kernel = MakeQuantizedChain(chain.Params(), chain.Constants(), packs);
    const std::size_t stride = RoundUp(kernel->ScratchBytesPerThread(), kAlignment);
    const auto check = [&](const TensorView& added, const GuardedBytes& y_bytes, int threads) {
      Tensor y(DType::kUint8, chain.y(), Layout::kChannelsLast);
      const GuardedBytes scratch(stride * static_cast<std::size_t>(threads));
      TestThreads team(threads);
      const std::vector<TensorView> inputs = {x_bytes.ViewOf(x), added};
      const TensorView out = y_bytes.ViewOf(y);
      kernel->Run({inputs, {&out, 1}, team, scratch.data(), stride});
      std::memcpy(y.data<std::byte>(), y_bytes.data(), y.bytes());
      ExpectSameElements<std::uint8_t>(expected, y);
    };
    for (const int threads : {1, 3}) {
      SCOPED_TRACE(threads);
      const GuardedBytes y_bytes(StorageBytes(DType::kUint8, chain.y(), Layout::kChannelsLast));
      check(addend_bytes.ViewOf(addend), y_bytes, threads);
      if (!chain.has_addend() || !kernel->CanOverwriteInput(kChainAddend)) continue;
      SCOPED_TRACE("in place");
      const GuardedBytes both(addend);
      check(both.ViewOf(addend), both, threads);
    }
  });
}

TEST(QuantizedConvChain, EqualsItsConvolutionsOnEveryTarget) {
  std::mt19937 random(21);
  for (const char* kinds : {"pd", "dp", "pdp"}) {
    for (int i = 0; i < 24 && !testing::Test::HasFailure(); ++i) {
      ExpectChainBytes(RandomChain(kinds, random));
    }
  }
}

// As an operator, with the attributes that passes write.
TEST(QuantizedConvChain, AsANode) {
  std::mt19937 random(22);
  for (const char* kinds : {"pd", "dp", "pdp"}) {
    for (int i = 0; i < 4; ++i) {
      const ChainCase chain = RandomChain(kinds, random);
      SCOPED_TRACE(chain.Describe());
      std::vector<Attributes> attributes;
      std::vector<const Attributes*> list;
      for (const QuantizedConvCase& c : chain.convs) {
        const ConvParams& p = c.params.conv;
        Attributes a;
        a.Set("group", p.groups);
        a.Set("strides", std::vector<std::int64_t>{p.stride_h, p.stride_w});
        a.Set("pads", std::vector<std::int64_t>{p.pad_top, p.pad_left, p.pad_bottom, p.pad_right});
        WriteEpilogue(p.epilogue, a);
        WriteQuantization(c.params.x, "x", a);
        WriteQuantization(c.params.y, "y", a);
        if (c.params.has_addend) WriteQuantization(c.params.addend, "addend", a);
        attributes.push_back(std::move(a));
      }
      for (const Attributes& a : attributes) list.push_back(&a);
      OpCall call("QuantizedConvChain");
      for (const auto& [name, value] : ChainAttributes(list)) call.Attr(name, value);
      call.In(chain.convs[0].x.Clone());
      chain.has_addend() ? call.In(chain.convs.back().addend.Clone()) : call.Absent();
      for (const QuantizedConvCase& c : chain.convs) {
        for (const auto& t :
             {c.constants.weights, c.constants.weight_scale, c.constants.bias, c.constants.slope}) {
          t == nullptr ? call.Absent() : call.Const(t->Clone());
        }
      }
      const std::vector<Tensor> y = call.Run({.reference = true});
      ExpectClose(y[0], Expected(chain), 0);
      EXPECT_EQ(call.KernelName({.reference = true}), "quantized_conv_chain_reference");
      OnEveryTarget([&] {
        const Layout layout = FloatLanes() == 1 ? Layout::kRowMajor : Layout::kChannelsLast;
        EXPECT_EQ(call.BlockedChoice().inputs[0], layout);
        EXPECT_EQ(call.BlockedChoice().outputs[0], layout);
        ExpectClose(call.Run({.blocked = true, .constant = false})[0], y[0], 0);
      });
    }
  }
}

TEST(QuantizedConvChain, WhatItIsFor) {
  std::mt19937 random(23);
  const auto is_one = [&](const char* kinds) {
    return IsQuantizedChain(RandomChain(kinds, random).Params());
  };
  const bool has_vectors = FloatLanes() > 1;  // there are no chains without
  EXPECT_EQ(is_one("pd"), has_vectors);
  EXPECT_EQ(is_one("pdp"), has_vectors);
  EXPECT_FALSE(is_one("p"));
  EXPECT_FALSE(is_one("dd"));
  EXPECT_FALSE(is_one("pp"));
  EXPECT_FALSE(is_one("dpd"));
  std::vector<QuantizedConvParams> chain = RandomChain("pd", random).Params();
  chain[0].has_addend = true;
  EXPECT_FALSE(IsQuantizedChain(chain));
  chain[0].has_addend = false;
  chain[1].to_float = true;
  EXPECT_FALSE(IsQuantizedChain(chain));
  chain[1].to_float = false;
  chain[0].conv.stride_w = 2;
  EXPECT_FALSE(IsQuantizedChain(chain));
}

TEST(QuantizedConvChain, StreamsWhatIsLargeAndThin) {
  if (FloatLanes() == 1) return;  // nothing is
  std::mt19937 random(24);
  const auto params = [&](const char* kinds, std::int64_t channels, std::int64_t width,
                          std::int64_t stride) {
    std::vector<QuantizedConvParams> chain = RandomChain(kinds, random).Params();
    for (QuantizedConvParams& c : chain) {
      ConvParams& p = c.conv;
      if (p.groups > 1) {
        p.kernel_h = p.kernel_w = 3;
        p.stride_h = p.stride_w = stride;
      } else {
        p.in_channels = channels;
      }
      p.in_height = p.in_width = p.out_height = p.out_width = width;
    }
    return chain;
  };
  EXPECT_TRUE(StreamsWell(params("pd", 16, 64, 2)));
  EXPECT_FALSE(StreamsWell(params("pd", 64, 64, 2)));
  EXPECT_FALSE(StreamsWell(params("pd", 16, 16, 2)));
  EXPECT_TRUE(StreamsWell(params("pdp", 16, 64, 1)));
  EXPECT_FALSE(StreamsWell(params("pdp", 16, 64, 2)));
  EXPECT_TRUE(StreamsWell(params("dp", 16, 256, 1)));
  EXPECT_FALSE(StreamsWell(params("dp", 16, 16, 1)));
  EXPECT_FALSE(StreamsWell(params("pp", 16, 64, 1)));
}

}  // namespace
}  // namespace tessera
