#include "ops/conv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "ops/reorder.h"
#include "simd/cpu_target.h"
#include "tests/ops/conv_test_util.h"

namespace tessera {
namespace {

struct ConvCase {
  Shape x, w;
  std::vector<std::int64_t> strides = {1, 1}, dilations = {1, 1}, pads = {0, 0, 0, 0};
  std::int64_t groups = 1;
  bool bias = true;
  Epilogue epilogue = {};
};

OpNode MakeNode(const ConvCase& c) {
  OpNode node{.name = "conv", .type = "FusedConv", .opset = 17, .attributes = {}};
  node.attributes.Set("strides", c.strides);
  node.attributes.Set("dilations", c.dilations);
  node.attributes.Set("pads", c.pads);
  node.attributes.Set("group", c.groups);
  WriteEpilogue(c.epilogue, node.attributes);
  return node;
}

std::string Describe(const ConvCase& c) {
  const ConvParams p = ReadConvParams(MakeNode(c), c.x, c.w);
  return StrCat("X ", c.x, " W ", c.w, " strides ", p.stride_h, ' ', p.stride_w, " dilations ",
                p.dilation_h, ' ', p.dilation_w, " pads ", p.pad_top, ' ', p.pad_left, ' ',
                p.pad_bottom, ' ', p.pad_right, " groups ", p.groups, " activation ",
                static_cast<int>(p.epilogue.activation), " combine ",
                static_cast<int>(p.epilogue.combine));
}

Tensor ToLayout(const Tensor& t, Layout layout) {
  if (t.layout() == layout) return t.Clone();
  Tensor out(t.dtype(), t.shape(), layout);
  RunKernel(*MakeReorder(t.shape(), t.layout(), layout), {t.view()}, out, 1);
  return out;
}

// The channels that pad the last block of a blocked tensor hold undefined values.
void SpoilPadding(Tensor& t) {
  const BlockedLayout b(t.shape());
  for (std::int64_t n = 0; n < b.images; ++n) {
    for (std::int64_t c = b.channels; c < b.blocks * b.lanes; ++c) {
      for (std::int64_t y = 0; y < b.height; ++y) {
        for (std::int64_t x = 0; x < b.width; ++x) {
          t.data<float>()[n * b.image_stride + c / b.lanes * b.plane_stride + y * b.row_stride +
                          x * b.lanes + c % b.lanes] = std::nanf("");
        }
      }
    }
  }
}

// Operands of a case: X, W, B, slope, addend as the node has them.
struct Operands {
  ConvCase c;
  Shape out;
  Tensor x, addend;
  std::shared_ptr<const Tensor> w, bias, slope;
};

Operands MakeOperands(const ConvCase& c, std::mt19937& random) {
  const ConvParams p = ReadConvParams(MakeNode(c), c.x, c.w);
  Operands o{.c = c,
             .out = c.x.rank() == 3 ? Shape{p.batch, p.out_channels, p.out_width}
                                    : Shape{p.batch, p.out_channels, p.out_height, p.out_width},
             .x = RandomTensor(c.x, random),
             .addend = {},
             .w = std::make_shared<Tensor>(RandomTensor(c.w, random)),
             .bias = nullptr,
             .slope = nullptr};
  if (c.bias) o.bias = std::make_shared<Tensor>(RandomTensor({p.out_channels}, random));
  if (c.epilogue.activation == Activation::kPRelu) {
    o.slope = std::make_shared<Tensor>(
        RandomTensor({random() % 3 == 0 ? 1 : p.out_channels, 1, 1}, random));
  }
  if (c.epilogue.combine != Combine::kNone) o.addend = RandomTensor(o.out, random);
  return o;
}

std::vector<TensorView> Views(const Operands& o, const TensorView& x, const TensorView& addend) {
  return {x, o.w->view(), o.bias ? o.bias->view() : TensorView{},
          o.slope ? o.slope->view() : TensorView{}, addend};
}

// The result by the plain kernel.
Tensor Expected(const Operands& o) {
  Tensor out(DType::kFloat32, o.out);
  RunKernel(*MakeReferenceConv(ReadConvParams(MakeNode(o.c), o.c.x, o.c.w)),
            Views(o, o.x.view(), o.addend.view()), out, 1);
  return out;
}

// Largest difference, relative to the error that sums of that many terms may have.
void ExpectClose(const Tensor& got, const Tensor& wanted, const ConvCase& c,
                 const std::string& what) {
  const auto terms = static_cast<double>(c.w.NumElements(1, c.w.rank()));
  const double tolerance = 2e-6 * (1 + std::sqrt(terms));
  const auto a = got.values<float>(), b = wanted.values<float>();
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(a[i], b[i], tolerance * (1 + std::abs(b[i])))
        << what << ' ' << Describe(c) << ", element " << i;
  }
}

// Runs `kernel` on the operands in these layouts, with 1 and 3 threads, and compares.
void Check(const Kernel& kernel, const Operands& o, Layout in, Layout out) {
  const std::string what = StrCat(kernel.name(), " on ", CpuTargetName(),
                                  in == Layout::kBlocked ? " blocked" : " planar",
                                  out == Layout::kBlocked ? " -> blocked" : " -> planar");
  const Tensor wanted = Expected(o);
  Tensor x = ToLayout(o.x, in);
  if (in == Layout::kBlocked) SpoilPadding(x);
  Tensor first;
  for (int threads : {1, 3}) {
    Tensor addend = o.addend.view().present() ? ToLayout(o.addend, out) : Tensor();
    if (addend.view().present() && out == Layout::kBlocked) SpoilPadding(addend);
    Tensor result(DType::kFloat32, o.out, out);
    RunKernel(kernel, Views(o, x.view(), addend.view()), result, threads);
    Tensor planar = ToLayout(result, Layout::kRowMajor);
    ASSERT_NO_FATAL_FAILURE(ExpectClose(planar, wanted, o.c, what));
    if (threads == 1) {
      first = std::move(planar);
      if (addend.view().present() && kernel.CanOverwriteInput(kConvAddend)) {
        RunKernel(kernel, Views(o, x.view(), addend.view()), addend, threads);
        ASSERT_NO_FATAL_FAILURE(
            ExpectClose(ToLayout(addend, Layout::kRowMajor), wanted, o.c, what + " in place"));
      }
    } else {
      ASSERT_TRUE(std::equal(first.values<float>().begin(), first.values<float>().end(),
                             planar.values<float>().begin()))
          << what << " depends on the number of threads, " << Describe(o.c);
    }
  }
}

ConvConstants Constants(const Operands& o) { return {o.w, o.bias, o.slope}; }

ConvParams Params(const ConvCase& c) { return ReadConvParams(MakeNode(c), c.x, c.w); }

constexpr Layout kLayouts[] = {Layout::kRowMajor, Layout::kBlocked};

// A case of random geometry; groups and channels as given.
ConvCase RandomCase(std::int64_t groups, std::int64_t in, std::int64_t out, std::mt19937& random) {
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  ConvCase c;
  c.groups = groups;
  c.w = {out, in / groups, pick(1, 4), pick(1, 4)};
  c.strides = {pick(1, 3), pick(1, 3)};
  c.dilations = {pick(1, 2), pick(1, 3)};
  c.pads = {pick(0, 4), pick(0, 4), pick(0, 4), pick(0, 4)};
  const std::int64_t height = (c.w[2] - 1) * c.dilations[0] + 1;
  const std::int64_t width = (c.w[3] - 1) * c.dilations[1] + 1;
  c.x = {pick(1, 2), in, std::max<std::int64_t>(1, height - c.pads[0] - c.pads[2]) + pick(0, 12),
         std::max<std::int64_t>(1, width - c.pads[1] - c.pads[3]) + pick(0, 45)};
  c.bias = pick(0, 3) != 0;
  c.epilogue = {.activation = static_cast<Activation>(pick(0, 8)),
                .alpha = 0.2f,
                .beta = 0.7f,
                .combine = static_cast<Combine>(pick(0, 2)),
                .scale = 0.3f};
  return c;
}

class ConvKernelTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(ForceCpuTarget(GetParam())); }
  void TearDown() override { ForceCpuTarget(AvailableCpuTargets().front()); }

  std::mt19937 random_{20240607};
};

TEST_P(ConvKernelTest, DirectAgreesWithReference) {
  const std::int64_t channels[] = {1, 3, 4, 7, 16, 20, 33, 48, 64};
  for (int i = 0; i < 120; ++i) {
    const ConvCase c = RandomCase(1, channels[random_() % 9], channels[random_() % 9], random_);
    const Operands o = MakeOperands(c, random_);
    for (Layout in : kLayouts) {
      for (Layout out : kLayouts) {
        PackCache packs;
        ASSERT_NO_FATAL_FAILURE(
            Check(*MakeDirectConv(Params(c), Constants(o), in, out, packs), o, in, out));
      }
    }
  }
}

TEST_P(ConvKernelTest, DirectAgreesWithReferenceInGroups) {
  const std::int64_t lanes = FloatLanes();
  for (int i = 0; i < 30; ++i) {
    const std::int64_t groups = 2 + static_cast<std::int64_t>(random_() % 3);
    const std::int64_t in = lanes * (1 + static_cast<std::int64_t>(random_() % 2));
    const std::int64_t out = lanes * (1 + static_cast<std::int64_t>(random_() % 4));
    const ConvCase c = RandomCase(groups, groups * in, groups * out, random_);
    const Operands o = MakeOperands(c, random_);
    for (Layout layout : kLayouts) {
      PackCache packs;
      ASSERT_NO_FATAL_FAILURE(Check(*MakeDirectConv(Params(c), Constants(o), layout, layout, packs),
                                    o, layout, layout));
    }
  }
}

TEST_P(ConvKernelTest, PlanarAgreesWithReference) {
  const std::int64_t channels[] = {1, 2, 3, 4, 5, 7, 12, 33};
  for (int i = 0; i < 100; ++i) {
    const std::int64_t groups = i % 2 == 0 ? 1 : 1 + static_cast<std::int64_t>(random_() % 4);
    const ConvCase c = RandomCase(groups, groups * channels[random_() % 8],
                                  groups * channels[random_() % 7], random_);
    const Operands o = MakeOperands(c, random_);
    for (Layout in : kLayouts) {
      if (in == Layout::kBlocked && groups != 1) continue;
      PackCache packs;
      ASSERT_NO_FATAL_FAILURE(
          Check(*MakePlanarConv(Params(c), Constants(o), in, packs), o, in, Layout::kRowMajor));
    }
  }
}

TEST_P(ConvKernelTest, DepthwiseAgreesWithReference) {
  const std::int64_t channels[] = {1, 3, 16, 20, 33, 64};
  for (int i = 0; i < 150; ++i) {
    const std::int64_t count = channels[random_() % 6];
    const ConvCase c = RandomCase(count, count, count, random_);
    const Operands o = MakeOperands(c, random_);
    PackCache packs;
    ASSERT_NO_FATAL_FAILURE(Check(*MakeDepthwiseConv(Params(c), Constants(o), packs), o,
                                  Layout::kBlocked, Layout::kBlocked));
  }
}

// Large enough to be cut into tiles along every axis.
TEST_P(ConvKernelTest, TilesMeetWithoutASeam) {
  for (const ConvCase& c :
       {ConvCase{.x = {1, 64, 20, 700}, .w = {32, 64, 3, 3}, .pads = {1, 1, 1, 1}},
        ConvCase{
            .x = {1, 64, 61, 300}, .w = {3, 64, 3, 3}, .strides = {1, 2}, .pads = {1, 1, 1, 1}},
        ConvCase{.x = {1, 256, 5, 5}, .w = {130, 256, 3, 3}, .pads = {1, 1, 1, 1}},
        ConvCase{.x = {1, 96, 40, 64}, .w = {48, 96, 1, 1}},
        ConvCase{.x = {1, 8, 100, 120},
        .w = {16, 8, 5, 5},
        .dilations = {3, 4},
        .pads = {6, 8, 6, 8}}}) {
    const Operands o = MakeOperands(c, random_);
    for (Layout in : kLayouts) {
      PackCache packs;
      for (Layout out : kLayouts) {
        ASSERT_NO_FATAL_FAILURE(
            Check(*MakeDirectConv(Params(c), Constants(o), in, out, packs), o, in, out));
      }
      ASSERT_NO_FATAL_FAILURE(
          Check(*MakePlanarConv(Params(c), Constants(o), in, packs), o, in, Layout::kRowMajor));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, ConvKernelTest, testing::ValuesIn(AvailableCpuTargets()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tessera
