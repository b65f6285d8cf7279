#include "ops/conv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <optional>
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

// What pads a blocked tensor holds undefined values: channels of the last block, and the ends of
// rows and planes.
void SpoilPadding(Tensor& t) {
  const BlockedLayout b(t.shape());
  const float nan = std::nanf("");
  for (std::int64_t i = 0; i < b.images * b.blocks; ++i) {
    float* plane = t.data<float>() + i * b.plane_stride;
    for (std::int64_t y = 0; y < b.height; ++y) {
      std::fill(plane + y * b.row_stride + b.width * b.lanes, plane + (y + 1) * b.row_stride, nan);
    }
    std::fill(plane + b.height * b.row_stride, plane + b.plane_stride, nan);
  }
  for (std::int64_t n = 0; n < b.images; ++n) {
    for (std::int64_t c = b.channels; c < b.blocks * b.lanes; ++c) {
      for (std::int64_t y = 0; y < b.height; ++y) {
        for (std::int64_t x = 0; x < b.width; ++x) {
          t.data<float>()[n * b.image_stride + c / b.lanes * b.plane_stride + y * b.row_stride +
                          x * b.lanes + c % b.lanes] = nan;
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
  Tensor wanted;  // by the plain kernel
};

std::vector<TensorView> Views(const Operands& o, const TensorView& x, const TensorView& addend) {
  return {x, o.w->view(), o.bias ? o.bias->view() : TensorView{},
          o.slope ? o.slope->view() : TensorView{}, addend};
}

Operands MakeOperands(const ConvCase& c, std::mt19937& random) {
  const ConvParams p = ReadConvParams(MakeNode(c), c.x, c.w);
  Operands o{.c = c,
             .out = c.x.rank() == 3 ? Shape{p.batch, p.out_channels, p.out_width}
                                    : Shape{p.batch, p.out_channels, p.out_height, p.out_width},
             .x = RandomTensor(c.x, random),
             .addend = {},
             .w = std::make_shared<Tensor>(RandomTensor(c.w, random)),
             .bias = nullptr,
             .slope = nullptr,
             .wanted = {}};
  if (c.bias) o.bias = std::make_shared<Tensor>(RandomTensor({p.out_channels}, random));
  if (c.epilogue.activation == Activation::kPRelu) {
    o.slope = std::make_shared<Tensor>(
        RandomTensor({random() % 3 == 0 ? 1 : p.out_channels, 1, 1}, random));
  }
  if (c.epilogue.combine != Combine::kNone) o.addend = RandomTensor(o.out, random);
  o.wanted = Tensor(DType::kFloat32, o.out);
  RunKernel(*MakeReferenceConv(p), Views(o, o.x.view(), o.addend.view()), o.wanted, 2);
  return o;
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
  Tensor x = ToLayout(o.x, in);
  if (in == Layout::kBlocked) SpoilPadding(x);
  Tensor first;
  for (int threads : {1, 3}) {
    Tensor addend = o.addend.view().present() ? ToLayout(o.addend, out) : Tensor();
    if (addend.view().present() && out == Layout::kBlocked) SpoilPadding(addend);
    Tensor result(DType::kFloat32, o.out, out);
    RunKernel(kernel, Views(o, x.view(), addend.view()), result, threads);
    Tensor planar = ToLayout(result, Layout::kRowMajor);
    ASSERT_NO_FATAL_FAILURE(ExpectClose(planar, o.wanted, o.c, what));
    if (threads == 1) {
      first = std::move(planar);
      if (addend.view().present() && kernel.CanOverwriteInput(kConvAddend)) {
        RunKernel(kernel, Views(o, x.view(), addend.view()), addend, threads);
        ASSERT_NO_FATAL_FAILURE(
            ExpectClose(ToLayout(addend, Layout::kRowMajor), o.wanted, o.c, what + " in place"));
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

class ConvKernelTest : public TargetTest {};

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

// Layers of one tap run over the rows of blocked tensors as one, whatever lies between them.
TEST_P(ConvKernelTest, DirectAgreesWithReferenceOnPointwiseLayers) {
  const std::int64_t channels[] = {3, 16, 24, 33, 40, 96};
  const std::int64_t widths[] = {1, 5, 16, 31, 64, 128};
  for (int i = 0; i < 60; ++i) {
    const std::int64_t in = channels[random_() % 6], out = channels[random_() % 6];
    ConvCase c = RandomCase(1, in, out, random_);
    c.x = {1 + i % 2, in, 1 + static_cast<std::int64_t>(random_() % 20), widths[random_() % 6]};
    c.w = {out, in, 1, 1};
    c.strides = c.dilations = {1, 1};
    c.pads = {0, 0, 0, 0};
    const Operands o = MakeOperands(c, random_);
    for (Layout in_layout : kLayouts) {
      for (Layout out_layout : kLayouts) {
        PackCache packs;
        const auto kernel = MakeDirectConv(Params(c), Constants(o), in_layout, out_layout, packs);
        ASSERT_NO_FATAL_FAILURE(Check(*kernel, o, in_layout, out_layout));
      }
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
    PackCache packs;
    ASSERT_NO_FATAL_FAILURE(Check(*MakePlanarConv(Params(c), Constants(o), packs), o,
                                  Layout::kRowMajor, Layout::kRowMajor));
  }
}

TEST_P(ConvKernelTest, DotAgreesWithReference) {
  const std::int64_t channels[] = {1, 3, 5, 16, 20, 33, 64};
  for (int i = 0; i < 100; ++i) {
    const auto out = 1 + static_cast<std::int64_t>(random_() % 8);
    const ConvCase c = RandomCase(1, channels[random_() % 7], out, random_);
    const Operands o = MakeOperands(c, random_);
    PackCache packs;
    ASSERT_NO_FATAL_FAILURE(Check(*MakeDotConv(Params(c), Constants(o), packs), o, Layout::kBlocked,
                                  Layout::kRowMajor));
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
    }
    PackCache packs;
    ASSERT_NO_FATAL_FAILURE(Check(*MakePlanarConv(Params(c), Constants(o), packs), o,
                                  Layout::kRowMajor, Layout::kRowMajor));
    ASSERT_NO_FATAL_FAILURE(Check(*MakeDotConv(Params(c), Constants(o), packs), o, Layout::kBlocked,
                                  Layout::kRowMajor));
  }
}

// A convolution that does nothing leaves the epilogue alone with the values that break shortcuts.
TEST_P(ConvKernelTest, EpiloguesTreatSpecialValuesAsTheReferenceDoes) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {
      std::nanf(""), inf, -inf, 0, -0.f, 1e30f, -1e30f, 1e-40f, -1e-40f, 88,
      -88,           104, -104, 3, -3,   1,     -1,     0.2f,   0.7f};
  const auto width = static_cast<std::int64_t>(values.size());
  for (int activation = 0; activation <= 8; ++activation) {
    for (const Combine combine : {Combine::kNone, Combine::kAdd, Combine::kGate}) {
      const ConvCase c{.x = {1, 1, 1, width},
                       .w = {1, 1, 1, 1},
                       .bias = false,
                       .epilogue = {.activation = static_cast<Activation>(activation),
                                    .alpha = 0.2f,
                                    .beta = 0.7f,
                                    .combine = combine}};
      Operands o = MakeOperands(c, random_);
      o.x = Tensor::FromVector(c.x, values);
      o.w = std::make_shared<Tensor>(Tensor::FromVector<float>(c.w, {1}));
      RunKernel(*MakeReferenceConv(Params(c)), Views(o, o.x.view(), o.addend.view()), o.wanted, 1);
      PackCache packs;
      const auto check = [&](const Kernel& kernel, Layout in_layout, Layout layout) {
        Tensor out(DType::kFloat32, o.out, layout);
        const Tensor x = ToLayout(o.x, in_layout);
        const Tensor addend = o.addend.view().present() ? ToLayout(o.addend, layout) : Tensor();
        RunKernel(kernel, Views(o, x.view(), addend.view()), out, 1);
        const Tensor got = ToLayout(out, Layout::kRowMajor);
        for (std::int64_t i = 0; i < width; ++i) {
          const float a = got.data<float>()[i], b = o.wanted.data<float>()[i];
          if (a == b || (std::isnan(a) && std::isnan(b))) continue;
          ASSERT_NEAR(a, b, 1e-6 * std::max(1.f, std::abs(b)))
              << kernel.name() << " of " << values[static_cast<std::size_t>(i)] << ", "
              << Describe(c);
        }
      };
      for (Layout layout : kLayouts) {
        check(*MakeDirectConv(Params(c), Constants(o), layout, layout, packs), layout, layout);
      }
      check(*MakePlanarConv(Params(c), Constants(o), packs), Layout::kRowMajor, Layout::kRowMajor);
      check(*MakeDotConv(Params(c), Constants(o), packs), Layout::kBlocked, Layout::kRowMajor);
      check(*MakeDepthwiseConv(Params(c), Constants(o), packs), Layout::kBlocked, Layout::kBlocked);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, ConvKernelTest, testing::ValuesIn(AvailableCpuTargets()),
                         [](const auto& test) { return test.param; });

// What the plain kernel itself computes, by hand.

TEST(ReferenceConv, ComputesASmallConvolution) {
  const ConvCase c{.x = {1, 1, 3, 3}, .w = {1, 1, 2, 2}, .pads = {1, 0, 0, 0}};
  const Tensor x = Tensor::FromVector<float>(c.x, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Tensor w = Tensor::FromVector<float>(c.w, {1, 10, 100, 1000});
  const Tensor b = Tensor::FromVector<float>({1}, {0.5f});
  Tensor out(DType::kFloat32, {1, 1, 3, 2});
  RunKernel(*MakeReferenceConv(Params(c)), {x.view(), w.view(), b.view()}, out, 1);
  EXPECT_THAT(out.values<float>(),
              testing::ElementsAre(2100.5f, 3200.5f, 5421.5f, 6532.5f, 8754.5f, 9865.5f));
}

TEST(ReferenceConv, SeparatesGroupsAndStridesAndDilates) {
  const ConvCase c{
      .x = {1, 2, 1, 7}, .w = {2, 1, 1, 2}, .strides = {1, 2}, .dilations = {1, 3}, .groups = 2};
  const Tensor x =
      Tensor::FromVector<float>(c.x, {1, 2, 3, 4, 5, 6, 7, 10, 20, 30, 40, 50, 60, 70});
  const Tensor w = Tensor::FromVector<float>(c.w, {1, -1, 2, 1});
  Tensor out(DType::kFloat32, {1, 2, 1, 2});
  RunKernel(*MakeReferenceConv(Params(c)), {x.view(), w.view()}, out, 1);
  EXPECT_THAT(out.values<float>(), testing::ElementsAre(-3, -3, 60, 120));
}

TEST(ReferenceConv, ComputesInTheTypeOfX) {
  const ConvCase c{.x = {1, 1, 1, 2}, .w = {1, 1, 1, 2}};
  const Tensor x = Tensor::FromVector<double>(c.x, {1e-30, 1});
  const Tensor w = Tensor::FromVector<double>(c.w, {1, 1e-30});
  Tensor out(DType::kFloat64, {1, 1, 1, 1});
  RunKernel(*MakeReferenceConv(Params(c)), {x.view(), w.view()}, out, 1);
  EXPECT_DOUBLE_EQ(out.data<double>()[0], 2e-30);
}

TEST(Epilogue, DoesWhatItsNamesSay) {
  const auto f = [](Activation a, double x) {
    return ApplyEpilogue({.activation = a, .alpha = 0.25f, .beta = 0.5f}, x, 3, 0);
  };
  EXPECT_EQ(f(Activation::kNone, -2), -2);
  EXPECT_EQ(f(Activation::kRelu, -2), 0);
  EXPECT_EQ(f(Activation::kRelu, 2), 2);
  EXPECT_EQ(f(Activation::kLeakyRelu, -2), -0.5);
  EXPECT_EQ(f(Activation::kPRelu, -2), -6);
  EXPECT_EQ(f(Activation::kPRelu, 2), 2);
  EXPECT_EQ(f(Activation::kClip, -2), 0.25);
  EXPECT_EQ(f(Activation::kClip, 2), 0.5);
  EXPECT_DOUBLE_EQ(f(Activation::kSigmoid, 0), 0.5);
  EXPECT_DOUBLE_EQ(f(Activation::kSilu, 1), 1 / (1 + std::exp(-1.0)));
  EXPECT_EQ(f(Activation::kHardSigmoid, 1), 0.75);
  EXPECT_EQ(f(Activation::kHardSigmoid, 9), 1);
  EXPECT_EQ(f(Activation::kHardSwish, -3), 0);
  EXPECT_EQ(f(Activation::kHardSwish, 4), 4);
  EXPECT_EQ(ApplyEpilogue({.activation = Activation::kRelu, .combine = Combine::kAdd, .scale = 2},
                          5, 0, 1),
            11);
  EXPECT_DOUBLE_EQ(ApplyEpilogue({.combine = Combine::kGate}, 2, 0, 3),
                   5 * (1 / (1 + std::exp(-2.0)) - 0.5));
}

TEST(Epilogue, SurvivesItsAttributes) {
  const Epilogue e{.activation = Activation::kHardSigmoid,
                   .alpha = 0.2f,
                   .beta = 0.4f,
                   .combine = Combine::kGate,
                   .scale = 3};
  OpNode node{.name = "n", .type = "FusedConv", .opset = 17, .attributes = {}};
  WriteEpilogue(e, node.attributes);
  const Epilogue r = ReadEpilogue(node);
  EXPECT_EQ(r.activation, e.activation);
  EXPECT_EQ(r.combine, e.combine);
  EXPECT_EQ(r.alpha, e.alpha);
  EXPECT_EQ(r.beta, e.beta);
  EXPECT_EQ(r.scale, e.scale);
  node.attributes.Set("activation", std::string("Softmax"));
  EXPECT_THROW(ReadEpilogue(node), Error);
  node.type = "Conv";
  EXPECT_EQ(ReadEpilogue(node).combine, Combine::kNone);
}

}  // namespace
}  // namespace tessera
