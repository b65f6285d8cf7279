#include "engine/receptive_field.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace tessera {
namespace {

// Pixel p of a value needs the graph's input pixels [p * den / num + lo, p * den / num + hi].
struct Dependence {
  bool depends = false;  // on the input at all
  SpatialField axes{};
  std::array<std::int64_t, 2> alignment{1, 1};
};

// The field of an output through one operator on a value with this dependence.
AxisField Compose(const AxisField& value, const AxisField& op) {
  // Output pixel q needs the value's pixels [q * op.den / op.num + op.lo, ... + op.hi].
  const double input_per_value = static_cast<double>(value.den) / static_cast<double>(value.num);
  AxisField out;
  out.num = value.num * op.num;
  out.den = value.den * op.den;
  const std::int64_t gcd = std::gcd(out.num, out.den);
  out.num /= gcd;
  out.den /= gcd;
  out.lo = op.lo * input_per_value + value.lo;
  out.hi = op.hi * input_per_value + value.hi;
  return out;
}

// Adds a path; false if it has another scale than those before.
bool Merge(Dependence& into, const Dependence& path) {
  for (std::size_t a = 0; a < 2; ++a) {
    AxisField& axis = into.axes[a];
    const AxisField& other = path.axes[a];
    if (!into.depends) {
      axis = other;
    } else {
      if (axis.num != other.num || axis.den != other.den) return false;
      axis.lo = std::min(axis.lo, other.lo);
      axis.hi = std::max(axis.hi, other.hi);
    }
    into.alignment[a] = std::lcm(into.alignment[a], path.alignment[a]);
  }
  into.depends = true;
  return true;
}

ReceptiveField::Axis ToAxis(const AxisField& f, std::int64_t alignment) {
  constexpr double kSlack = 1e-6;  // of pixels, for sums of fractions that are whole numbers
  ReceptiveField::Axis axis;
  axis.scale_num = f.num;
  axis.scale_den = f.den;
  axis.alignment = static_cast<int>(alignment);
  // Whole input pixels that the block of output pixels made from input pixels [a, b) needs beyond
  // it: the first output pixel is at a, the last one at b - 1 / scale.
  const double inverse_scale = static_cast<double>(f.den) / static_cast<double>(f.num);
  axis.before = std::max(0, static_cast<int>(std::floor(-f.lo + kSlack)));
  axis.after = std::max(0, static_cast<int>(std::floor(1 - inverse_scale + f.hi + kSlack)));
  return axis;
}

}  // namespace

std::optional<ReceptiveField> FindReceptiveField(const Graph& graph) {
  if (graph.inputs.empty()) return std::nullopt;
  std::vector<Dependence> values(graph.values.size());
  Dependence& input = values[static_cast<std::size_t>(graph.inputs[0])];
  input.depends = true;
  if (graph.value(graph.inputs[0]).info.shape.rank() != 4) return std::nullopt;

  for (const Node& node : graph.nodes) {
    std::vector<TensorInfo> inputs, outputs;
    Dependence result;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue) continue;
      const Dependence& on = values[static_cast<std::size_t>(node.inputs[i])];
      if (!on.depends) continue;
      if (inputs.empty()) {
        for (ValueId v : node.inputs) {
          inputs.push_back(v == kNoValue ? TensorInfo{} : graph.value(v).info);
        }
        for (ValueId v : node.outputs) {
          outputs.push_back(v == kNoValue ? TensorInfo{} : graph.value(v).info);
        }
      }
      if (node.def->field == nullptr || inputs[i].shape.rank() != 4 ||
          outputs[0].shape.rank() != 4) {
        return std::nullopt;
      }
      const std::optional<SpatialField> field = node.def->field({node.op, inputs, outputs}, i);
      if (!field) return std::nullopt;
      Dependence path = on;
      for (std::size_t a = 0; a < 2; ++a) {
        path.axes[a] = Compose(on.axes[a], (*field)[a]);
        path.alignment[a] = std::lcm(on.alignment[a], path.axes[a].den);
      }
      if (!Merge(result, path)) return std::nullopt;
    }
    for (ValueId v : node.outputs) {
      if (v != kNoValue) values[static_cast<std::size_t>(v)] = result;
    }
  }
  const Dependence& out = values[static_cast<std::size_t>(graph.outputs[0])];
  if (!out.depends) return std::nullopt;
  ReceptiveField field;
  field.height = ToAxis(out.axes[0], out.alignment[0]);
  field.width = ToAxis(out.axes[1], out.alignment[1]);
  return field;
}

}  // namespace tessera
