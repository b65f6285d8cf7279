// Running kernels by themselves, for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "ops/op.h"
#include "ops/reorder.h"
#include "simd/cpu_target.h"

namespace tessera {

// Threads that are made for each call.
class TestThreads final : public Parallel {
 public:
  explicit TestThreads(int threads) : threads_(threads) {}
  int num_threads() const override { return threads_; }
  void For(std::int64_t count, FunctionRef<void(std::int64_t, int)> body) override {
    std::atomic<std::int64_t> next = 0;
    std::vector<std::exception_ptr> errors(static_cast<std::size_t>(threads_));
    std::vector<std::thread> team;
    for (int t = 0; t < threads_; ++t) {
      team.emplace_back([&, t] {
        try {
          for (std::int64_t i = next++; i < count; i = next++) body(i, t);
        } catch (...) {
          errors[static_cast<std::size_t>(t)] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : team) thread.join();
    for (const std::exception_ptr& error : errors) {
      if (error) std::rethrow_exception(error);
    }
  }

 private:
  int threads_;
};

// float32, uniform in [-1, 1).
inline Tensor RandomTensor(const Shape& shape, std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  Tensor t(DType::kFloat32, shape);
  for (float& v : t.values<float>()) v = uniform(random);
  return t;
}

// Runs `kernel` once on `threads` threads, with scratch memory that is filled with NaN.
inline void RunKernel(const Kernel& kernel, const std::vector<TensorView>& inputs, Tensor& output,
                      int threads) {
  TestThreads team(threads);
  const std::size_t stride = RoundUp(kernel.ScratchBytesPerThread(), kAlignment);
  AlignedBuffer scratch(stride * static_cast<std::size_t>(threads));
  std::fill_n(scratch.data(), scratch.size(), std::byte{0xFF});
  const std::vector<TensorView> outputs = {output.view()};
  kernel.Run({.inputs = inputs,
              .outputs = outputs,
              .parallel = team,
              .scratch = scratch.data(),
              .scratch_stride = stride});
}

inline Tensor ToLayout(const Tensor& t, Layout layout) {
  if (t.layout() == layout) return t.Clone();
  Tensor out(t.dtype(), t.shape(), layout);
  RunKernel(*MakeReorder(t.shape(), t.layout(), layout), {t.view()}, out, 1);
  return out;
}

// A test for each instruction set, by its name.
class TargetTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(ForceCpuTarget(GetParam())); }
  void TearDown() override { ForceCpuTarget(AvailableCpuTargets().front()); }

  std::mt19937 random_{20240607};
};

}  // namespace tessera
