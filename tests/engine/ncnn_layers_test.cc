// Each layer against numbers worked out from ncnn's documentation. Where ncnn's own words leave a
// choice, the expected numbers are those that ncnn itself gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "ops/op.h"
#include "tests/engine/ncnn_test_model.h"
#include "tests/engine/test_model.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

std::vector<float> Iota(std::int64_t n, float first = 0) {
  std::vector<float> v(static_cast<std::size_t>(n));
  std::iota(v.begin(), v.end(), first);
  return v;
}

// One layer on one blob called x.
NcnnTestModel::Result Apply(const std::string& type, const std::string& params, const Shape& blob,
                            const std::vector<float>& x) {
  NcnnTestModel m;
  m.Input("x", blob).Layer(StrCat(type, " l 1 1 x y ", params));
  return m.Run({{blob, x}});
}

NcnnTestModel::Result Apply(const std::string& type, const std::string& params, const Shape& blob) {
  return Apply(type, params, blob, Iota(blob.NumElements()));
}

std::string Failure(const std::string& type, const std::string& params, const Shape& blob) {
  NcnnTestModel m;
  m.Input("x", blob).Layer(StrCat(type, " l 1 1 x y ", params));
  return m.Failure();
}

void ExpectNear(const std::vector<float>& actual, const std::vector<float>& expected) {
  EXPECT_THAT(actual, Pointwise(FloatNear(1e-5f), expected));
}

struct Pointwise1 {
  const char *type, *params;
  float (*f)(float);
};

TEST(NcnnLayers, NumberByNumber) {
  const Pointwise1 kCases[] = {
      {"AbsVal", "", [](float v) { return std::abs(v); }},
      {"BNLL", "", [](float v) { return std::log1p(std::exp(v)); }},
      {"Clip", "0=-0.5 1=0.75", [](float v) { return std::min(std::max(v, -0.5f), 0.75f); }},
      {"Clip", "", [](float v) { return v; }},
      {"Dropout", "", [](float v) { return v; }},
      {"Dropout", "0=0.5", [](float v) { return v * 0.5f; }},
      {"ELU", "0=0.5", [](float v) { return v < 0 ? 0.5f * std::expm1(v) : v; }},
      {"ELU", "", [](float v) { return v < 0 ? 0.1f * std::expm1(v) : v; }},
      {"Exp", "0=2.0 1=0.5 2=1.0", [](float v) { return std::exp2(v * 0.5f + 1); }},
      {"HardSigmoid", "", [](float v) { return std::clamp(0.2f * v + 0.5f, 0.0f, 1.0f); }},
      {"HardSwish", "", [](float v) { return v * std::clamp(0.2f * v + 0.5f, 0.0f, 1.0f); }},
      {"HardSwish", "0=1.666667e-01 1=0.5",
       [](float v) { return v * std::clamp(v / 6 + 0.5f, 0.0f, 1.0f); }},
      {"Mish", "", [](float v) { return v * std::tanh(std::log1p(std::exp(v))); }},
      {"Power", "0=2.0 1=3.0 2=1.0", [](float v) { return (3 * v + 1) * (3 * v + 1); }},
      {"ReLU", "", [](float v) { return std::max(v, 0.0f); }},
      {"ReLU", "0=0.25", [](float v) { return v < 0 ? 0.25f * v : v; }},
      {"Sigmoid", "", [](float v) { return 1 / (1 + std::exp(-v)); }},
      {"Swish", "", [](float v) { return v / (1 + std::exp(-v)); }},
      {"TanH", "", [](float v) { return std::tanh(v); }},
      {"Threshold", "0=0.5", [](float v) { return v > 0.5f ? 1.0f : 0.0f; }},
      {"UnaryOp", "0=0", [](float v) { return std::abs(v); }},
      {"UnaryOp", "0=1", [](float v) { return -v; }},
      {"UnaryOp", "0=2", [](float v) { return std::floor(v); }},
      {"UnaryOp", "0=3", [](float v) { return std::ceil(v); }},
      {"UnaryOp", "0=4", [](float v) { return v * v; }},
      {"UnaryOp", "0=7", [](float v) { return std::exp(v); }},
      {"UnaryOp", "0=9", [](float v) { return std::sin(v); }},
      {"UnaryOp", "0=10", [](float v) { return std::cos(v); }},
      {"UnaryOp", "0=11", [](float v) { return std::tan(v); }},
      {"UnaryOp", "0=14", [](float v) { return std::atan(v); }},
      {"UnaryOp", "0=15", [](float v) { return 1 / v; }},
      {"UnaryOp", "0=16", [](float v) { return std::tanh(v); }},
      {"UnaryOp", "0=18", [](float v) { return std::nearbyint(v); }},
      {"UnaryOp", "0=19", [](float v) { return std::trunc(v); }},
      {"UnaryOp", "0=20", [](float v) { return v < 0 ? -1.0f : 1.0f; }},
      {"UnaryOp", "0=21", [](float v) { return std::expm1(v); }},
  };
  const std::vector<float> x = {-2.5f, -1, -0.25f, 0.5f, 1.5f, 4};
  for (const auto& [type, params, f] : kCases) {
    SCOPED_TRACE(StrCat(type, " ", params));
    NcnnTestModel m;
    m.Input("x", {2, 1, 3}).Layer(StrCat(type, " l 1 1 x y ", params));
    std::vector<float> expected;
    for (float v : x) expected.push_back(f(v));
    const NcnnTestModel::Result y = m.Run({{{2, 1, 3}, x}});
    EXPECT_EQ(y.shape, Shape({1, 2, 1, 3}));
    ExpectNear(y.values, expected);
  }
  EXPECT_THAT(Failure("UnaryOp", "0=28", {2}), HasSubstr("operation 28 is not known"));
}

TEST(NcnnLayers, OneNumberForEachChannel) {
  const std::vector<float> x = {-1, 2, -3, 4};
  for (const Shape& blob : {Shape{2, 1, 2}, Shape{2, 2}, Shape{2, 1, 1, 2}}) {
    NcnnTestModel prelu, scale, norm;
    prelu.Input("x", blob).Layer("PReLU l 1 1 x y 0=2").Floats({0.5f, 2});
    EXPECT_THAT(prelu.Run({{blob, x}}).values, ElementsAre(-0.5f, 2, -6, 4));
    scale.Input("x", blob).Layer("Scale l 1 1 x y 0=2 1=1").Floats({2, 3, 10, 20});
    EXPECT_THAT(scale.Run({{blob, x}}).values, ElementsAre(8, 14, 11, 32));
    // Slopes, means, variances, biases.
    norm.Input("x", blob).Layer("BatchNorm l 1 1 x y 0=2").Floats({1, 2, 0, 1, 4, 1, 0, 5});
    ExpectNear(norm.Run({{blob, x}}).values, {-0.5f, 1, -3, 11});
  }
  NcnnTestModel one, bias, flat, second;
  one.Input("x", {4}).Layer("PReLU l 1 1 x y 0=1").Floats({0.5f});
  EXPECT_THAT(one.Run({{{4}, x}}).values, ElementsAre(-0.5f, 2, -1.5f, 4));
  bias.Input("x", {2, 1, 2}).Layer("Bias l 1 1 x y 0=2").Floats({1, 2});
  EXPECT_THAT(bias.Run({{{2, 1, 2}, x}}).values, ElementsAre(0, 3, -1, 6));
  // Without channels the first number is for all.
  flat.Input("x", {2, 2}).Layer("Bias l 1 1 x y 0=2").Floats({1, 2});
  EXPECT_THAT(flat.Run({{{2, 2}, x}}).values, ElementsAre(0, 3, -2, 5));
  second.Input("x", {2, 1, 2}).Input("s", {2}).Layer("Scale l 2 1 x s y 0=-233");
  EXPECT_THAT(second.Run({{{2, 1, 2}, x}, {{2}, {2, 3}}}).values, ElementsAre(-2, 4, -9, 12));
}

// BinaryOp `type` of two blobs.
NcnnTestModel::Result Binary(int type, const Shape& a, const std::vector<float>& va, const Shape& b,
                             const std::vector<float>& vb) {
  NcnnTestModel m;
  m.Input("a", a).Input("b", b).Layer(StrCat("BinaryOp l 2 1 a b y 0=", type));
  return m.Run({{a, va}, {b, vb}});
}

TEST(NcnnLayers, BinaryOpBroadcasts) {
  const std::vector<float> a = Iota(12);  // [2, 2, 3]
  const auto add = [&](const Shape& b, const std::vector<float>& vb) {
    const NcnnTestModel::Result ab = Binary(0, {2, 2, 3}, a, b, vb),
                                ba = Binary(0, b, vb, {2, 2, 3}, a);
    EXPECT_EQ(ab.values, ba.values);
    EXPECT_EQ(ab.shape, Shape({1, 2, 2, 3}));
    return ab.values;
  };
  EXPECT_THAT(add({1}, {10}), ElementsAreArray(Iota(12, 10)));
  // A list is for the channels if it fits them, else for the columns.
  EXPECT_THAT(add({2}, {100, 200}),
              ElementsAre(100, 101, 102, 103, 104, 105, 206, 207, 208, 209, 210, 211));
  EXPECT_THAT(add({3}, {100, 200, 300}),
              ElementsAre(100, 201, 302, 103, 204, 305, 106, 207, 308, 109, 210, 311));
  // A table is for channels and rows.
  EXPECT_THAT(add({2, 2}, {100, 200, 300, 400}),
              ElementsAre(100, 101, 102, 203, 204, 205, 306, 307, 308, 409, 410, 411));
  // With all axes there it is numpy's rule.
  EXPECT_THAT(add({1, 2, 1}, {100, 200}),
              ElementsAre(100, 101, 102, 203, 204, 205, 106, 107, 108, 209, 210, 211));
}

TEST(NcnnLayers, BinaryOpTypes) {
  const std::vector<float> a = {1, -7.5f, 9}, b = {2, 2, 4};
  const auto values = [&](int type) { return Binary(type, {3}, a, {3}, b).values; };
  EXPECT_THAT(values(1), ElementsAre(-1, -9.5f, 5));
  EXPECT_THAT(values(2), ElementsAre(2, -15, 36));
  EXPECT_THAT(values(3), ElementsAre(0.5f, -3.75f, 2.25f));
  EXPECT_THAT(values(4), ElementsAre(2, 2, 9));
  EXPECT_THAT(values(5), ElementsAre(1, -7.5f, 4));
  EXPECT_THAT(values(6), ElementsAre(1, 56.25f, 6561));
  EXPECT_THAT(values(7), ElementsAre(1, 9.5f, -5));
  ExpectNear(values(8), {2, 2 / -7.5f, 4 / 9.0f});
  EXPECT_THAT(values(9), ElementsAre(2, FloatNear(std::exp2(-7.5f), 1e-6f), FloatNear(262144, 1)));
  EXPECT_THAT(Failure("BinaryOp", "0=19 1=1", {2}), HasSubstr("operation 19 is not known"));
  // With a number of the file.
  EXPECT_THAT(Apply("BinaryOp", "0=7 1=1 2=2.5", {2}, {1, 2}).values, ElementsAre(1.5f, 0.5f));
  EXPECT_THAT(Apply("BinaryOp", "0=2 1=1 2=3", {2}, {1, 2}).values, ElementsAre(3, 6));
}

TEST(NcnnLayers, BinaryOpAngles) {
  const std::vector<float> y = {0, 0, 1, -1, 2, -2, 0, 3}, x = {0, -1, -1, -1, 0, 0, 5, 3};
  std::vector<float> expected;
  for (std::size_t i = 0; i < y.size(); ++i) expected.push_back(std::atan2(y[i], x[i]));
  ExpectNear(Binary(10, {8}, y, {8}, x).values, expected);
  ExpectNear(Binary(11, {8}, x, {8}, y).values, expected);
}

TEST(NcnnLayers, Eltwise) {
  NcnnTestModel sum, weighted, product, largest;
  const std::vector<std::pair<Shape, std::vector<float>>> in = {
      {{2}, {1, 2}}, {{2}, {3, -4}}, {{2}, {5, 6}}};
  for (auto [m, params] : {std::pair{&sum, "0=1"},
                           {&weighted, "0=1 -23301=3,1.0,0.5,-1.0"},
                           {&product, "0=0"},
                           {&largest, "0=2"}}) {
    m->Input("a", {2}).Input("b", {2}).Input("c", {2});
    m->Layer(StrCat("Eltwise l 3 1 a b c y ", params));
  }
  EXPECT_THAT(sum.Run(in).values, ElementsAre(9, 4));
  EXPECT_THAT(weighted.Run(in).values, ElementsAre(-2.5f, -6));
  EXPECT_THAT(product.Run(in).values, ElementsAre(15, -48));
  EXPECT_THAT(largest.Run(in).values, ElementsAre(5, 6));
}

TEST(NcnnLayers, ConvolutionPadsAndActivations) {
  // One row of four pixels, a kernel of three in a row.
  const auto conv = [](const std::string& params) {
    NcnnTestModel m;
    m.Input("x", {1, 1, 4}).Layer("Convolution l 1 1 x y 0=1 1=3 11=1 6=3 " + params);
    m.Weights({1, 10, 100});
    if (params.find("5=1") != std::string::npos) m.Floats({-1000});
    return m.Run({{{1, 1, 4}, {1, 2, 3, 4}}}).values;
  };
  EXPECT_THAT(conv(""), ElementsAre(321, 432));
  EXPECT_THAT(conv("5=1"), ElementsAre(-679, -568));
  EXPECT_THAT(conv("4=1 14=0"), ElementsAre(210, 321, 432, 43));
  EXPECT_THAT(conv("4=2 15=0 14=0"), ElementsAre(100, 210, 321, 432));
  EXPECT_THAT(conv("4=1 14=0 18=5"), ElementsAre(215, 321, 432, 543));
  EXPECT_THAT(conv("3=2 13=1 4=-233"), ElementsAre(321, 43));   // the odd pad after
  EXPECT_THAT(conv("3=2 13=1 4=-234"), ElementsAre(210, 432));  // before
  EXPECT_THAT(conv("4=-233 18=7"), ElementsAre(217, 321, 432, 743));
  EXPECT_THAT(conv("9=1 5=1"), ElementsAre(0, 0));
  EXPECT_THAT(conv("9=2 -23310=1,0.5 5=1"), ElementsAre(-339.5f, -284));
  EXPECT_THAT(conv("9=3 -23310=2,0.0,400.0"), ElementsAre(321, 400));
  EXPECT_THAT(conv("9=6 -23310=2,0.2,0.5 5=1"), ElementsAre(0, 0));
  EXPECT_THAT(conv("9=4"), ElementsAre(1, 1));
  EXPECT_THAT(Failure("Convolution", "0=1 1=3 6=3", {1, 4, 4}), HasSubstr("no multiple"));
  EXPECT_THAT(Failure("Convolution", "0=1 1=1 6=3", {3, 4, 4}), HasSubstr("too short"));
}

TEST(NcnnLayers, ConvolutionChecksItsInput) {
  NcnnTestModel m;
  m.Input("x", {2, 4, 4}).Layer("Convolution l 1 1 x y 0=1 1=1 6=3").Weights({1, 2, 3});
  EXPECT_THAT(m.Failure(), HasSubstr("its input has 2 channels, its weights are for 3"));
  NcnnTestModel table;
  table.Input("x", {4, 4}).Layer("Convolution l 1 1 x y 0=1 1=1 6=3").Weights({1, 2, 3});
  EXPECT_THAT(table.Failure(), HasSubstr("2 axes instead of 3"));
  NcnnTestModel huge;
  huge.Input("x", {4, 4, 4}).Layer("Convolution l 1 1 x y 0=2147483647 1=2147483647 6=2147483647");
  EXPECT_THAT(huge.Failure(), HasSubstr("no multiple"));
}

TEST(NcnnLayers, ConvolutionDepthWise) {
  NcnnTestModel m;
  m.Input("x", {2, 1, 1}).Layer("ConvolutionDepthWise l 1 1 x y 0=4 1=1 5=1 6=4 7=2");
  m.Weights({1, 2, 3, 4}).Floats({0, 0, 0, 1});
  EXPECT_THAT(m.Run({{{2, 1, 1}, {10, 100}}}).values, ElementsAre(10, 20, 300, 401));
  // int8, a scale for each group, and one for all.
  for (const bool one : {false, true}) {
    NcnnTestModel q;
    q.Input("x", {2, 1, 1});
    q.Layer(StrCat("ConvolutionDepthWise l 1 1 x y 0=2 1=1 6=2 7=2 8=", one ? 2 : 1));
    q.Int8Weights({50, 50}).Floats(one ? std::vector<float>{25, 1} : std::vector<float>{25, 50, 1});
    EXPECT_THAT(q.Run({{{2, 1, 1}, {10, 100}}}).values, ElementsAre(20, one ? 200 : 100));
  }
}

TEST(NcnnLayers, ConvolutionOfComputedWeights) {
  NcnnTestModel m;
  m.Input("x", {1, 1, 2}).Layer("MemoryData w 0 1 w 0=1 1=1 11=1 2=2").Floats({3, 5});
  m.Layer("Convolution l 2 1 x w y 0=2 1=1 19=1");
  EXPECT_THAT(m.Run({{{1, 1, 2}, {1, 2}}}).values, ElementsAre(3, 6, 5, 10));
}

TEST(NcnnLayers, ConvolutionOfAListIsAnInnerProduct) {
  NcnnTestModel m;
  m.Input("x", {2}).Layer("Convolution l 1 1 x y 0=2 1=1 5=1 6=4");
  m.Weights({1, 2, 3, 4}).Floats({0.5f, 0});
  const NcnnTestModel::Result y = m.Run({{{2}, {10, 100}}});
  EXPECT_EQ(y.shape, Shape({1, 2}));
  EXPECT_THAT(y.values, ElementsAre(210.5f, 430));
}

TEST(NcnnLayers, Deconvolution) {
  const auto deconv = [](const std::string& params) {
    NcnnTestModel m;
    m.Input("x", {2, 1, 2}).Layer("Deconvolution l 1 1 x y 0=1 1=3 11=1 3=2 13=1 6=6 " + params);
    m.Weights({1, 2, 3, 10, 20, 30});  // of the one output: of input 0, of input 1
    return m.Run({{{2, 1, 2}, {1, 2, 1, 1}}}).values;
  };
  EXPECT_THAT(deconv(""), ElementsAre(11, 22, 45, 24, 36));
  EXPECT_THAT(deconv("4=1 14=0"), ElementsAre(22, 45, 24));
  EXPECT_THAT(deconv("18=1 19=0"), ElementsAre(11, 22, 45, 24, 36, 0));
  EXPECT_THAT(deconv("4=-233 20=4 21=1"), ElementsAre(11, 22, 45, 24));
  EXPECT_THAT(deconv("4=-234 20=4 21=1"), ElementsAre(22, 45, 24, 36));
}

TEST(NcnnLayers, InnerProduct) {
  // Rows of a table are inputs of their own; anything else is one input.
  NcnnTestModel table, picture;
  table.Input("x", {3, 2}).Layer("InnerProduct l 1 1 x y 0=1 1=1 2=2").Weights({1, 10});
  table.Floats({0.5f});
  const NcnnTestModel::Result rows = table.Run({{{3, 2}, {1, 2, 3, 4, 5, 6}}});
  EXPECT_EQ(rows.shape, Shape({1, 3, 1}));
  EXPECT_THAT(rows.values, ElementsAre(21.5f, 43.5f, 65.5f));
  picture.Input("x", {2, 1, 2}).Layer("InnerProduct l 1 1 x y 0=2 2=8 9=1");
  picture.Weights({1, 10, 100, 1000, -1, 0, 0, 0});
  const NcnnTestModel::Result y = picture.Run({{{2, 1, 2}, {1, 2, 3, 4}}});
  EXPECT_EQ(y.shape, Shape({1, 2}));
  EXPECT_THAT(y.values, ElementsAre(4321, 0));
}

TEST(NcnnLayers, CropForms) {
  // [2, 3, 4]
  EXPECT_THAT(Apply("Crop", "-23309=2,1,1 -23310=2,2,-1 -23311=2,1,-1", {2, 3, 4}).values,
              ElementsAre(5, 6, 17, 18));
  // -233 is either end; so is an end of 0.
  EXPECT_THAT(Apply("Crop", "-23309=1,-233 -23310=1,1 -23311=1,0", {2, 2}).values,
              ElementsAre(0, 1));
  EXPECT_THAT(Apply("Crop", "-23309=1,1 -23310=1,0 -23311=1,1", {2, 2}).values, ElementsAre(1, 3));
  // Offsets at the start and at the end, and sizes: w, h, c.
  EXPECT_THAT(Apply("Crop", "0=1 1=0 2=1 3=-233 4=1 5=-233 6=1", {2, 3, 4}).values,
              ElementsAre(13, 14));
  // Newer files compute them.
  EXPECT_THAT(Apply("Crop", "19=\"//(0w,2)\" 20=\"-(0w,1)\" 21=\"1\"", {2, 4}).values,
              ElementsAre(2, 6));
  EXPECT_THAT(Failure("Crop", "0=1 3=0 6=1", {4}), HasSubstr("cannot cut a length of 0"));
}

TEST(NcnnLayers, CropToAnotherBlob) {
  const auto crop = [](const Shape& like) {
    NcnnTestModel m;
    m.Layer("Input x 0 1 x").Input("r", like).Layer("Crop l 2 1 x r y 0=1 1=1");
    return m.Run({{{2, 3, 4}, Iota(24)}, {like, Iota(like.NumElements())}});
  };
  EXPECT_THAT(crop({1, 1, 2}).values, ElementsAre(5, 6));       // as many channels
  EXPECT_THAT(crop({1, 2}).values, ElementsAre(5, 6, 17, 18));  // all channels
  NcnnTestModel unknown;
  unknown.Layer("Input x 0 1 x").Layer("Input r 0 1 r").Layer("Crop l 2 1 x r y 0=1 1=1");
  EXPECT_THAT(unknown.Run({{{2, 3, 4}, Iota(24)}, {{1, 1, 2}, {0, 0}}}).values, ElementsAre(5, 6));
}

TEST(NcnnLayers, Padding) {
  EXPECT_THAT(Apply("Padding", "0=1 1=0 2=1 3=2 5=7", {1, 2}).values,
              ElementsAre(7, 7, 7, 7, 7, 7, 0, 1, 7, 7));
  EXPECT_THAT(Apply("Padding", "2=1 3=2 4=1", {3}).values, ElementsAre(0, 0, 1, 2, 2, 2));
  EXPECT_THAT(Apply("Padding", "2=2 3=1 4=2", {3}).values, ElementsAre(2, 1, 0, 1, 2, 1));
  EXPECT_THAT(Apply("Padding", "7=1 8=1 5=9", {1, 1, 2}).values, ElementsAre(9, 9, 0, 1, 9, 9));
  NcnnTestModel m;
  m.Input("x", {2, 1, 1}).Layer("Padding l 1 1 x y 2=1 6=3 8=1").Floats({7, 8, 9});
  EXPECT_THAT(m.Run({{{2, 1, 1}, {1, 2}}}).values, ElementsAre(7, 1, 8, 2, 9, 9));
}

TEST(NcnnLayers, PermuteNamesAxesFromTheInside) {
  EXPECT_THAT(Apply("Permute", "0=1", {2, 3}).values, ElementsAre(0, 3, 1, 4, 2, 5));
  // 3 = "cwh": columns are what channels were, rows are columns, channels are rows.
  const NcnnTestModel::Result y = Apply("Permute", "0=3", {2, 1, 3});
  EXPECT_EQ(y.shape, Shape({1, 1, 3, 2}));
  EXPECT_THAT(y.values, ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_EQ(Apply("Permute", "0=17", {2, 3, 4, 5}).shape, Shape({1, 4, 5, 3, 2}));  // "cdwh"
  EXPECT_THAT(Failure("Permute", "0=6", {2, 3, 4}), HasSubstr("order 6 is not known"));
}

TEST(NcnnLayers, PixelShuffleAndReorg) {
  EXPECT_THAT(Apply("PixelShuffle", "0=2", {8, 1, 1}).values, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(Apply("PixelShuffle", "0=2 1=1", {8, 1, 1}).values,
              ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
  // Two channels of 2x2 pixels.
  EXPECT_THAT(Apply("Reorg", "0=2", {2, 2, 2}).values, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(Apply("Reorg", "0=2 1=1", {2, 2, 2}).values, ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
  const NcnnTestModel::Result y = Apply("Reorg", "0=2", {1, 2, 4});
  EXPECT_EQ(y.shape, Shape({1, 4, 1, 2}));
  EXPECT_THAT(y.values, ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  EXPECT_THAT(Failure("PixelShuffle", "0=2", {3, 1, 1}), HasSubstr("3 channels are no multiple"));
}

// Sizes that no memory holds are refused before one times another overflows.
TEST(NcnnLayers, SizesStayWithinBounds) {
  NcnnTestModel m;
  m.Input("x", {1, 1, 2000}).Layer("Deconvolution l 1 1 x y 0=1 1=1 3=2000000000 13=1 6=1");
  m.Weights({1}).Layer("Deconvolution k 1 1 y z 0=1 1=1 3=2000000000 13=1 6=1").Weights({1});
  EXPECT_THAT(m.Failure(), HasSubstr("'l' (Deconvolution): makes an axis of"));
  EXPECT_THAT(Failure("Reorg", "0=32768", {1 << 20, 1 << 15, 1 << 15}),
              HasSubstr("makes an axis of"));
}

TEST(NcnnLayers, PoolingModes) {
  const auto row = [](const std::string& params) {
    return Apply("Pooling", "11=1 12=1 13=0 15=0 " + params, {1, 1, 4}, {1, 5, 3, 2}).values;
  };
  EXPECT_THAT(row("0=0 1=2 2=2 5=1"), ElementsAre(5, 3));
  EXPECT_THAT(row("0=0 1=3 2=2 5=1"), ElementsAre(5));
  EXPECT_THAT(row("0=0 1=3 2=2 5=0"), ElementsAre(5, 3));  // the last window is not full
  EXPECT_THAT(row("0=1 1=3 2=2 5=0"), ElementsAre(3, 2.5f));
  ExpectNear(row("0=1 1=3 2=2 5=0 6=1"), {3, 5 / 3.0f});
  EXPECT_THAT(row("0=1 1=2 2=2 3=1 5=1"), ElementsAre(1, 4, 2));
  EXPECT_THAT(row("0=1 1=2 2=2 3=1 5=1 6=1"), ElementsAre(0.5f, 4, 1));
  EXPECT_THAT(row("0=0 1=3 2=2 5=2"), ElementsAre(5, 3));
  EXPECT_THAT(row("0=0 1=3 2=2 5=3"), ElementsAre(5, 5));
  // ncnn counts these pads, whatever parameter 6 says.
  ExpectNear(row("0=1 1=3 2=2 5=2"), {3, 5 / 3.0f});
}

TEST(NcnnLayers, PoolingGlobalAndAdaptive) {
  const NcnnTestModel::Result y = Apply("Pooling", "0=1 4=1", {2, 1, 2}, {1, 2, 3, 5});
  EXPECT_EQ(y.shape, Shape({1, 2}));  // a list
  EXPECT_THAT(y.values, ElementsAre(1.5f, 4));
  EXPECT_THAT(Apply("Pooling", "0=0 7=1 8=1", {1, 2, 2}).shape, Shape({1, 1, 1, 1}));
  EXPECT_THAT(Apply("Pooling", "0=0 7=1 8=2 18=-233", {1, 1, 4}).values, ElementsAre(1, 3));
  EXPECT_THAT(Failure("Pooling", "0=0 7=1 8=2000000000 18=1", {1, 1, 3}), HasSubstr("windows"));
  // Windows [0, 2) and [1, 3) of three.
  EXPECT_THAT(Apply("Pooling", "0=1 7=1 8=2 18=1", {1, 1, 3}).values, ElementsAre(0.5f, 1.5f));
}

TEST(NcnnLayers, Reduction) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const NcnnTestModel::Result all = Apply("Reduction", "0=3 2=2.0", {2, 3}, x);
  EXPECT_EQ(all.shape, Shape({1, 1}));
  EXPECT_THAT(all.values, ElementsAre(7));
  const NcnnTestModel::Result rows = Apply("Reduction", "0=3 1=0 -23303=1,-1 5=1", {2, 3}, x);
  EXPECT_EQ(rows.shape, Shape({1, 2}));
  EXPECT_THAT(rows.values, ElementsAre(2, 5));
  EXPECT_EQ(Apply("Reduction", "0=3 1=0 -23303=1,0 4=1 5=1", {2, 3}, x).shape, Shape({1, 1, 3}));
  EXPECT_THAT(Failure("Reduction", "0=3 1=0 -23303=1,1", {2, 3}), HasSubstr("so old"));
  const float expected[] = {
      21, 21, 91, 3.5f, 6, 1, 720, 21, std::sqrt(91.0f), std::log(21.0f), 6.456193f};
  for (int type = 0; type < 11; ++type) {
    EXPECT_THAT(Apply("Reduction", StrCat("0=", type), {2, 3}, x).values,
                ElementsAre(FloatNear(expected[type], 1e-4f)))
        << type;
  }
}

TEST(NcnnLayers, ArgMax) {
  const NcnnTestModel::Result y = Apply("ArgMax", "0=1 1=2", {2, 2}, {1, 7, 3, 5});
  EXPECT_EQ(y.shape, Shape({1, 2, 2}));
  EXPECT_THAT(y.values, ElementsAre(7, 5, 1, 3));
  EXPECT_EQ(Apply("ArgMax", "", {4}).shape, Shape({1, 1, 1}));
}

TEST(NcnnLayers, ReshapeForms) {
  EXPECT_EQ(Apply("Reshape", "0=4 1=3 2=2", {24}).shape, Shape({1, 2, 3, 4}));
  EXPECT_EQ(Apply("Reshape", "0=-1", {2, 3, 4}).shape, Shape({1, 24}));
  // 0 copies the axis of that name, which may be another one in order.
  EXPECT_EQ(Apply("Reshape", "0=0 1=-1", {2, 3, 4}).shape, Shape({1, 6, 4}));
  EXPECT_EQ(Apply("Reshape", "6=\"*(0w,0h),0c\"", {2, 3, 4}).shape, Shape({1, 2, 12}));
  NcnnTestModel unknown;
  unknown.Layer("Input x 0 1 x").Layer("Reshape l 1 1 x y 0=0 1=-1");
  EXPECT_EQ(unknown.Run({{{2, 3, 4}, Iota(24)}}).shape, Shape({1, 6, 4}));
  NcnnTestModel computed;
  computed.Layer("Input x 0 1 x").Layer("Reshape l 1 1 x y 6=\"//(0w,2),+(0h,-1),-1\"");
  EXPECT_EQ(computed.Run({{{2, 3, 4}, Iota(24)}}).shape, Shape({1, 6, 2, 2}));
  EXPECT_THAT(Failure("Reshape", "0=-1 1=-1", {4}), HasSubstr("more than one length"));
  EXPECT_THAT(Failure("Reshape", "0=5 1=-1", {4}), HasSubstr("4 numbers do not fit"));
  EXPECT_THAT(Failure("Reshape", "6=\"sin(0w)\"", {4}), HasSubstr("'sin' with 1 operands"));
  EXPECT_THAT(Failure("Reshape", "6=\"+(1\"", {4}), HasSubstr("cannot read the expression"));
  EXPECT_THAT(Failure("Reshape", "6=\"//(4,0)\"", {4}), HasSubstr("divides by 0"));
  EXPECT_THAT(Failure("Reshape", "6=\"1w\"", {4}), HasSubstr("needs input 1"));
}

TEST(NcnnLayers, ShapesOfBlobs) {
  EXPECT_EQ(Apply("Flatten", "", {2, 3, 4}).shape, Shape({1, 24}));
  EXPECT_EQ(Apply("ExpandDims", "-23303=2,0,-1", {3}).shape, Shape({1, 1, 3, 1}));
  EXPECT_EQ(Apply("Squeeze", "-23303=2,0,-1", {1, 3, 1}).shape, Shape({1, 3}));
  EXPECT_EQ(Apply("Squeeze", "-23303=1,1", {1, 3, 1}).shape, Shape({1, 1, 3, 1}));  // not 1
  EXPECT_EQ(Apply("Squeeze", "0=1 1=1 2=1", {1, 3, 1}).shape, Shape({1, 3}));
  EXPECT_EQ(Apply("Squeeze", "0=1 1=1", {1, 1}).shape, Shape({1, 1}));  // an axis stays
  EXPECT_THAT(Failure("ExpandDims", "-23303=4,0,1,2,3", {3}), HasSubstr("5 axes"));
}

TEST(NcnnLayers, Slice) {
  const auto slice = [](const std::string& params, std::size_t i) {
    NcnnTestModel m;
    m.Input("x", {1, 1, 7}).Layer("Slice l 1 3 x a b c 1=2 " + params);
    return m.Run({{{1, 1, 7}, Iota(7)}}, i).values;
  };
  EXPECT_THAT(slice("-23300=3,2,1,-233", 0), ElementsAre(0, 1));
  EXPECT_THAT(slice("-23300=3,2,1,-233", 2), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(slice("-23300=3,-233,-233,-233", 1), ElementsAre(2, 3));
  EXPECT_THAT(slice("-23300=3,-233,-233,-233", 2), ElementsAre(4, 5, 6));
  EXPECT_THAT(slice("-23302=2,1,-2", 1), ElementsAre(1, 2, 3, 4));
  NcnnTestModel unknown;
  unknown.Layer("Input x 0 1 x").Layer("Slice l 1 2 x a b -23300=2,-233,-233");
  EXPECT_THAT(unknown.Run({{{4, 1, 1}, Iota(4)}}, 1).values, ElementsAre(2, 3));
}

TEST(NcnnLayers, ConcatSplitSoftmaxShuffle) {
  NcnnTestModel m;
  m.Input("x", {2, 1}).Input("z", {2, 2}).Layer("Concat l 2 1 x z y 0=-1");
  EXPECT_THAT(m.Run({{{2, 1}, {1, 2}}, {{2, 2}, {3, 4, 5, 6}}}).values,
              ElementsAre(1, 3, 4, 2, 5, 6));
  ExpectNear(Apply("Softmax", "0=1 1=1", {1, 2}, {0, std::log(3.0f)}).values, {0.25f, 0.75f});
  ExpectNear(Apply("Softmax", "", {2, 1}, {0, std::log(3.0f)}).values, {0.25f, 0.75f});
  EXPECT_THAT(Failure("Softmax", "0=1", {1, 2}), HasSubstr("so old"));
  EXPECT_THAT(Apply("ShuffleChannel", "0=2", {4, 1, 1}).values, ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(Failure("ShuffleChannel", "0=2", {1 << 30, 1, 1}), HasSubstr("channels"));
}

TEST(NcnnLayers, Interp) {
  const Shape row{1, 1, 2};
  const std::vector<float> x = {0, 4};
  EXPECT_THAT(Apply("Interp", "0=1 2=2.0", row, x).values, ElementsAre(0, 0, 4, 4));
  EXPECT_THAT(Apply("Interp", "0=2 2=2.0", row, x).values, ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(Apply("Interp", "0=2 3=1 4=3 6=1", row, x).values, ElementsAre(0, 2, 4));
  EXPECT_THAT(Apply("Interp", "0=1 3=1 4=3", row, x).values, ElementsAre(0, 0, 4));
  // The ratio of the sizes counts, not the scale: 5 pixels become 3 by a scale of 0.7.
  ExpectNear(Apply("Interp", "0=2 2=0.7", {1, 1, 5}).values, {1 / 3.0f, 2, 11 / 3.0f});
  // Each number of a list becomes a picture.
  const NcnnTestModel::Result list = Apply("Interp", "0=2 3=1 4=2", {2}, {3, 5});
  EXPECT_EQ(list.shape, Shape({1, 2, 1, 2}));
  EXPECT_THAT(list.values, ElementsAre(3, 3, 5, 5));
  // A table keeps its rows.
  EXPECT_THAT(Apply("Interp", "0=1 1=3.0 2=2.0", {2, 1}, {3, 5}).values, ElementsAre(3, 3, 5, 5));
  NcnnTestModel like;
  like.Layer("Input x 0 1 x").Layer("Input r 0 1 r").Layer("Interp l 2 1 x r y 0=2 5=1");
  EXPECT_THAT(like.Run({{row, x}, {{1, 1, 4}, Iota(4)}}).values, ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(Apply("Interp", "0=1 9=\"*(0w,2),0h\"", row, x).values, ElementsAre(0, 0, 4, 4));
  EXPECT_THAT(Failure("Interp", "", row), HasSubstr("type 0 is not known"));
  EXPECT_THAT(Failure("Interp", "0=1 2=1e38", row), HasSubstr("scales an axis of 2"));
  EXPECT_THAT(Failure("Interp", "0=2 2=1.5e38", row), HasSubstr("scales an axis of 2"));
}

TEST(NcnnLayers, InstanceNorm) {
  NcnnTestModel m;
  m.Input("x", {2, 1, 2}).Layer("InstanceNorm l 1 1 x y 0=2 1=0").Floats({1, 2, 0, 5});
  ExpectNear(m.Run({{{2, 1, 2}, {1, 3, 2, 10}}}).values, {-1, 1, 3, 7});
  ExpectNear(Apply("InstanceNorm", "0=2 1=0 2=0", {2, 1, 2}, {1, 3, 2, 10}).values, {-1, 1, -1, 1});
  EXPECT_THAT(Failure("InstanceNorm", "0=2 2=0", {1 << 30, 1, 1}), HasSubstr("channels"));
}

TEST(NcnnLayers, QuantizeAndBack) {
  NcnnTestModel m;
  m.Input("x", {2, 1, 3}).Layer("Quantize q 1 1 x q 0=2").Floats({1, 2});
  m.Layer("Split s 1 2 q a b").Layer("Noop n 1 1 a out");
  m.Layer("Dequantize d 1 1 b y 0=2 1=1").Floats({1, 0.5f, 10});
  // Halves go away from 0; the range is even.
  const std::vector<float> x = {0.5f, -2.5f, 200, 0.7f, -99, 1};
  EXPECT_THAT(m.Run({{{2, 1, 3}, x}}).values, ElementsAre(1, -3, 127, 1, -127, 2));
  EXPECT_THAT(m.Run({{{2, 1, 3}, x}}, 1).values, ElementsAre(11, 7, 137, 10.5f, -53.5f, 11));
  NcnnTestModel r;
  r.Input("x", {2}).Layer("Requantize l 1 1 x y 2=1 3=1").Floats({0.5f, 3, 1});
  EXPECT_THAT(r.Run({{{2}, {4, -8}}}).values, ElementsAre(9, 0));
}

TEST(NcnnLayers, CastRoundsToFloat16) {
  NcnnTestModel m;
  m.Input("x", {2}).Layer("Cast a 1 1 x h 0=1 1=2").Layer("Cast b 1 1 h y 0=2 1=1");
  EXPECT_EQ(m.Import().output_decls[0].dtype, DType::kFloat32);
  EXPECT_THAT(Failure("Cast", "0=1 1=3", {2}), HasSubstr("no conversion to int8"));
  EXPECT_THAT(Failure("Cast", "0=1 1=9", {2}), HasSubstr("type 9 is not known"));
}

// What LSTM does, for one direction, plainly. Gates: input, forget, output, cell.
struct PlainLstm {
  int inputs, hidden;
  std::vector<float> w, bias, r;

  std::vector<float> Run(const std::vector<float>& x, bool reverse) const {
    const int steps = static_cast<int>(x.size()) / inputs;
    std::vector<float> h(static_cast<std::size_t>(hidden)), c(h),
        out(h.size() * static_cast<std::size_t>(steps));
    const auto sigmoid = [](float v) { return 1 / (1 + std::exp(-v)); };
    for (int s = 0; s < steps; ++s) {
      const int t = reverse ? steps - 1 - s : s;
      std::vector<float> next(h.size());
      for (int q = 0; q < hidden; ++q) {
        float gate[4];
        for (int g = 0; g < 4; ++g) {
          const int row = g * hidden + q;
          float sum = bias[static_cast<std::size_t>(row)];
          for (int i = 0; i < inputs; ++i)
            sum += w[static_cast<std::size_t>(row * inputs + i)] *
                   x[static_cast<std::size_t>(t * inputs + i)];
          for (int i = 0; i < hidden; ++i)
            sum += r[static_cast<std::size_t>(row * hidden + i)] * h[static_cast<std::size_t>(i)];
          gate[g] = sum;
        }
        float& cell = c[static_cast<std::size_t>(q)];
        cell = sigmoid(gate[1]) * cell + sigmoid(gate[0]) * std::tanh(gate[3]);
        next[static_cast<std::size_t>(q)] = sigmoid(gate[2]) * std::tanh(cell);
      }
      h = next;
      std::copy(h.begin(), h.end(), out.begin() + t * hidden);
    }
    return out;
  }
};

TEST(NcnnLayers, Lstm) {
  const int inputs = 3, hidden = 2, steps = 4;
  const std::vector<float> x = TestModel::NoiseValues(inputs * steps, 1);
  std::vector<PlainLstm> plain;
  for (std::uint32_t d = 0; d < 2; ++d) {
    plain.push_back({inputs, hidden, TestModel::NoiseValues(4 * hidden * inputs, 2 + d),
                     TestModel::NoiseValues(4 * hidden, 4 + d),
                     TestModel::NoiseValues(4 * hidden * hidden, 6 + d)});
  }
  const auto join = [](std::vector<float> a, const std::vector<float>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  for (int direction = 0; direction < 2; ++direction) {
    NcnnTestModel m;
    m.Input("x", {steps, inputs});
    m.Layer(StrCat("LSTM l 1 1 x y 0=2 1=24 2=", direction));
    m.Weights(plain[0].w).Weights(plain[0].bias).Weights(plain[0].r);
    const NcnnTestModel::Result y = m.Run({{{steps, inputs}, x}});
    EXPECT_EQ(y.shape, Shape({1, steps, hidden}));
    ExpectNear(y.values, plain[0].Run(x, direction == 1));
  }
  NcnnTestModel both;
  both.Input("x", {steps, inputs}).Layer("LSTM l 1 1 x y 0=2 1=48 2=2");
  both.Weights(join(plain[0].w, plain[1].w)).Weights(join(plain[0].bias, plain[1].bias));
  both.Weights(join(plain[0].r, plain[1].r));
  const NcnnTestModel::Result y = both.Run({{{steps, inputs}, x}});
  EXPECT_EQ(y.shape, Shape({1, steps, 2 * hidden}));
  const std::vector<float> forward = plain[0].Run(x, false), backward = plain[1].Run(x, true);
  std::vector<float> expected;
  for (int t = 0; t < steps; ++t) {
    expected.insert(expected.end(), forward.begin() + t * hidden,
                    forward.begin() + (t + 1) * hidden);
    expected.insert(expected.end(), backward.begin() + t * hidden,
                    backward.begin() + (t + 1) * hidden);
  }
  ExpectNear(y.values, expected);
}

}  // namespace
}  // namespace tessera
