// Some of the axes of a tensor, and the walk over the places that they lead to.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera {

// Dimensions and strides (in elements), outermost first; neighbours are merged.
struct AxisGroup {
  std::vector<std::int64_t> dims, strides;

  void Add(std::int64_t dim, std::int64_t stride) {
    if (!dims.empty() && strides.back() == dim * stride) {
      dims.back() *= dim;
      strides.back() = stride;
    } else if (dim != 1) {
      dims.push_back(dim);
      strides.push_back(stride);
    }
  }
  std::int64_t Count() const {
    std::int64_t n = 1;
    for (const std::int64_t d : dims) n *= d;
    return n;
  }

  // Offset of place `index` in row-major order.
  std::int64_t Offset(std::int64_t index) const {
    std::int64_t offset = 0;
    for (std::size_t d = dims.size(); d-- > 0; index /= dims[d]) {
      offset += index % dims[d] * strides[d];
    }
    return offset;
  }

  // Calls f(offset) for places [first, last) in order.
  template <typename F>
  void ForEach(std::int64_t first, std::int64_t last, const F& f) const {
    if (first >= last) return;
    if (dims.empty()) return f(std::int64_t{0});
    // Whole runs of the innermost dimension, each found anew.
    const std::int64_t run = dims.back(), stride = strides.back();
    while (first < last) {
      std::int64_t offset = Offset(first);
      const std::int64_t left = run - first % run;
      const std::int64_t end = left < last - first ? first + left : last;
      for (; first < end; ++first, offset += stride) f(offset);
    }
  }
  template <typename F>
  void ForEach(const F& f) const {
    ForEach(0, Count(), f);
  }
};

}  // namespace tessera
