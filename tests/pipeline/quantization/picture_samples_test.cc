#include "pipeline/quantization/picture_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/error.h"
#include "pipeline/image_writer.h"
#include "tests/engine/test_model.h"
#include "tests/temporary_folder.h"

namespace tessera {
namespace {

std::uint8_t& At(const Picture& picture, std::int64_t x, std::int64_t y, int channel) {
  return picture.Row<std::uint8_t>(y)[x * picture.format().channels + channel];
}

// Seeded noise; opaque.
Picture Noise(const PictureFormat& format) {
  Picture picture(format);
  std::uint32_t s = 1;
  for (std::int64_t y = 0; y < format.height; ++y) {
    for (std::int64_t x = 0; x < format.width; ++x) {
      for (int c = 0; c < format.channels; ++c) {
        s = s * 1664525 + 1013904223;
        At(picture, x, y, c) = c == 3 ? 255 : static_cast<std::uint8_t>(s >> 24);
      }
    }
  }
  return picture;
}

std::shared_ptr<Session> Network(const std::vector<std::int64_t>& dims) {
  TestModel m;
  m.Input("x", dims).Output("y").Node("Relu", {"x"}, {"y"});
  return m.Load();
}

TEST(FindTileShape, TakesTheDeclaredSize) {
  EXPECT_EQ(FindTileShape(*Network({1, 3, 40, 56})), (Shape{1, 3, 40, 56}));
  EXPECT_EQ(FindTileShape(*Network({-1, 1, -1, -1})), (Shape{1, 1, kSampleSide, kSampleSide}));
  EXPECT_EQ(FindTileShape(*Network({-1, -1, -1, -1}), 64), (Shape{1, 3, 64, 64}));
}

TEST(FindTileShape, TakesASizeThatTheNetworkAccepts) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Output("y");
  m.Node("SpaceToDepth", {"x"}, {"y"}, {{"blocksize", std::int64_t{24}}});
  EXPECT_EQ(FindTileShape(*m.Load(), 100), (Shape{1, 3, 120, 120}));
}

TEST(FindTileShape, RefusesOtherNetworks) {
  TestModel two;
  two.Input("a", {1, 3, 8, 8}).Input("b", {1, 3, 8, 8}).Output("y").Node("Add", {"a", "b"}, {"y"});
  EXPECT_THROW(FindTileShape(*two.Load()), Error);
  EXPECT_THROW(FindTileShape(*Network({1, 5, 8, 8})), Error);
  EXPECT_THROW(FindTileShape(*Network({1, 3})), Error);
}

// A tile is a part of the picture, and the whole picture is covered.
TEST(SampleTiles, AreSpreadOverThePicture) {
  Picture picture({.width = 100, .height = 80});
  for (std::int64_t y = 0; y < 80; ++y) {
    for (std::int64_t x = 0; x < 100; ++x) {
      At(picture, x, y, 0) = static_cast<std::uint8_t>(x);
      At(picture, x, y, 1) = static_cast<std::uint8_t>(y);
      At(picture, x, y, 2) = 7;
    }
  }
  const std::vector<Sample> samples = SampleTiles(picture, {1, 3, 20, 20}, 12);
  ASSERT_EQ(samples.size(), 12u);
  float least_x = 1, most_x = 0, least_y = 1, most_y = 0;
  for (const Sample& sample : samples) {
    ASSERT_EQ(sample.size(), 1u);
    ASSERT_EQ(sample[0].shape(), (Shape{1, 3, 20, 20}));
    const float* v = sample[0].data<float>();
    const float x = v[0] * 255, y = v[400] * 255;
    EXPECT_NEAR(v[19] * 255, x + 19, 1e-3);
    EXPECT_NEAR(v[399] * 255, x + 19, 1e-3);
    EXPECT_NEAR(v[400 + 399] * 255, y + 19, 1e-3);
    EXPECT_NEAR(v[800] * 255, 7, 1e-3);
    least_x = std::min(least_x, x / 80);
    most_x = std::max(most_x, x / 80);
    least_y = std::min(least_y, y / 60);
    most_y = std::max(most_y, y / 60);
  }
  EXPECT_LT(least_x, 0.2);
  EXPECT_GT(most_x, 0.8);
  EXPECT_LT(least_y, 0.2);
  EXPECT_GT(most_y, 0.8);
}

TEST(SampleTiles, OfAFileAreThoseOfThePicture) {
  TemporaryFolder folder;
  for (const int channels : {1, 3, 4}) {
    const Picture picture = Noise({.width = 61, .height = 90, .channels = channels});
    WritePicture(folder / "p.png", ImageFormat::kPng, picture, {.overwrite = true});
    PictureInput input(folder / "p.png");
    const std::vector<Sample> file = SampleTiles(input, {1, 3, 16, 24}, 9);
    const std::vector<Sample> memory = SampleTiles(picture, {1, 3, 16, 24}, 9);
    ASSERT_EQ(file.size(), memory.size());
    for (std::size_t i = 0; i < file.size(); ++i)
      EXPECT_THAT(file[i][0].values<float>(),
                  testing::ElementsAreArray(memory[i][0].values<float>()));
  }
}

TEST(DrawnTile, HasAllBrightnesses) {
  for (const Shape& shape : {Shape{1, 3, 128, 100}, Shape{1, 1, 16, 16}, Shape{1, 3, 1, 1}}) {
    const Tensor tile = std::move(DrawnTile(shape).at(0)),
                 again = std::move(DrawnTile(shape).at(0));
    EXPECT_EQ(tile.shape(), shape);
    const auto values = tile.values<const float>();
    EXPECT_TRUE(std::ranges::equal(values, again.values<const float>()));
    const auto [low, high] = std::ranges::minmax(values);
    EXPECT_GE(low, 0);
    EXPECT_LE(high, 1);
    EXPECT_GT(high - low, values.size() > 3 ? 0.9 : -1);
  }
}

TEST(SampleTiles, LargerThanThePictureReflectIt) {
  const Picture picture = Noise({.width = 10, .height = 6});
  const std::vector<Sample> samples = SampleTiles(picture, {1, 3, 16, 16}, 1);
  const float* v = samples[0][0].data<float>();
  // The picture lies in the middle: columns 3 to 12, rows 5 to 10.
  EXPECT_EQ(v[5 * 16 + 3], static_cast<float>(At(picture, 0, 0, 0)) / 255);
  EXPECT_EQ(v[4 * 16 + 3], static_cast<float>(At(picture, 0, 1, 0)) / 255);
  EXPECT_EQ(v[5 * 16 + 2], static_cast<float>(At(picture, 1, 0, 0)) / 255);
}

TEST(SampleFirst, TakesTheFirstFileThatCanBeRead) {
  TemporaryFolder folder;
  WriteBytes(folder / "broken.png", "no picture");
  WritePicture(folder / "good.png", ImageFormat::kPng, Noise({.width = 20, .height = 20}));
  const std::vector<std::filesystem::path> files = {folder / "none.png", folder / "broken.png",
                                                    folder / "good.png"};
  const auto found = SampleFirst(files, {1, 3, 8, 8}, 3, {});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->file, folder / "good.png");
  EXPECT_EQ(found->samples.size(), 3u);
  EXPECT_FALSE(SampleFirst(std::span(files).first(2), {1, 3, 8, 8}, 3, {}).has_value());
}

}  // namespace
}  // namespace tessera
