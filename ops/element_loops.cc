#include "ops/element_loops.h"

#include <vector>

namespace tessera {

ElementLoops::ElementLoops(std::span<const std::int64_t> dims, std::span<const Strides> strides) {
  // Merged from the innermost dimension outwards: entry 0 is the row.
  std::array<std::int64_t, Shape::kMaxRank> merged{};
  std::array<Strides, kMaxOperands> merged_strides{};
  std::size_t rank = 0;
  for (std::size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 0) rows_ = 0;
    if (dims[d] == 1) continue;
    bool fits = rank > 0;
    for (std::size_t k = 0; k < strides.size() && fits; ++k) {
      fits = strides[k][d] == merged_strides[k][rank - 1] * merged[rank - 1];
    }
    if (fits) {
      merged[rank - 1] *= dims[d];
      continue;
    }
    merged[rank] = dims[d];
    for (std::size_t k = 0; k < strides.size(); ++k) merged_strides[k][rank] = strides[k][d];
    ++rank;
  }
  if (rows_ == 0) return;
  // Rows of a single element where no dimension is left in which the output is contiguous.
  const std::size_t first = rank > 0 && merged_strides[0][0] == 1 ? 1 : 0;
  if (first == 1) {
    row_length_ = merged[0];
    for (std::size_t k = 0; k < strides.size(); ++k) row_strides_[k] = merged_strides[k][0];
  } else {
    row_strides_.fill(1);
  }
  for (std::size_t d = rank; d-- > first; ++outer_rank_) {
    const auto to = static_cast<std::size_t>(outer_rank_);
    outer_dims_[to] = merged[d];
    rows_ *= merged[d];
    for (std::size_t k = 0; k < strides.size(); ++k) outer_strides_[k][to] = merged_strides[k][d];
  }
}

ElementLoops ElementLoops::Broadcast(const Shape& out, std::span<const Shape> inputs) {
  std::vector<Strides> strides;
  strides.push_back(RowMajorStrides(out));
  for (const Shape& in : inputs) {
    const auto own = RowMajorStrides(in);
    Strides s{};
    for (int i = 0; i < in.rank(); ++i) {
      const int to = i + out.rank() - in.rank();
      if (in[i] != 1) s[static_cast<std::size_t>(to)] = own[static_cast<std::size_t>(i)];
    }
    strides.push_back(s);
  }
  return {out.dims(), strides};
}

ElementLoops ElementLoops::Same(const Shape& shape, Layout layout) {
  const auto same = BlockedOperand::kSame;
  return layout == Layout::kBlocked ? Blocked(shape, {&same, 1}, {&shape, 1})
                                    : Broadcast(shape, {&shape, 1});
}

ElementLoops ElementLoops::Blocked(const Shape& nchw, std::span<const BlockedOperand> inputs,
                                   std::span<const Shape> input_shapes) {
  const BlockedLayout out(nchw);
  const std::array<std::int64_t, 4> dims{out.images, out.blocks, out.height, out.width * out.lanes};
  const Strides same{out.image_stride, out.plane_stride, out.row_stride, 1};
  std::vector<Strides> strides{same};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    switch (inputs[i]) {
      case BlockedOperand::kSame:
        strides.push_back(same);
        break;
      case BlockedOperand::kScalar:
        strides.push_back({});
        break;
      case BlockedOperand::kChannels:
        strides.push_back({0, out.lanes, 0, 0});
        break;
      case BlockedOperand::kPixel: {
        const BlockedLayout in(input_shapes[i]);
        strides.push_back({in.images == 1 ? 0 : in.image_stride, in.plane_stride, 0, 0});
        break;
      }
    }
  }
  return {dims, strides};
}

}  // namespace tessera
