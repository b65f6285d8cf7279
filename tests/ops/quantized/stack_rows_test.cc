#include "ops/quantized/stack_rows.h"

#include <gtest/gtest.h>

#include "tests/every_target.h"
#include "tests/ops/quantized/guarded_tensor.h"

namespace tessera {
namespace {

TEST(StackRows, PutsPixelsOfThreeRowsSideBySide) {
  constexpr std::int64_t kRows = StackedRows::kRows, kPixelBytes = StackedRows::kPixelBytes;
  for (const std::int64_t pixels : {0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 48, 255}) {
    const GuardedTensor in(DType::kUint8, {kRows, pixels * kPixelBytes}, Layout::kRowMajor);
    auto* bytes = in.data<std::uint8_t>();
    for (std::int64_t i = 0; i < kRows * pixels * kPixelBytes; ++i) {
      bytes[i] = static_cast<std::uint8_t>(i * 37 + i / 256);
    }
    const std::int64_t row = pixels * kPixelBytes;
    OnEveryTarget([&] {
      const GuardedTensor out(DType::kUint8, {pixels * StackedRows::kBytes}, Layout::kRowMajor);
      auto* stacked = out.data<std::uint8_t>();
      StackRows({bytes, bytes + row, bytes + 2 * row}, pixels, stacked);
      for (std::int64_t i = 0; i < pixels * StackedRows::kBytes; ++i) {
        const std::int64_t x = i / StackedRows::kBytes, r = i / kPixelBytes % kRows;
        ASSERT_EQ(stacked[i], bytes[r * row + x * kPixelBytes + i % kPixelBytes])
            << pixels << " pixels, byte " << i;
      }
    });
  }
}

}  // namespace
}  // namespace tessera
