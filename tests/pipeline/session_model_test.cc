#include "pipeline/session_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/error.h"
#include "pipeline/upscaler.h"
#include "tests/engine/test_model.h"
#include "tests/pipeline/test_pictures.h"

namespace tessera {
namespace {

using testing::HasSubstr;

// A convolution with `pad` at the borders, in -> scale^2 * out channels, and a shuffle.
TestModel ConvModel(const std::vector<std::int64_t>& dims, std::int64_t in, std::int64_t out,
                    std::int64_t scale, std::int64_t pad = 1, int type = onnx::TensorProto::FLOAT) {
  TestModel m;
  m.Input("x", dims, type);
  std::string x = "x";
  if (type != onnx::TensorProto::FLOAT) {
    m.Node("Cast", {"x"}, {"xf"}, {{"to", std::int64_t{onnx::TensorProto::FLOAT}}});
    x = "xf";
  }
  m.Noise("w", {out * scale * scale, in, 3, 3}, 0.2f);
  m.Node("Conv", {x, "w"}, {"c"}, {{"pads", std::vector<std::int64_t>{pad, pad, pad, pad}}});
  m.Node("DepthToSpace", {"c"}, {type == onnx::TensorProto::FLOAT ? "y" : "yf"},
         {{"blocksize", scale}});
  if (type != onnx::TensorProto::FLOAT) {
    m.Node("Cast", {"yf"}, {"y"}, {{"to", std::int64_t{type}}});
  }
  m.Output("y", type);
  return m;
}

std::unique_ptr<TileModel> Make(const TestModel& model) {
  return MakeSessionModel(model.Load(), "test.onnx");
}

std::string Refusal(const TestModel& model) {
  try {
    Make(model);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SessionModel, ReadsScaleAndFieldFromTheGraph) {
  const auto model = Make(ConvModel({1, 3, -1, -1}, 3, 3, 2));
  const ModelTraits& traits = model->traits();
  EXPECT_EQ(traits.channels, 3);
  EXPECT_EQ(traits.field.width.scale_num, 2);
  EXPECT_EQ(traits.field.width.scale_den, 1);
  EXPECT_EQ(traits.field.height.before, 1);
  EXPECT_EQ(traits.field.height.after, 1);
  EXPECT_TRUE(traits.local);
  EXPECT_FALSE(traits.fixed_input);
  // At least the picture and the result.
  EXPECT_GE(model->RunBytes(100, 50), 100 * 50 * 3 * 4 * 5u);
  EXPECT_LT(model->RunBytes(100, 50), model->RunBytes(200, 50));

  const Tensor in(DType::kFloat32, {1, 3, 9, 11});
  std::fill(in.values<float>().begin(), in.values<float>().end(), 0.5f);
  std::vector<Tensor> out;
  SerialParallel serial;
  model->Run(in.view(), out, serial);
  EXPECT_EQ(out[0].shape(), Shape({1, 3, 18, 22}));
}

TEST(SessionModel, DeclaredSizesDoNotBindNetworksThatTakeAny) {
  const auto model = Make(ConvModel({1, 3, 40, 56}, 3, 3, 4));
  EXPECT_FALSE(model->traits().fixed_input);
  EXPECT_EQ(model->traits().field.height.scale_num, 4);
}

TEST(SessionModel, DeclaredSizesBindNetworksWithShapesInside) {
  TestModel m;
  m.Input("x", {1, 3, 40, 56}).Ints("shape", {1, 3, 40, 56}).Noise("w", {3, 3, 3, 3});
  m.Node("Reshape", {"x", "shape"}, {"r"});
  m.Node("Conv", {"r", "w"}, {"y"}, {{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}});
  m.Output("y");
  const auto model = Make(m);
  ASSERT_TRUE(model->traits().fixed_input);
  EXPECT_EQ(model->traits().fixed_input->width, 56);
  EXPECT_EQ(model->traits().fixed_input->height, 40);
  EXPECT_EQ(model->traits().field.width.scale_num, 1);
  // What lies behind a Reshape cannot be told.
  EXPECT_FALSE(model->traits().local);
}

TEST(SessionModel, GreyModelsHaveOneChannel) {
  EXPECT_EQ(Make(ConvModel({1, 1, -1, -1}, 1, 1, 2))->traits().channels, 1);
  EXPECT_EQ(Make(ConvModel({-1, -1, -1, -1}, 1, 1, 2))->traits().channels, 1);
  EXPECT_EQ(Make(ConvModel({-1, -1, -1, -1}, 3, 3, 2))->traits().channels, 3);
}

TEST(SessionModel, Float16IsWidened) {
  const TestModel half = ConvModel({1, 3, -1, -1}, 3, 3, 2, 1, onnx::TensorProto::FLOAT16);
  const auto model = Make(half), expected = Make(ConvModel({1, 3, -1, -1}, 3, 3, 2));
  const Tensor in = Tensor::FromVector<float>({1, 3, 8, 8}, TestModel::NoiseValues(192, 5));
  std::vector<Tensor> a, b;
  SerialParallel serial;
  for (int run = 0; run < 2; ++run) {
    model->Run(in.view(), a, serial);
    expected->Run(in.view(), b, serial);
    ASSERT_EQ(a[0].dtype(), DType::kFloat32);
    for (std::int64_t i = 0; i < a[0].size(); ++i) {
      ASSERT_NEAR(a[0].data<float>()[i], b[0].data<float>()[i], 3e-3);
    }
  }
}

// As waifu2x: convolutions without pads. The same network behind a Pad of edge pixels tells what to
// expect.
TEST(SessionModel, NetworksThatCropGetTheirBorderFromTheOutermostPixels) {
  const auto model = [](bool padded, bool transposed, const std::string& between) {
    TestModel m;
    m.Input("x", {1, 3, -1, -1}).Noise("w", {8, 3, 3, 3}, 0.2f).Noise("v", {12, 8, 3, 3}, 0.2f);
    m.Noise("t", {8, 3, 4, 4}, 0.2f);
    m.Ints("around", {0, 0, 2, 2, 0, 0, 2, 2});
    if (padded) m.Node("Pad", {"x", "around"}, {"p"}, {{"mode", std::string("edge")}});
    m.Node("Conv", {padded ? "p" : "x", "w"}, {"c"}).Node(between, {"c"}, {"r"});
    if (transposed) {  // as upconv_7 ends: 2 h + 2 - 2 * 3
      m.Node("ConvTranspose", {"r", "t"}, {"y"},
             {{"strides", std::vector<std::int64_t>{2, 2}},
              {"pads", std::vector<std::int64_t>{3, 3, 3, 3}}});
    } else {
      m.Node("Conv", {"r", "v"}, {"d"});
      m.Node("DepthToSpace", {"d"}, {"y"}, {{"blocksize", std::int64_t{2}}});
    }
    m.Output("y");
    return m;
  };
  // LpNormalization has no field that the engine knows: scale and crop come from sizes alone.
  for (const bool transposed : {false, true}) {
    for (const std::string between : {"Relu", "LpNormalization"}) {
      SCOPED_TRACE(between);
      const auto cropping = Make(model(false, transposed, between));
      const bool local = between == "Relu";
      EXPECT_EQ(cropping->traits().local, local);
      EXPECT_EQ(cropping->traits().field.width.scale_num, 2);
      EXPECT_EQ(cropping->traits().field.width.scale_den, 1);
      if (local) {
        EXPECT_EQ(cropping->traits().field.width.before, 2);
        EXPECT_EQ(cropping->traits().field.width.after, 2);
      }
      const Tensor in = Tensor::FromVector<float>({1, 3, 9, 12}, TestModel::NoiseValues(324, 5));
      std::vector<Tensor> actual, expected;
      SerialParallel serial;
      cropping->Run(in.view(), actual, serial);
      cropping->Run(in.view(), actual, serial);
      model(true, transposed, between)
          .Load()
          ->Run(std::vector<NamedView>{{"x", in.view()}}, expected);
      ASSERT_EQ(actual[0].shape(), Shape({1, 3, 18, 24}));
      ASSERT_EQ(expected[0].shape(), actual[0].shape());
      for (std::int64_t i = 0; i < actual[0].size(); ++i) {
        ASSERT_NEAR(actual[0].data<float>()[i], expected[0].data<float>()[i], 1e-5) << i;
      }
    }
  }
}

// A U-Net with a gate over the whole picture: no field, and only even sizes come back as they were.
TEST(SessionModel, FindsTheSizesOfNetworksWithoutField) {
  TestModel m;
  const std::vector<std::int64_t> two{2, 2};
  m.Input("x", {1, 3, -1, -1}).Noise("w", {3, 3, 2, 2}, 0.2f).Noise("v", {3, 3, 2, 2}, 0.2f);
  m.Node("Conv", {"x", "w"}, {"half"}, {{"strides", two}});
  m.Node("GlobalAveragePool", {"half"}, {"mean"}).Node("Mul", {"half", "mean"}, {"gated"});
  m.Node("ConvTranspose", {"gated", "v"}, {"y"}, {{"strides", two}}).Output("y");
  const ModelTraits traits = Make(m)->traits();
  EXPECT_FALSE(traits.local);
  EXPECT_EQ(traits.field.width.scale_num, 1);
  EXPECT_EQ(traits.field.width.scale_den, 1);
  EXPECT_EQ(traits.field.width.alignment, 2);
  EXPECT_EQ(traits.field.height.alignment, 2);
}

// Nearest neighbours at x2, made in blocks of n x n pixels: other sizes than multiples of n are
// refused. If not `local`, each pixel also looks at the whole picture, to no effect.
TestModel BlockModel(std::int64_t n, bool local) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Floats("scales", {4}, {1, 1, 2, 2}).Floats("zero", {1}, {0});
  m.Node("SpaceToDepth", {"x"}, {"folded"}, {{"blocksize", n}});
  if (!local) {
    m.Node("GlobalAveragePool", {"folded"}, {"mean"}).Node("Mul", {"mean", "zero"}, {"nothing"});
    m.Node("Add", {"folded", "nothing"}, {"sum"});
  }
  m.Node("DepthToSpace", {local ? "folded" : "sum"}, {"same"}, {{"blocksize", n}});
  m.Node("Resize", {"same", "", "scales"}, {"y"},
         {{"mode", std::string("nearest")},
          {"coordinate_transformation_mode", std::string("asymmetric")},
          {"nearest_mode", std::string("floor")}});
  m.Output("y");
  return m;
}

TEST(SessionModel, FindsWhatSizesHaveToBeMultiplesOf) {
  for (const bool local : {true, false}) {
    for (const int n : {1, 2, 5, 7, 10, 12, 14, 28, 36, 97, 128, 251, 256}) {
      SCOPED_TRACE(n);
      const ModelTraits traits = Make(BlockModel(n, local))->traits();
      EXPECT_EQ(traits.local, local);
      EXPECT_EQ(traits.field.width.alignment, n);
      EXPECT_EQ(traits.field.height.alignment, n);
      EXPECT_EQ(traits.field.width.scale_num, 2);
      EXPECT_EQ(traits.field.width.scale_den, 1);
      EXPECT_FALSE(traits.fixed_input);
    }
  }
  EXPECT_THAT(Refusal(BlockModel(449, true)), HasSubstr("449"));
}

TEST(SessionModel, PicturesOfAnySizeGoThroughNetworksThatNeedMultiples) {
  for (const std::int64_t n : {5, 7, 12, 36, 128}) {
    for (const bool local : {true, false}) {
      for (const auto& [w, h] : {std::pair{1, 1}, {7, 5}, {61, 83}, {257, 131}}) {
        for (const int tile : {0, 64}) {
          SCOPED_TRACE(testing::Message() << n << ": " << w << "x" << h << " by " << tile);
          const Picture in = NoisePicture({.width = w, .height = h});
          PictureFormat twice = in.format();
          twice.width *= 2;
          twice.height *= 2;
          const Picture out =
              Upscaler(Make(BlockModel(n, local)), {.tile = tile}).Upscale(in, twice);
          for (std::int64_t y = 0; y < 2 * h; ++y)
            for (std::int64_t x = 0; x < 2 * w; ++x)
              for (int c = 0; c < 3; ++c)
                ASSERT_EQ(Sample(out, x, y, c), Sample(in, x / 2, y / 2, c)) << x << ", " << y;
        }
      }
    }
  }
}

// As one with a table of positions for one size.
TEST(SessionModel, SizesThatNothingDeclaresBindNetworksWithShapesInside) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Ints("shape", {1, 3, 256, 256}).Output("y");
  m.Node("Reshape", {"x", "shape"}, {"y"});
  const auto model = Make(m);
  ASSERT_TRUE(model->traits().fixed_input);
  EXPECT_EQ(model->traits().fixed_input->width, 256);
  EXPECT_EQ(model->traits().fixed_input->height, 256);
}

TEST(SessionModel, SaysWhatIsNoUpscalingModel) {
  EXPECT_THAT(Refusal(ConvModel({1, 3, -1, -1}, 3, 1, 2)), HasSubstr("no upscaling model"));
  TestModel lopsided = ConvModel({1, 3, -1, -1}, 3, 3, 2);
  lopsided.proto.mutable_graph()->mutable_node(0)->mutable_attribute(0)->set_ints(1, 0);
  EXPECT_THAT(Refusal(lopsided), HasSubstr("nor as much less on both sides"));
  EXPECT_THAT(Refusal(ConvModel({1, 4, -1, -1}, 4, 4, 2)), HasSubstr("no picture"));
  TestModel ints;
  ints.Input("x", {1, 3, 8, 8}, onnx::TensorProto::INT32).Output("y", onnx::TensorProto::INT32);
  ints.Node("Identity", {"x"}, {"y"});
  EXPECT_THAT(Refusal(ints), HasSubstr("'x' int32 [1, 3, 8, 8] is no picture"));
  TestModel two;
  two.Input("x", {1, 3, 8, 8}).Input("z", {1, 3, 8, 8}).Output("y");
  two.Node("Add", {"x", "z"}, {"y"});
  EXPECT_THAT(Refusal(two), HasSubstr("one input"));
  TestModel flat;
  flat.Input("x", {1, 100}).Output("y").Node("Identity", {"x"}, {"y"});
  EXPECT_THAT(Refusal(flat), HasSubstr("no picture"));
}

}  // namespace
}  // namespace tessera
