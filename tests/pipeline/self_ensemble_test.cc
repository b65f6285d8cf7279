#include "pipeline/self_ensemble.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/thread_team.h"
#include "pipeline/session_model.h"
#include "pipeline/upscaler.h"
#include "tests/engine/test_model.h"
#include "tests/pipeline/fake_models.h"
#include "tests/pipeline/test_pictures.h"

namespace tessera {
namespace {

Tensor NoiseInput(std::int64_t channels, std::int64_t h, std::int64_t w, std::uint32_t seed = 1) {
  const Shape shape{1, channels, h, w};
  return Tensor::FromVector<float>(
      shape, TestModel::NoiseValues(static_cast<std::size_t>(shape.NumElements()), seed));
}

Tensor Result(TileModel& model, const Tensor& input) {
  std::vector<Tensor> outputs;
  SerialParallel serial;
  model.Run(input.view(), outputs, serial);
  return std::move(outputs[0]);
}

// A quarter turn, counter-clockwise.
Tensor Rotated(const Tensor& in) {
  const std::int64_t c = in.shape()[1], h = in.shape()[2], w = in.shape()[3];
  Tensor out(DType::kFloat32, {1, c, w, h});
  for (std::int64_t i = 0; i < c; ++i) {
    for (std::int64_t y = 0; y < w; ++y) {
      for (std::int64_t x = 0; x < h; ++x)
        out.data<float>()[(i * w + y) * h + x] = in.data<float>()[(i * h + x) * w + w - 1 - y];
    }
  }
  return out;
}

Tensor Mirrored(const Tensor& in) {
  const std::int64_t rows = in.shape()[1] * in.shape()[2], w = in.shape()[3];
  Tensor out(DType::kFloat32, in.shape());
  for (std::int64_t y = 0; y < rows; ++y) {
    for (std::int64_t x = 0; x < w; ++x)
      out.data<float>()[y * w + x] = in.data<float>()[y * w + w - 1 - x];
  }
  return out;
}

// The mean over the mirrored and the plain input, each rotated `step` quarters at a time.
Tensor MeanOfTurned(TileModel& model, const Tensor& input, int step) {
  std::vector<double> sum;
  Shape shape;
  int runs = 0;
  for (const bool mirror : {false, true}) {
    for (int quarters = 0; quarters < 4; quarters += step) {
      Tensor picture = mirror ? Mirrored(input) : input.Clone();
      for (int i = 0; i < quarters; ++i) picture = Rotated(picture);
      picture = Result(model, picture);
      for (int i = quarters; i % 4 != 0; ++i) picture = Rotated(picture);
      if (mirror) picture = Mirrored(picture);
      shape = picture.shape();
      sum.resize(static_cast<std::size_t>(picture.size()));
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += picture.values<float>()[i];
      ++runs;
    }
  }
  Tensor mean(DType::kFloat32, shape);
  for (std::size_t i = 0; i < sum.size(); ++i)
    mean.values<float>()[i] = static_cast<float>(sum[i] / runs);
  return mean;
}

void ExpectNear(const Tensor& actual, const Tensor& expected, float tolerance = 1e-6f) {
  ASSERT_EQ(actual.shape(), expected.shape());
  for (std::size_t i = 0; i < expected.values<float>().size(); ++i) {
    ASSERT_NEAR(actual.values<float>()[i], expected.values<float>()[i], tolerance) << "at " << i;
  }
}

constexpr std::int64_t kSizes[][2] = {{1, 1}, {1, 9}, {7, 5}, {16, 16}, {17, 40}, {33, 20}};

TEST(SelfEnsemble, IsTheMeanOverFlipsAndRotations) {
  for (const FakeConvOptions& options : {FakeConvOptions{.radius = 2},
                                         {.channels = 1, .scale = 3, .radius = 1},
                                         {.scale = 1, .radius = 3, .phase = 4}}) {
    FakeConv plain(options);
    const auto ensemble = MakeSelfEnsemble(std::make_unique<FakeConv>(options));
    for (const auto& [h, w] : kSizes) {
      SCOPED_TRACE(StrCat(h, "x", w, ", scale ", options.scale));
      const Tensor input = NoiseInput(options.channels, h, w);
      ExpectNear(Result(*ensemble, input), MeanOfTurned(plain, input, 1));
    }
  }
}

TEST(SelfEnsemble, InputsThatCannotBeTransposedAreFlippedOnly) {
  const FakeConvOptions options{.radius = 2, .fixed_input = ModelTraits::Size{7, 5}};
  FakeConv plain(options);
  const Tensor input = NoiseInput(3, 5, 7);
  ExpectNear(Result(*MakeSelfEnsemble(std::make_unique<FakeConv>(options)), input),
             MeanOfTurned(plain, input, 2));
}

// A network whose axes may differ; counts its runs.
class FakeField : public FakeNearest {
 public:
  FakeField(const ReceptiveField& field, int& runs) : FakeNearest(2), runs_(runs) {
    traits_ = FakeNearest::traits();
    traits_.field = field;
  }
  const ModelTraits& traits() const override { return traits_; }
  void Run(const TensorView& input, std::vector<Tensor>& outputs, Parallel& parallel) override {
    ++runs_;
    FakeNearest::Run(input, outputs, parallel);
  }

 private:
  ModelTraits traits_;
  int& runs_;
};

TEST(SelfEnsemble, LooksAsFarOnEachSideAsTheNetworkOnAny) {
  int runs = 0;
  const ReceptiveField::Axis width{.scale_num = 2, .before = 3, .after = 1},
      height{.scale_num = 2, .before = 2, .after = 5};
  const auto both = MakeSelfEnsemble(
      std::make_unique<FakeField>(ReceptiveField{.height = height, .width = width}, runs));
  for (const ReceptiveField::Axis& axis :
       {both->traits().field.width, both->traits().field.height}) {
    EXPECT_EQ(axis.before, 5);
    EXPECT_EQ(axis.after, 5);
  }
  Result(*both, NoiseInput(3, 4, 6));
  EXPECT_EQ(runs, 8);

  // Axes that differ are not exchanged.
  ReceptiveField::Axis aligned = height;
  aligned.alignment = 2;
  runs = 0;
  const auto flips = MakeSelfEnsemble(
      std::make_unique<FakeField>(ReceptiveField{.height = aligned, .width = width}, runs));
  EXPECT_EQ(flips->traits().field.width.before, 3);
  EXPECT_EQ(flips->traits().field.width.after, 3);
  EXPECT_EQ(flips->traits().field.height.before, 5);
  EXPECT_EQ(flips->traits().field.height.alignment, 2);
  Result(*flips, NoiseInput(3, 4, 6));
  EXPECT_EQ(runs, 4);
}

TEST(SelfEnsemble, SymmetricNetworksGiveWhatTheyGave) {
  FakeNearest plain(3);
  const Tensor input = NoiseInput(3, 6, 11);
  ExpectNear(Result(*MakeSelfEnsemble(std::make_unique<FakeNearest>(3)), input),
             Result(plain, input));
}

TEST(SelfEnsemble, BadNumbersStayBad) {
  auto spoilt = std::make_unique<FakeNearest>(2);
  const Tensor input = NoiseInput(3, 3, 4);
  spoilt->spoil_at = input.values<float>()[5];
  const Tensor result = Result(*MakeSelfEnsemble(std::move(spoilt)), input);
  EXPECT_TRUE(std::isnan(result.values<float>()[2 * 8 + 2]));
  EXPECT_FALSE(std::isnan(result.values<float>()[0]));
}

TEST(SelfEnsemble, TilesDoNotShow) {
  const Picture in = NoisePicture({.width = 123, .height = 77});
  for (const FakeConvOptions& options :
       {FakeConvOptions{.radius = 3}, {.scale = 3, .radius = 5, .alignment = 8}}) {
    const auto upscale = [&](const TileOptions& tiles) {
      const Upscaler upscaler(MakeSelfEnsemble(std::make_unique<FakeConv>(options)), tiles);
      PictureFormat out = in.format();
      const Upscaler::Size size = upscaler.OwnSize(in.width(), in.height());
      out.width = size.width;
      out.height = size.height;
      return upscaler.Upscale(in, out);
    };
    const Picture untiled = upscale({.tile = 1 << 20});
    for (const int tile : {1, 32, 50}) {
      EXPECT_TRUE(SamePixels(upscale({.tile = tile, .threads = 2}), untiled))
          << "tiles of " << tile << ", scale " << options.scale;
    }
  }
}

// A network of the engine, which writes into buffers that are there.
std::unique_ptr<TileModel> ConvEnsemble() {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("w", {12, 3, 3, 3}, 0.2f);
  m.Node("Conv", {"x", "w"}, {"c"}, {{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}});
  m.Node("DepthToSpace", {"c"}, {"y"}, {{"blocksize", std::int64_t{2}}}).Output("y");
  return MakeSelfEnsemble(MakeSessionModel(m.Load(), "test.onnx"));
}

TEST(SelfEnsemble, ThreadsChangeNothing) {
  const auto model = ConvEnsemble();
  const Tensor input = NoiseInput(3, 37, 50);
  const Tensor expected = Result(*model, input);
  ThreadTeam team(3);
  std::vector<Tensor> outputs;
  model->Run(input.view(), outputs, team);
  ExpectNear(outputs[0], expected, 0);
}

TEST(SelfEnsemble, BuffersAreUsedAgain) {
  const auto model = ConvEnsemble();
  SerialParallel serial;
  std::vector<Tensor> outputs;
  const auto buffers = [&] {
    std::vector<const void*> all;
    for (const Tensor& tensor : outputs) all.push_back(tensor.view().bytes);
    return all;
  };
  for (const auto& [h, w] : kSizes) {
    SCOPED_TRACE(StrCat(h, "x", w));
    model->Run(NoiseInput(3, h, w, 1).view(), outputs, serial);
    const std::vector<const void*> first = buffers();
    const Tensor input = NoiseInput(3, h, w, 2);
    model->Run(input.view(), outputs, serial);
    EXPECT_EQ(buffers(), first);
    ExpectNear(outputs[0], Result(*model, input), 0);
  }
}

TEST(SelfEnsemble, MemoryIsThatOfBothShapes) {
  const FakeConv plain({.scale = 2});
  const auto model = MakeSelfEnsemble(std::make_unique<FakeConv>(FakeConvOptions{.scale = 2}));
  const std::size_t own = 3 * sizeof(float) * 20 * (1 + 4);  // a turned input and the mean
  EXPECT_EQ(model->RunBytes(10, 2), plain.RunBytes(10, 2) + plain.RunBytes(2, 10) + own);
  const std::size_t square = 3 * sizeof(float) * 25 * (1 + 4);
  EXPECT_EQ(model->RunBytes(5, 5), plain.RunBytes(5, 5) + square);
}

}  // namespace
}  // namespace tessera
