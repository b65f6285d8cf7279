#include "ops/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "ops/elements.h"

namespace tessera {
namespace {

constexpr std::int64_t kGrain = 16384;  // elements that are worth a task

// A compile-time number of short columns (the block of DepthToSpace) lets the compiler turn the
// loop into vector interleaves.
template <int kColumns, typename T>
void CopyShortRows(const T* in, T* out, std::int64_t rows, std::int64_t row_stride,
                   std::int64_t column_stride) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (int c = 0; c < kColumns; ++c)
      out[r * kColumns + c] = in[r * row_stride + c * column_stride];
  }
}

// Transposes in tiles: both sides touch few cache lines at a time.
template <typename T>
void CopyTransposed(const T* in, T* out, std::int64_t rows, std::int64_t columns,
                    std::int64_t column_stride) {
  constexpr std::int64_t kTile = 16;
  for (std::int64_t c0 = 0; c0 < columns; c0 += kTile) {
    const std::int64_t c1 = std::min(columns, c0 + kTile);
    for (std::int64_t r0 = 0; r0 < rows; r0 += kTile) {
      const std::int64_t r1 = std::min(rows, r0 + kTile);
      for (std::int64_t r = r0; r < r1; ++r) {
        for (std::int64_t c = c0; c < c1; ++c) out[r * columns + c] = in[r + c * column_stride];
      }
    }
  }
}

template <typename T>
void CopyRows(const T* in, T* out, std::int64_t rows, std::int64_t row_stride, std::int64_t columns,
              std::int64_t column_stride) {
  if (column_stride == 1) {
    for (std::int64_t r = 0; r < rows; ++r) {
      std::memcpy(out + r * columns, in + r * row_stride,
                  static_cast<std::size_t>(columns) * sizeof(T));
    }
    return;
  }
  if (column_stride == 0) {
    for (std::int64_t r = 0; r < rows; ++r)
      std::fill_n(out + r * columns, columns, in[r * row_stride]);
    return;
  }
  if (row_stride == 1 && columns == 2) return CopyShortRows<2>(in, out, rows, 1, column_stride);
  if (row_stride == 1 && columns == 3) return CopyShortRows<3>(in, out, rows, 1, column_stride);
  if (row_stride == 1 && columns == 4) return CopyShortRows<4>(in, out, rows, 1, column_stride);
  if (row_stride == 1) return CopyTransposed(in, out, rows, columns, column_stride);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      out[r * columns + c] = in[r * row_stride + c * column_stride];
    }
  }
}

}  // namespace

StridedCopy::StridedCopy(DType dtype, std::span<const std::int64_t> dims,
                         std::span<const std::int64_t> strides, std::int64_t offset)
    : dtype_(dtype), offset_(offset) {
  std::array<std::int64_t, kMaxDims> merged{}, merged_strides{};
  std::size_t rank = 0;
  for (std::size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 0) outer_count_ = 0;
    if (dims[d] == 1) continue;
    if (rank > 0 && strides[d] == merged_strides[rank - 1] * merged[rank - 1]) {
      merged[rank - 1] *= dims[d];
      continue;
    }
    merged[rank] = dims[d];
    merged_strides[rank] = strides[d];
    ++rank;
  }
  if (outer_count_ == 0) return;
  if (rank > 0) columns_ = merged[0], column_stride_ = merged_strides[0];
  if (rank > 1) rows_ = merged[1], row_stride_ = merged_strides[1];
  for (std::size_t d = rank; d-- > 2;) {
    outer_dims_[static_cast<std::size_t>(outer_rank_)] = merged[d];
    outer_strides_[static_cast<std::size_t>(outer_rank_)] = merged_strides[d];
    ++outer_rank_;
    outer_count_ *= merged[d];
  }
}

template <typename T>
void StridedCopy::RunTyped(const T* in, T* out, Parallel& parallel) const {
  in += offset_;
  // A task is a group of rows, or a piece of one long row. All rows of all outer steps are
  // numbered through; a task stays within one outer step.
  const std::int64_t rows_per_task = std::clamp<std::int64_t>(kGrain / columns_, 1, rows_);
  const std::int64_t tasks_per_step = (rows_ + rows_per_task - 1) / rows_per_task;
  const std::int64_t pieces = (columns_ + 4 * kGrain - 1) / (4 * kGrain);
  const std::int64_t steps_per_task =
      std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, rows_ * columns_));
  const auto source = [&](std::int64_t step) {
    const T* from = in;
    for (int d = outer_rank_; d-- > 0;) {
      const auto i = static_cast<std::size_t>(d);
      from += step % outer_dims_[i] * outer_strides_[i];
      step /= outer_dims_[i];
    }
    return from;
  };
  if (steps_per_task > 1) {  // small steps
    const std::int64_t tasks = (outer_count_ + steps_per_task - 1) / steps_per_task;
    parallel.For(tasks, [&](std::int64_t task, int) {
      const std::int64_t end = std::min(outer_count_, (task + 1) * steps_per_task);
      for (std::int64_t step = task * steps_per_task; step < end; ++step) {
        CopyRows(source(step), out + step * rows_ * columns_, rows_, row_stride_, columns_,
                 column_stride_);
      }
    });
    return;
  }
  parallel.For(outer_count_ * tasks_per_step * pieces, [&](std::int64_t task, int) {
    const std::int64_t piece = task % pieces;
    const std::int64_t row = task / pieces % tasks_per_step * rows_per_task;
    const std::int64_t step = task / pieces / tasks_per_step;
    const T* from = source(step) + row * row_stride_;
    T* to = out + (step * rows_ + row) * columns_;
    const std::int64_t rows = std::min(rows_per_task, rows_ - row);
    if (pieces == 1) return CopyRows(from, to, rows, row_stride_, columns_, column_stride_);
    const std::int64_t begin = piece * 4 * kGrain;
    const std::int64_t n = std::min(4 * kGrain, columns_ - begin);
    CopyRows(from + begin * column_stride_, to + begin, 1, row_stride_, n, column_stride_);
  });
}

void StridedCopy::Run(const void* in, void* out, Parallel& parallel) const {
  if (outer_count_ == 0) return;
  DispatchSize(dtype_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    RunTyped(static_cast<const T*>(in), static_cast<T*>(out), parallel);
  });
}

std::unique_ptr<Kernel> MakeStridedCopyKernel(std::string_view name, const StridedCopy& copy) {
  class StridedCopyKernel final : public Kernel {
   public:
    StridedCopyKernel(std::string_view name, const StridedCopy& copy) : name_(name), copy_(copy) {}
    std::string_view name() const override { return name_; }
    void Run(const RunContext& context) const override {
      copy_.Run(context.inputs[0].bytes, context.outputs[0].bytes, context.parallel);
    }

   private:
    std::string_view name_;
    StridedCopy copy_;
  };
  return std::make_unique<StridedCopyKernel>(name, copy);
}

}  // namespace tessera
