// Channels-last tensors for tests, in memory that ends where the process may not read or write.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "ops/tensor.h"

namespace tessera {

class GuardedBytes {
 public:
  // Filled with 0xA5.
  explicit GuardedBytes(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    size_ = RoundUp(bytes, page) + page;
    memory_ = static_cast<std::byte*>(
        mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(memory_, MAP_FAILED);
    EXPECT_EQ(mprotect(memory_ + size_ - page, page, PROT_NONE), 0);
    begin_ = memory_ + (size_ - page - bytes);
    std::memset(begin_, 0xA5, bytes);
  }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  ~GuardedBytes() { munmap(memory_, size_); }

  std::uint8_t* data() const { return reinterpret_cast<std::uint8_t*>(begin_); }

 private:
  std::byte* memory_;
  std::byte* begin_;
  std::size_t size_;
};

// A uint8 tensor [N, C, H, W], channels-last.
class GuardedChannelsLast {
 public:
  explicit GuardedChannelsLast(const Shape& shape)
      : shape_(shape), layout_(shape), bytes_(static_cast<std::size_t>(layout_.NumBytes())) {}
  explicit GuardedChannelsLast(const Tensor& row_major) : GuardedChannelsLast(row_major.shape()) {
    ForEach([&](std::int64_t i, std::uint8_t& value) {
      value = row_major.data<const std::uint8_t>()[i];
    });
  }

  TensorView view() const { return {DType::kUint8, Layout::kChannelsLast, shape_, bytes_.data()}; }
  Tensor ToRowMajor() const {
    Tensor t(DType::kUint8, shape_);
    ForEach([&](std::int64_t i, std::uint8_t& value) { t.data<std::uint8_t>()[i] = value; });
    return t;
  }

 private:
  template <typename Body>
  void ForEach(const Body& body) const {
    std::int64_t i = 0;
    for (std::int64_t n = 0; n < layout_.images; ++n) {
      for (std::int64_t c = 0; c < layout_.channels; ++c) {
        for (std::int64_t y = 0; y < layout_.height; ++y) {
          for (std::int64_t x = 0; x < layout_.width; ++x) {
            body(i++, bytes_.data()[n * layout_.image_stride + y * layout_.row_stride +
                                    x * layout_.pixel_stride + c]);
          }
        }
      }
    }
  }

  Shape shape_;
  ChannelsLastLayout layout_;
  GuardedBytes bytes_;
};

}  // namespace tessera
