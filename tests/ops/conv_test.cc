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

Tensor ToLayout(const Tensor& t, Layout layout) {
  if (t.layout() == layout) return t.Clone();
  Tensor out(t.dtype(), t.shape(), layout);
  RunKernel(*MakeReorder(t.shape(), t.layout(), layout), {t.view()}, out, 1);
  return out;
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

// The operator as the engine uses it: infer, layouts, prepare, run.

class ConvOp {
 public:
  explicit ConvOp(std::string_view type) : node_{"c", std::string(type), 17, {}} {}

  Attributes& attributes() { return node_.attributes; }
  void AddInput(Tensor t, bool constant) {
    auto shared = std::make_shared<Tensor>(std::move(t));
    infos_.push_back({.present = true,
                      .dtype = shared->dtype(),
                      .shape = shared->shape(),
                      .layout = Layout::kRowMajor,
                      .constant = constant ? shared : nullptr});
    tensors_.push_back(std::move(shared));
  }
  void OmitInput() {
    infos_.push_back({});
    tensors_.push_back(std::make_shared<Tensor>());
  }
  TensorInfo& info(std::size_t i) { return infos_[i]; }

  Shape Infer() {
    outputs_.assign(1, {});
    def_.infer({node_, infos_, outputs_});
    return outputs_[0].shape;
  }
  // Runs it in the layouts that it asks for, or as the plain kernel; the result is row-major.
  Tensor Run(bool reference = false) {
    Infer();
    LayoutChoice choice;
    if (!reference) choice = def_.layouts({node_, infos_, outputs_});
    choice.inputs.resize(infos_.size(), Layout::kRowMajor);
    choice.outputs.resize(1, Layout::kRowMajor);
    std::vector<TensorInfo> infos = infos_;
    std::vector<Tensor> memory;
    std::vector<TensorView> views;
    for (std::size_t i = 0; i < infos.size(); ++i) {
      infos[i].layout = choice.inputs[i];
      memory.push_back(infos[i].present ? ToLayout(*tensors_[i], choice.inputs[i]) : Tensor());
      views.push_back(memory.back().view());
    }
    outputs_[0].layout = choice.outputs[0];
    PackCache packs;
    const auto kernel = def_.prepare({node_, infos, outputs_, packs, reference});
    kernel_name_ = kernel->name();
    Tensor out(outputs_[0].dtype, outputs_[0].shape, choice.outputs[0]);
    RunKernel(*kernel, views, out, 2);
    return ToLayout(out, Layout::kRowMajor);
  }
  // The kernel that the last Run took.
  const std::string& kernel_name() const { return kernel_name_; }
  std::optional<SpatialField> Field(std::size_t input) {
    Infer();
    return def_.field({node_, infos_, outputs_}, input);
  }

 private:
  OpNode node_;
  const OpDef& def_ = *FindOp(node_.type);
  std::vector<TensorInfo> infos_;
  std::vector<std::shared_ptr<Tensor>> tensors_;
  std::vector<TensorInfo> outputs_;
  std::string kernel_name_;
};

struct OpCase {
  Shape x, w;
  std::int64_t groups;
  const char* kernel;  // that has to be taken on targets of 16 lanes
  std::vector<std::int64_t> pads = {};
};

class ConvOpTest : public ConvKernelTest {};

TEST_P(ConvOpTest, AgreesWithItsPlainKernelWhateverIsChosen) {
  const OpCase cases[] = {
      {{1, 3, 20, 30}, {64, 3, 3, 3}, 1, "conv3x3_direct", {1, 1, 1, 1}},
      {{2, 64, 20, 30}, {3, 64, 3, 3}, 1, "conv3x3_planar", {1, 1, 1, 1}},
      {{1, 64, 9, 9}, {48, 64, 1, 1}, 1, "conv1x1_direct"},
      {{1, 40, 17, 9}, {40, 1, 5, 5}, 40, "conv5x5_depthwise", {2, 2, 2, 2}},
      {{1, 64, 9, 11}, {32, 32, 3, 3}, 2, "conv3x3_direct", {1, 0, 0, 1}},
      {{1, 12, 9, 11}, {18, 2, 3, 3}, 6, "conv3x3_planar", {1, 1, 1, 1}},
      {{1, 5, 70}, {7, 5, 3}, 1, "conv1x3_planar", {1, 1}},
      {{1, 5, 70}, {40, 5, 3}, 1, "conv1x3_direct", {1, 1}},
      {{1, 6, 33}, {6, 1, 4}, 6, "conv1x4_planar", {0, 2}},
      {{0, 4, 8, 8}, {8, 4, 3, 3}, 1, "conv3x3_planar"},
      {{0, 64, 8, 8}, {64, 64, 1, 1}, 1, "conv1x1_direct"},
      {{0, 64, 8, 8}, {64, 1, 3, 3}, 64, "conv3x3_depthwise"},
      // No tile of it fits into memory.
      {{1, 1, 2, 2}, {1, 1, 2, 2}, 1, "conv_gemm", {1 << 28, 0, 0, 0}},
  };
  for (const OpCase& c : cases) {
    ConvOp op("Conv");
    op.attributes().Set("group", c.groups);
    if (!c.pads.empty()) op.attributes().Set("pads", c.pads);
    if (c.pads.size() == 4 && c.pads[0] == 1 << 28) {
      op.attributes().Set("dilations", std::vector<std::int64_t>{1 << 28, 1});
    }
    op.AddInput(RandomTensor(c.x, random_), false);
    op.AddInput(RandomTensor(c.w, random_), true);
    op.AddInput(RandomTensor({c.w[0]}, random_), true);
    const Tensor got = op.Run();
    if (FloatLanes() == 16) {
      EXPECT_EQ(op.kernel_name(), c.kernel) << c.x << " * " << c.w;
    }
    const Tensor wanted = op.Run(true);
    EXPECT_EQ(op.kernel_name(), "conv_reference");
    ASSERT_EQ(got.shape(), wanted.shape());
    for (std::int64_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got.data<float>()[i], wanted.data<float>()[i], 1e-4) << c.x << " * " << c.w;
    }
  }
}

// As where the features of one picture are looked for in those of another.
TEST_P(ConvOpTest, WeightsOfDepthwiseLayersMayBeComputed) {
  for (const std::int64_t channels : {3, 40, 96}) {
    for (const std::int64_t batch : {1, 2}) {
      ConvOp op("Conv");
      op.attributes().Set("group", channels);
      op.attributes().Set("pads", std::vector<std::int64_t>{1, 2, 1, 0});
      op.AddInput(RandomTensor({batch, channels, 16, 17}, random_), false);
      op.AddInput(RandomTensor({channels, 1, 4, 4}, random_), false);
      if (channels != 96) op.AddInput(RandomTensor({channels}, random_), true);
      const Tensor got = op.Run();
      EXPECT_EQ(op.kernel_name(), "conv4x4_depthwise");
      const Tensor wanted = op.Run(true);
      ASSERT_EQ(got.shape(), wanted.shape());
      for (std::int64_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got.data<float>()[i], wanted.data<float>()[i], 1e-4) << channels;
      }
    }
  }
  // A computed bias is for the general kernel.
  ConvOp op("Conv");
  op.attributes().Set("group", std::int64_t{40});
  op.AddInput(RandomTensor({1, 40, 9, 9}, random_), false);
  op.AddInput(RandomTensor({40, 1, 3, 3}, random_), false);
  op.AddInput(RandomTensor({40}, random_), false);
  const Tensor got = op.Run();
  EXPECT_EQ(op.kernel_name(), "conv_gemm");
  const Tensor wanted = op.Run(true);
  for (std::int64_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got.data<float>()[i], wanted.data<float>()[i], 1e-4);
}

// Few output channels: the input is taken in the layout that it has.
TEST_P(ConvOpTest, TakesBlockedInputOfNarrowLayers) {
  ConvOp op("Conv");
  op.AddInput(RandomTensor({2, 40, 11, 30}, random_), false);
  op.AddInput(RandomTensor({2, 40, 3, 3}, random_), true);
  op.info(0).layout = Layout::kBlocked;
  const Tensor got = op.Run();
  if (FloatLanes() >= 4) {
    EXPECT_EQ(op.kernel_name(), "conv3x3_dot");
  }
  const Tensor wanted = op.Run(true);
  for (std::int64_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got.data<float>()[i], wanted.data<float>()[i], 1e-4);
  }
}

TEST_P(ConvOpTest, TakesHalfPrecisionWeights) {
  ConvOp op("Conv");
  Tensor w(DType::kFloat16, {32, 16, 3, 3});
  for (std::int64_t i = 0; i < w.size(); ++i) {
    w.data<std::uint16_t>()[i] = FloatToHalf(static_cast<float>(i % 17) / 16 - 0.5f);
  }
  op.AddInput(RandomTensor({1, 16, 12, 12}, random_), false);
  op.AddInput(std::move(w), true);
  const Tensor got = op.Run(), wanted = op.Run(true);
  for (std::int64_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got.data<float>()[i], wanted.data<float>()[i], 1e-4);
  }
}

TEST_P(ConvOpTest, RunsWithWeightsThatAreNoConstants) {
  ConvOp op("Conv");
  op.AddInput(RandomTensor({1, 16, 12, 12}, random_), false);
  op.AddInput(RandomTensor({16, 16, 3, 3}, random_), false);
  const Tensor got = op.Run();
  EXPECT_EQ(op.kernel_name(), "conv_gemm");
  const Tensor wanted = op.Run(true);
  for (std::int64_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got.data<float>()[i], wanted.data<float>()[i], 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, ConvOpTest, testing::ValuesIn(AvailableCpuTargets()),
                         [](const auto& test) { return test.param; });

// Shapes and pads by the specification.

ConvParams ReadAutoPad(const char* auto_pad, std::int64_t size, std::int64_t kernel,
                       std::int64_t stride, std::int64_t dilation) {
  OpNode node{"c", "Conv", 17, {}};
  node.attributes.Set("auto_pad", std::string(auto_pad));
  node.attributes.Set("strides", std::vector<std::int64_t>{stride, stride});
  node.attributes.Set("dilations", std::vector<std::int64_t>{dilation, dilation});
  return ReadConvParams(node, {1, 2, size, size}, {4, 2, kernel, kernel});
}

TEST(ConvParams, AutoPad) {
  ConvParams p = ReadAutoPad("SAME_UPPER", 10, 4, 1, 1);
  EXPECT_EQ(p.out_height, 10);
  EXPECT_EQ(p.pad_top, 1);
  EXPECT_EQ(p.pad_bottom, 2);
  p = ReadAutoPad("SAME_LOWER", 10, 4, 1, 1);
  EXPECT_EQ(p.pad_left, 2);
  EXPECT_EQ(p.pad_right, 1);
  p = ReadAutoPad("SAME_UPPER", 9, 3, 2, 1);
  EXPECT_EQ(p.out_width, 5);
  EXPECT_EQ(p.pad_left, 1);
  EXPECT_EQ(p.pad_right, 1);
  p = ReadAutoPad("SAME_UPPER", 10, 3, 2, 1);
  EXPECT_EQ(p.out_width, 5);
  EXPECT_EQ(p.pad_left, 0);
  EXPECT_EQ(p.pad_right, 1);
  p = ReadAutoPad("SAME_UPPER", 10, 3, 1, 3);
  EXPECT_EQ(p.out_width, 10);
  EXPECT_EQ(p.pad_left, 3);
  p = ReadAutoPad("SAME_UPPER", 8, 1, 4, 1);  // nothing to pad
  EXPECT_EQ(p.out_width, 2);
  EXPECT_EQ(p.pad_left + p.pad_right, 0);
  p = ReadAutoPad("VALID", 10, 3, 2, 2);
  EXPECT_EQ(p.out_width, 3);
  EXPECT_EQ(p.pad_left + p.pad_right, 0);
  EXPECT_THROW(ReadAutoPad("SAME", 10, 3, 1, 1), Error);
}

TEST(ConvParams, RefusesWhatTheSpecificationForbids) {
  const auto read = [](const Shape& x, const Shape& w, const char* name = nullptr,
                       Attributes::Value value = std::int64_t{0}) {
    OpNode node{"c", "Conv", 17, {}};
    if (name != nullptr) node.attributes.Set(name, std::move(value));
    return ReadConvParams(node, x, w);
  };
  using Ints = std::vector<std::int64_t>;
  const Shape x = {1, 4, 8, 8}, w = {6, 4, 3, 3};
  EXPECT_EQ(read(x, w).out_height, 6);
  EXPECT_THROW(read({1, 4, 8, 8, 8}, {6, 4, 3, 3, 3}), Error);
  EXPECT_THROW(read({1, 4}, {6, 4}), Error);
  EXPECT_THROW(read(x, {6, 4, 3}), Error);
  EXPECT_THROW(read(x, {6, 3, 3, 3}), Error);
  EXPECT_THROW(read(x, {6, 4, 0, 3}), Error);
  EXPECT_THROW(read(x, {0, 4, 3, 3}), Error);
  EXPECT_THROW(read(x, {6, 4, 9, 3}), Error);
  EXPECT_THROW(read(x, w, "group", std::int64_t{0}), Error);
  EXPECT_THROW(read(x, w, "group", std::int64_t{3}), Error);
  EXPECT_THROW(read(x, {6, 1, 3, 3}, "group", std::int64_t{4}), Error);
  EXPECT_THROW(read(x, w, "kernel_shape", Ints{3, 5}), Error);
  EXPECT_THROW(read(x, w, "strides", Ints{0, 1}), Error);
  EXPECT_THROW(read(x, w, "strides", Ints{1}), Error);
  EXPECT_THROW(read(x, w, "dilations", Ints{1, -1}), Error);
  EXPECT_THROW(read(x, w, "dilations", Ints{std::int64_t{1} << 62, 1}), Error);
  EXPECT_THROW(read(x, w, "pads", Ints{0, 0, 0, -1}), Error);
  EXPECT_THROW(read(x, w, "pads", Ints{0, 0}), Error);
  EXPECT_THROW(read(x, w, "pads", std::string("1 1 1 1")), Error);
  OpNode both{"c", "Conv", 17, {}};
  both.attributes.Set("pads", Ints{1, 1, 1, 1});
  both.attributes.Set("auto_pad", std::string("SAME_UPPER"));
  EXPECT_THROW(ReadConvParams(both, x, w), Error);
}

TEST(ConvOperator, MessagesNameTheShapes) {
  try {
    ReadConvParams({"c", "Conv", 17, {}}, {1, 3, 8, 8}, {6, 4, 3, 3});
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(),
                testing::AllOf(testing::HasSubstr("1x3x8x8"), testing::HasSubstr("6x4x3x3")));
  }
}

TEST(ConvOperator, RefusesOperandsThatDoNotFit) {
  std::mt19937 random(1);
  const auto infer = [&](const Shape& bias, const Shape& slope, const Shape& addend,
                         DType type = DType::kFloat32) {
    ConvOp op("FusedConv");
    WriteEpilogue({.activation = Activation::kPRelu, .combine = Combine::kAdd}, op.attributes());
    op.AddInput(Tensor(type, {1, 4, 8, 8}), false);
    op.AddInput(Tensor(type, {6, 4, 3, 3}), true);
    op.AddInput(RandomTensor(bias, random), true);
    op.AddInput(RandomTensor(slope, random), true);
    op.AddInput(RandomTensor(addend, random), false);
    return op.Infer();
  };
  EXPECT_EQ(infer({6}, {6, 1, 1}, {1, 6, 6, 6}), Shape({1, 6, 6, 6}));
  EXPECT_EQ(infer({6}, {1}, {1, 6, 6, 6}), Shape({1, 6, 6, 6}));
  EXPECT_THROW(infer({5}, {6}, {1, 6, 6, 6}), Error);
  EXPECT_THROW(infer({6}, {4}, {1, 6, 6, 6}), Error);
  EXPECT_THROW(infer({6}, {6}, {1, 6, 1, 1}), Error);
  EXPECT_THROW(infer({6}, {6}, {1, 6, 6, 6}, DType::kInt32), Error);
  ConvOp mixed("Conv");
  mixed.AddInput(Tensor(DType::kFloat64, {1, 4, 8, 8}), false);
  mixed.AddInput(Tensor(DType::kFloat32, {6, 4, 3, 3}), true);
  EXPECT_THROW(mixed.Infer(), Error);
}

TEST(ConvOperator, FieldCoversExactlyTheTaps) {
  ConvOp op("FusedConv");
  WriteEpilogue({.combine = Combine::kAdd}, op.attributes());
  op.attributes().Set("strides", std::vector<std::int64_t>{2, 1});
  op.attributes().Set("dilations", std::vector<std::int64_t>{1, 2});
  op.attributes().Set("pads", std::vector<std::int64_t>{1, 2, 0, 2});
  op.AddInput(Tensor(DType::kFloat32, {1, 4, 9, 8}), false);
  op.AddInput(Tensor(DType::kFloat32, {6, 4, 3, 3}), true);
  op.OmitInput();
  op.OmitInput();
  op.AddInput(Tensor(DType::kFloat32, {1, 6, 4, 8}), false);
  const auto field = op.Field(0);
  ASSERT_TRUE(field.has_value());
  EXPECT_EQ((*field)[0].num, 1);
  EXPECT_EQ((*field)[0].den, 2);
  EXPECT_EQ((*field)[0].lo, -1);
  EXPECT_EQ((*field)[0].hi, 1);
  EXPECT_EQ((*field)[1].den, 1);
  EXPECT_EQ((*field)[1].lo, -2);
  EXPECT_EQ((*field)[1].hi, 2);
  const auto addend = op.Field(kConvAddend);
  ASSERT_TRUE(addend.has_value());
  EXPECT_EQ((*addend)[0].den, 1);
  EXPECT_EQ((*addend)[0].hi, 0);
  EXPECT_FALSE(op.Field(1).has_value());

  // SAME pads by the size of the input if the stride is not 1: a tile would see other pads.
  ConvOp same("Conv");
  same.attributes().Set("auto_pad", std::string("SAME_UPPER"));
  same.attributes().Set("strides", std::vector<std::int64_t>{2, 2});
  same.AddInput(Tensor(DType::kFloat32, {1, 4, 9, 8}), false);
  same.AddInput(Tensor(DType::kFloat32, {6, 4, 3, 3}), true);
  EXPECT_FALSE(same.Field(0).has_value());
}

}  // namespace
}  // namespace tessera
