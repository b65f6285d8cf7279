// The loop nest of elementwise operators: broadcasting and blocked layouts are both a matter of
// strides, so that a kernel only has to know rows.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "ops/parallel.h"
#include "ops/tensor.h"

namespace tessera {

class ElementLoops {
 public:
  static constexpr int kMaxOperands = 4;  // the output, and up to three inputs
  using Strides = std::array<std::int64_t, Shape::kMaxRank>;
  using Offsets = std::array<std::int64_t, kMaxOperands>;

  // A nest over `dims`, outermost first. strides[k] are those of operand k in elements, one for
  // each dimension; wherever the output's stride is 1, those of the others are 0 or 1, or the
  // caller minds RowStride. Neighbouring dimensions are merged where all operands allow.
  ElementLoops(std::span<const std::int64_t> dims, std::span<const Strides> strides);

  // Row-major operands that are broadcast onto a row-major output (operand 0).
  static ElementLoops Broadcast(const Shape& out, std::span<const Shape> inputs);

  // One input of the output's shape and layout.
  static ElementLoops Same(const Shape& shape, Layout layout);

  // How an operand lies beside an output in Layout::kBlocked.
  enum class BlockedOperand : std::uint8_t {
    kSame,      // blocked, shape of the output
    kScalar,    // one element
    kChannels,  // a vector of lanes for each channel block, the same for every image
    kPixel,     // blocked [N or 1, C, 1, 1]
  };
  // An output of shape `nchw` (operand 0), and inputs. Rows hold whole pixels; kChannels and kPixel
  // operands stay at one vector (IsConstant), or move along rows of one pixel a plane and one lane.
  static ElementLoops Blocked(const Shape& nchw, std::span<const BlockedOperand> inputs,
                              std::span<const Shape> input_shapes);

  std::int64_t row_length() const { return row_length_; }
  // Whether operand k stays at its place while the output moves along a row.
  bool IsConstant(int k) const { return RowStride(k) == 0; }
  // How far operand k moves along a row for each element of the output.
  std::int64_t RowStride(int k) const { return row_strides_[static_cast<std::size_t>(k)]; }

  // Calls row(offsets, n): operand k of the next n elements of the output starts at offsets[k].
  // Rows are cut and grouped to share the work; cuts fall on whole vectors.
  template <typename RowFunction>
  void Run(Parallel& parallel, const RowFunction& row) const;

 private:
  static constexpr std::int64_t kGrain = 16384;  // elements that are worth a task

  int outer_rank_ = 0;
  std::int64_t rows_ = 1, row_length_ = 1;
  std::array<std::int64_t, Shape::kMaxRank> outer_dims_{};
  std::array<Strides, kMaxOperands> outer_strides_{};
  Offsets row_strides_{};
};

template <typename RowFunction>
void ElementLoops::Run(Parallel& parallel, const RowFunction& row) const {
  if (rows_ == 0 || row_length_ == 0) return;
  const std::int64_t pieces = (row_length_ + kGrain - 1) / kGrain;
  const std::int64_t rows_per_task = std::max<std::int64_t>(1, kGrain / row_length_);
  const std::int64_t tasks = (rows_ + rows_per_task - 1) / rows_per_task * pieces;
  auto task = [&](std::int64_t index, int) {
    const std::int64_t begin = index % pieces * kGrain;
    const std::int64_t n = std::min(kGrain, row_length_ - begin);
    const std::int64_t first = index / pieces * rows_per_task;
    const std::int64_t last = std::min(rows_, first + rows_per_task);

    std::array<std::int64_t, Shape::kMaxRank> at{};
    Offsets offsets{};
    for (std::size_t k = 0; k < kMaxOperands; ++k) offsets[k] = begin * row_strides_[k];
    std::int64_t rest = first;
    for (int d = outer_rank_; d-- > 0;) {
      const auto i = static_cast<std::size_t>(d);
      at[i] = rest % outer_dims_[i];
      rest /= outer_dims_[i];
      for (std::size_t k = 0; k < kMaxOperands; ++k) offsets[k] += at[i] * outer_strides_[k][i];
    }
    for (std::int64_t r = first; r < last; ++r) {
      row(offsets, n);
      for (int d = outer_rank_; d-- > 0;) {
        const auto i = static_cast<std::size_t>(d);
        const bool carry = ++at[i] == outer_dims_[i];
        const std::int64_t step = carry ? 1 - outer_dims_[i] : 1;
        for (std::size_t k = 0; k < kMaxOperands; ++k) offsets[k] += step * outer_strides_[k][i];
        if (!carry) break;
        at[i] = 0;
      }
    }
  };
  if (tasks == 1) {
    task(0, 0);
  } else {
    parallel.For(tasks, task);
  }
}

}  // namespace tessera
