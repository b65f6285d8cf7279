// What Gather, Scatter and their kin share: indices that count from the end where they are
// negative, and copies of slices.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ops/element_loops.h"
#include "ops/elements.h"
#include "ops/error.h"
#include "ops/parallel.h"
#include "ops/tensor.h"

namespace tessera {

using IndexTypes = TypeList<std::int32_t, std::int64_t>;

// Maps a possibly negative index to [0, dim). Throws Error when it is out of range.
inline std::int64_t ResolveIndex(std::int64_t index, std::int64_t dim) {
  Require(index >= -dim && index < dim, "index ", index, " is out of range for an axis of ", dim,
          " elements");
  return index < 0 ? index + dim : index;
}

// A row-major tensor seen as [outer, dim, slice]: its slices along an axis.
struct AxisSlices {
  AxisSlices(DType dtype, const Shape& shape, int axis)
      : outer(shape.NumElements(0, axis)),
        dim(shape[axis]),
        slice_bytes(shape.NumElements(axis + 1, shape.rank()) *
                    static_cast<std::int64_t>(SizeOf(dtype))) {}
  // Offset in bytes.
  std::int64_t Offset(std::int64_t o, std::int64_t i) const { return (o * dim + i) * slice_bytes; }

  std::int64_t outer, dim, slice_bytes;
};

// Tuples of indices, each of which chooses a slice of a tensor by its place along the axes from
// `first` on, one axis for each index (GatherND, ScatterND).
class IndexTuples {
 public:
  // Throws Error unless 1 <= length <= the number of axes from `first` on.
  IndexTuples(const Shape& data, int first, std::int64_t length)
      : length_(length), strides_(RowMajorStrides(data)) {
    Require(length >= 1 && length <= data.rank() - first, "tuples of ", length, " indices for ",
            data.rank() - first, " axes of ", data);
    const auto f = static_cast<std::size_t>(first), n = static_cast<std::size_t>(length);
    std::copy_n(data.begin() + first, n, dims_.begin());
    std::copy_n(strides_.begin() + f, n, strides_.begin());
    slice_ = data.NumElements(first + static_cast<int>(length), data.rank());
  }
  std::int64_t length() const { return length_; }
  std::int64_t slice() const { return slice_; }  // elements
  // Where the slice of a tuple begins, in elements. Throws Error for an index out of range.
  std::int64_t Offset(const std::int64_t* tuple) const {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(length_); ++i) {
      offset += ResolveIndex(tuple[i], dims_[i]) * strides_[i];
    }
    return offset;
  }

 private:
  std::int64_t length_, slice_;
  std::array<std::int64_t, Shape::kMaxRank> dims_{}, strides_;
};

// The axis of GatherElements and ScatterElements: element [i, j, ...] of the indices (and of what
// belongs to it) stands for the place of the data where the index replaces the coordinate along
// this axis.
class ElementAxis {
 public:
  // The data's operand in Loops.
  static constexpr int kData = 2;

  ElementAxis(const Shape& data, int axis)
      : axis_(static_cast<std::size_t>(axis)), dim_(data[axis]), strides_(RowMajorStrides(data)) {}
  // Operands: 0 and 1 are the indices and what has their shape; kData starts at element 0 of the
  // axis, to which Offset is to be added.
  ElementLoops Loops(const Shape& indices) const {
    const auto own = RowMajorStrides(indices);
    auto data = strides_;
    data[axis_] = 0;
    return {indices.dims(), std::array{own, own, data}};
  }
  // In elements. Throws Error for an index out of range.
  std::int64_t Offset(std::int64_t index) const {
    return ResolveIndex(index, dim_) * strides_[axis_];
  }

 private:
  std::size_t axis_;
  std::int64_t dim_;
  ElementLoops::Strides strides_;
};

// Throws Error unless indices have the rank of the data and, outside of the axis, do not reach
// beyond it.
inline void RequireElementIndices(const Shape& data, const Shape& indices, int axis) {
  bool fits = data.rank() == indices.rank();
  for (int d = 0; fits && d < data.rank(); ++d) fits = d == axis || indices[d] <= data[d];
  Require(fits, "indices ", indices, " do not fit data ", data, " along axis ", axis);
}

// Fills `out` with outer * inner slices of `bytes` each: slice (o, i) is at source(o, i). Slices of
// the size of an element are moved as such.
template <typename Source>
void CopySlices(std::int64_t outer, std::int64_t inner, std::int64_t bytes, void* out,
                Parallel& parallel, const Source& source) {
  const std::int64_t count = outer * inner;
  if (count == 0 || bytes == 0) return;
  const std::int64_t per_task = std::clamp<std::int64_t>((std::int64_t{1} << 16) / bytes, 1, count);
  const auto copy = [&](auto fixed_bytes, std::int64_t begin, std::int64_t end) {
    constexpr std::size_t kFixed = decltype(fixed_bytes)::value;
    const std::size_t n = kFixed > 0 ? kFixed : static_cast<std::size_t>(bytes);
    std::byte* to = static_cast<std::byte*>(out) + begin * bytes;
    std::int64_t o = begin / inner, i = begin % inner;
    for (std::int64_t slice = begin; slice < end; ++slice, to += n) {
      std::memcpy(to, source(o, i), n);
      if (++i == inner) i = 0, ++o;
    }
  };
  parallel.For((count + per_task - 1) / per_task, [&](std::int64_t task, int) {
    const std::int64_t begin = task * per_task, end = std::min(count, begin + per_task);
    switch (bytes) {
      case 1:
        return copy(std::integral_constant<std::size_t, 1>(), begin, end);
      case 2:
        return copy(std::integral_constant<std::size_t, 2>(), begin, end);
      case 4:
        return copy(std::integral_constant<std::size_t, 4>(), begin, end);
      case 8:
        return copy(std::integral_constant<std::size_t, 8>(), begin, end);
      default:
        return copy(std::integral_constant<std::size_t, 0>(), begin, end);
    }
  });
}

}  // namespace tessera
