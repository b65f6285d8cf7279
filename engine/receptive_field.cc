#include "engine/receptive_field.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "engine/infer.h"

namespace tessera {
namespace {

constexpr std::size_t kAxes = 2;
constexpr double kSlack = 1e-6;  // of pixels, for sums of fractions that are whole numbers
// Scales and fields beyond this say nothing about pictures, and products of two do not overflow.
constexpr std::int64_t kMost = std::int64_t{1} << 24;

// Pixels from first to last.
struct Range {
  std::int64_t first = 0, last = -1;

  bool empty() const { return last < first; }
  void Include(const Range& other) {
    first = empty() ? other.first : std::min(first, other.first);
    last = std::max(last, other.last);
  }
};

struct ValueField {
  bool depends = false;  // on the input at all
  // Pixels per input pixel, and what an input crop's start has to be a multiple of.
  std::array<std::int64_t, kAxes> num{1, 1}, den{1, 1}, alignment{1, 1};
  std::array<Range, kAxes> needed;
  std::array<Range, kAxes> exact;  // needed to make the output to the bit
};

// The input pixels that a node needs for those of `output`, and `more` on both sides.
Range InputRange(const Range& output, const AxisField& field, double more) {
  const double inverse_scale = static_cast<double>(field.den) / static_cast<double>(field.num);
  const double first = static_cast<double>(output.first) * inverse_scale + field.lo - more;
  const double last = static_cast<double>(output.last) * inverse_scale + field.hi + more;
  return {static_cast<std::int64_t>(std::ceil(first - kSlack)),
          static_cast<std::int64_t>(std::floor(last + kSlack))};
}

// The field of a node on its input i, or nullopt.
std::optional<SpatialField> FieldOf(const Graph& graph, const Node& node, std::size_t i) {
  const std::vector<TensorInfo> inputs = InputInfos(graph, node);
  const std::vector<TensorInfo> outputs = OutputInfos(graph, node);
  if (node.def->field == nullptr || inputs[i].shape.rank() != 4 || outputs[0].shape.rank() != 4) {
    return std::nullopt;
  }
  return node.def->field({node.op, inputs, outputs}, i);
}

}  // namespace

std::optional<ReceptiveField> FindReceptiveField(const Graph& graph) {
  if (graph.inputs.empty() || graph.value(graph.inputs[0]).info.shape.rank() != 4) {
    return std::nullopt;
  }
  std::vector<ValueField> values(graph.values.size());
  const auto at = [&](ValueId id) -> ValueField& { return values[static_cast<std::size_t>(id)]; };
  at(graph.inputs[0]).depends = true;

  // Forwards: scales and alignment.
  struct Edge {
    ValueId from, to;
    SpatialField field;
  };
  std::vector<Edge> edges;
  for (const Node& node : graph.nodes) {
    ValueField result;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue || !at(node.inputs[i]).depends) continue;
      const std::optional<SpatialField> field = FieldOf(graph, node, i);
      if (!field) return std::nullopt;
      const ValueField& in = at(node.inputs[i]);
      for (std::size_t a = 0; a < kAxes; ++a) {
        const AxisField& f = (*field)[a];
        const std::int64_t gcd = std::gcd(in.num[a] * f.num, in.den[a] * f.den);
        const std::int64_t num = in.num[a] * f.num / gcd, den = in.den[a] * f.den / gcd;
        if (result.depends && (num != result.num[a] || den != result.den[a])) return std::nullopt;
        result.num[a] = num;
        result.den[a] = den;
        result.alignment[a] = std::lcm(result.alignment[a], in.alignment[a]);
        if (std::max({num, den, result.alignment[a]}) > kMost) return std::nullopt;
        result.alignment[a] = std::lcm(result.alignment[a], den);
        if (result.alignment[a] > kMost) return std::nullopt;
      }
      result.depends = true;
      edges.push_back({node.inputs[i], node.outputs[0], *field});
    }
    for (ValueId v : node.outputs) {
      if (v != kNoValue) at(v) = result;
    }
  }

  // Backwards: which pixels of each value the output needs whose input block is [0, alignment).
  ValueField& out = at(graph.outputs[0]);
  if (!out.depends) return std::nullopt;
  for (std::size_t a = 0; a < kAxes; ++a) {
    out.needed[a] = out.exact[a] = {0, out.alignment[a] * out.num[a] / out.den[a] - 1};
  }
  for (auto edge = edges.rbegin(); edge != edges.rend(); ++edge) {
    const ValueField& to = at(edge->to);
    ValueField& from = at(edge->from);
    for (std::size_t a = 0; a < kAxes; ++a) {
      const AxisField& f = edge->field[a];
      if (to.needed[a].empty()) continue;
      from.needed[a].Include(InputRange(to.needed[a], f, 0));
      from.exact[a].Include(InputRange(to.exact[a], f, f.rounding));
    }
  }
  const ValueField& in = at(graph.inputs[0]);
  for (const Range& range : in.exact) {
    if (range.first < -kMost || range.last > kMost) return std::nullopt;
  }
  const auto before = [](const Range& range) {
    return static_cast<int>(std::max<std::int64_t>(0, -range.first));
  };
  const auto axis = [&](std::size_t a) {
    const auto after = [&](const Range& range) {
      return static_cast<int>(std::max<std::int64_t>(0, range.last - (out.alignment[a] - 1)));
    };
    return ReceptiveField::Axis{.scale_num = out.num[a],
                                .scale_den = out.den[a],
                                .before = before(in.needed[a]),
                                .after = after(in.needed[a]),
                                .exact_before = before(in.exact[a]),
                                .exact_after = after(in.exact[a]),
                                .alignment = static_cast<int>(out.alignment[a])};
  };
  return ReceptiveField{axis(0), axis(1)};
}

bool ResizesToSizes(const Graph& graph) {
  constexpr std::size_t kSizes = 3;
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return node.op.type == "Resize" && node.inputs.size() > kSizes &&
           node.inputs[kSizes] != kNoValue;
  });
}

}  // namespace tessera
