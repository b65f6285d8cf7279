#include "ops/reorder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "simd/cpu_target.h"
#include "tests/ops/byte_tensors.h"
#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

class ReorderTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(ForceCpuTarget(GetParam())); }
  void TearDown() override { ForceCpuTarget(AvailableCpuTargets().front()); }
};

TEST_P(ReorderTest, PutsEveryElementInItsPlaceAndBack) {
  std::mt19937 random(1);
  for (const Shape& shape :
       {Shape{1, 3, 5, 7}, Shape{2, 16, 3, 4}, Shape{1, 48, 9, 33}, Shape{1, 1, 1, 1},
        Shape{3, 17, 2, 1}, Shape{1, 64, 70, 64}, Shape{1, 12, 4, 100}, Shape{0, 4, 2, 2}}) {
    for (int threads : {1, 3}) {
      const Tensor planar = RandomTensor(shape, random);
      Tensor blocked(DType::kFloat32, shape, Layout::kBlocked);
      std::fill_n(blocked.data<float>(), blocked.bytes() / sizeof(float), -77.f);
      RunKernel(*MakeReorder(shape, Layout::kRowMajor, Layout::kBlocked), {planar.view()}, blocked,
                threads);
      const BlockedLayout b(shape);
      const float* p = planar.data<float>();
      for (std::int64_t n = 0; n < shape[0]; ++n) {
        for (std::int64_t c = 0; c < b.blocks * b.lanes; ++c) {
          for (std::int64_t y = 0; y < shape[2]; ++y) {
            for (std::int64_t x = 0; x < shape[3]; ++x) {
              const float wanted = c < shape[1] ? *p++ : 0.f;
              const float got =
                  blocked.data<float>()[n * b.image_stride + c / b.lanes * b.plane_stride +
                                        y * b.row_stride + x * b.lanes + c % b.lanes];
              ASSERT_EQ(got, wanted) << shape << " at " << n << ' ' << c << ' ' << y << ' ' << x;
            }
          }
        }
      }
      Tensor back(DType::kFloat32, shape);
      RunKernel(*MakeReorder(shape, Layout::kBlocked, Layout::kRowMajor), {blocked.view()}, back,
                threads);
      ASSERT_TRUE(std::equal(planar.values<float>().begin(), planar.values<float>().end(),
                             back.values<float>().begin()))
          << shape;
    }
  }
}

TEST_P(ReorderTest, PutsEveryByteInItsPlaceAndBack) {
  std::mt19937 random(2);
  for (const Shape& shape :
       {Shape{1, 3, 5, 7}, Shape{2, 16, 3, 4}, Shape{1, 48, 9, 33}, Shape{1, 1, 1, 1},
        Shape{3, 17, 2, 1}, Shape{1, 64, 70, 64}, Shape{2, 4, 4, 100}, Shape{0, 4, 2, 2},
        Shape{1, 100, 4, 4}, Shape{1, 5, 1, 17}}) {
    for (int threads : {1, 3}) {
      const Tensor planar = RandomBytes(shape, DType::kInt8, random);
      const ChannelsLastLayout l(shape);
      Tensor pixels(DType::kInt8, shape, Layout::kChannelsLast);
      std::fill_n(pixels.data<std::uint8_t>(), pixels.bytes(), std::uint8_t{77});
      RunKernel(*MakeReorder(shape, Layout::kRowMajor, Layout::kChannelsLast), {planar.view()},
                pixels, threads);
      const std::uint8_t* p = planar.data<std::uint8_t>();
      for (std::int64_t n = 0; n < shape[0]; ++n) {
        for (std::int64_t c = 0; c < l.pixel_stride; ++c) {
          for (std::int64_t i = 0; i < shape[2] * shape[3]; ++i) {
            const int wanted = c < shape[1] ? *p++ : 0;
            const int got =
                pixels.data<std::uint8_t>()[n * l.image_stride + i * l.pixel_stride + c];
            ASSERT_EQ(got, wanted) << shape << " at " << n << ' ' << c << ' ' << i;
          }
        }
      }
      // Nobody may depend on the channels that pad a pixel.
      Tensor dirty = Reordered(planar, Layout::kChannelsLast);
      Tensor back(DType::kInt8, shape);
      RunKernel(*MakeReorder(shape, Layout::kChannelsLast, Layout::kRowMajor), {dirty.view()}, back,
                threads);
      ExpectClose(back, planar, 0);
    }
  }
}

TEST_P(ReorderTest, RefusesWhatIsNoImage) {
  EXPECT_THROW(MakeReorder({1, 2, 3}, Layout::kRowMajor, Layout::kBlocked), Error);
  EXPECT_THROW(MakeReorder({1, 2, 3, 4}, Layout::kBlocked, Layout::kBlocked), Error);
  EXPECT_THROW(MakeReorder({1, 2, 3, 4}, Layout::kBlocked, Layout::kChannelsLast), Error);
}

INSTANTIATE_TEST_SUITE_P(Targets, ReorderTest, testing::ValuesIn(AvailableCpuTargets()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tessera
