// A tensor seen along one of its axes: what Softmax, ArgMax, TopK, CumSum and their kin work on.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/parallel.h"
#include "ops/tensor.h"

namespace tessera {

// [outer, count, inner]: element i of line (o, column) is at o * count * inner + i * inner +
// column.
struct AxisView {
  AxisView(std::int64_t outer_size, std::int64_t count_size, std::int64_t inner_size)
      : outer(outer_size), count(count_size), inner(inner_size) {}
  AxisView(const Shape& s, int axis)
      : AxisView(s.NumElements(0, axis), s[axis], s.NumElements(axis + 1, s.rank())) {}
  // Everything from `axis` on is one line.
  static AxisView Flattened(const Shape& s, int axis) {
    return {s.NumElements(0, axis), s.NumElements(axis, s.rank()), 1};
  }

  std::int64_t Offset(std::int64_t o, std::int64_t column) const {
    return o * count * inner + column;
  }

  // Calls lines(o, column, n, thread) so that each line is in one call: n neighbours, of columns
  // `column`, `column` + 1, ..., which are at most kMaxColumns.
  static constexpr std::int64_t kMaxColumns = 64;
  template <typename Lines>
  void ForLines(Parallel& parallel, const Lines& lines) const {
    constexpr std::int64_t kGrain = 16384;  // elements that are worth a task
    const std::int64_t groups = (inner + kMaxColumns - 1) / kMaxColumns;
    const std::int64_t units = outer * groups;
    const std::int64_t elements = std::max<std::int64_t>(1, count) * std::min(inner, kMaxColumns);
    const std::int64_t per_task =
        std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, elements));
    parallel.For((units + per_task - 1) / per_task, [&](std::int64_t task, int thread) {
      const std::int64_t end = std::min(units, (task + 1) * per_task);
      for (std::int64_t unit = task * per_task; unit < end; ++unit) {
        const std::int64_t column = unit % groups * kMaxColumns;
        lines(unit / groups, column, std::min(kMaxColumns, inner - column), thread);
      }
    });
  }

  std::int64_t outer, count, inner;
};

}  // namespace tessera
