// Copies that only rearrange: Transpose, Slice, Expand, DepthToSpace and their kin are all a
// row-major output whose elements come from strided places of the input.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "ops/op.h"

namespace tessera {

// out[i0, i1, ...] = in[offset + i0 * strides[0] + i1 * strides[1] + ...], all in elements; `out`
// is row-major with dimensions `dims` (up to kMaxDims). Strides may be 0 or negative.
class StridedCopy {
 public:
  static constexpr std::size_t kMaxDims = 2 * Shape::kMaxRank;

  StridedCopy(DType dtype, std::span<const std::int64_t> dims,
              std::span<const std::int64_t> strides, std::int64_t offset = 0);

  void Run(const void* in, void* out, Parallel& parallel) const;

 private:
  template <typename T>
  void RunTyped(const T* in, T* out, Parallel& parallel) const;

  DType dtype_;
  std::int64_t offset_;
  // Merged where the strides allow. The two innermost dimensions are one step of the loop.
  int outer_rank_ = 0;
  std::int64_t outer_count_ = 1;
  std::array<std::int64_t, kMaxDims> outer_dims_{}, outer_strides_{};
  std::int64_t rows_ = 1, row_stride_ = 0;
  std::int64_t columns_ = 1, column_stride_ = 1;
};

// A kernel that copies input 0 to output 0 in this way.
std::unique_ptr<Kernel> MakeStridedCopyKernel(std::string_view name, const StridedCopy& copy);

}  // namespace tessera
