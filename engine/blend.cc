#include "engine/blend.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ops/error.h"

namespace tessera {
namespace {

bool SameBytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.bytes() == 0 || std::memcmp(a.view().bytes, b.view().bytes, a.bytes()) == 0);
}

bool IsFloat(DType type) {
  return type == DType::kFloat16 || type == DType::kFloat32 || type == DType::kFloat64;
}

// Whether input i of the node says how large or how many something is.
bool IsSize(const Node& node, std::size_t i) {
  const std::string& type = node.op.type;
  return type == "Range" || ((type == "Resize" || type == "Upsample") && i > 0);
}

bool SameValue(const Attributes::Value& a, const Attributes::Value& b) {
  using TensorPointer = std::shared_ptr<const Tensor>;
  const auto *x = std::get_if<TensorPointer>(&a), *y = std::get_if<TensorPointer>(&b);
  return x != nullptr && y != nullptr ? SameBytes(**x, **y) : a == b;
}

// The name of an attribute that the nodes do not have in common; empty if there is none.
std::string DifferentAttribute(const Attributes& a, const Attributes& b) {
  auto x = a.begin(), y = b.begin();
  for (; x != a.end() && y != b.end(); ++x, ++y) {
    if (x->first != y->first) return std::min(x->first, y->first);
    if (!SameValue(x->second, y->second)) return x->first;
  }
  if (x != a.end()) return x->first;
  return y != b.end() ? y->first : "";
}

// Equal ones stay what they are, infinity too.
template <typename T>
T BlendValues(T a, T b, T t) {
  return a == b ? a : std::lerp(a, b, t);
}

template <typename T, typename Blend>
void BlendAll(const Tensor& a, const Tensor& b, const Tensor& result, Blend&& blend) {
  const auto x = a.values<const T>(), y = b.values<const T>();
  const auto out = result.values<T>();
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = blend(x[i], y[i]);
}

std::shared_ptr<const Tensor> BlendTensors(const std::shared_ptr<const Tensor>& a,
                                           const std::shared_ptr<const Tensor>& b, float t) {
  // Not left to arithmetic: 0 * infinity is not 0, and -0 + 0 is not -0.
  if (t == 0 || SameBytes(*a, *b)) return a;
  if (t == 1) return b;
  auto result = std::make_shared<Tensor>(a->dtype(), a->shape());
  switch (a->dtype()) {
    case DType::kFloat16:
      BlendAll<std::uint16_t>(*a, *b, *result, [t](std::uint16_t x, std::uint16_t y) {
        return FloatToHalf(BlendValues(HalfToFloat(x), HalfToFloat(y), t));
      });
      break;
    case DType::kFloat32:
      BlendAll<float>(*a, *b, *result, [t](float x, float y) { return BlendValues(x, y, t); });
      break;
    default:
      BlendAll<double>(*a, *b, *result,
                       [t](double x, double y) { return BlendValues<double>(x, y, t); });
  }
  return result;
}

std::string DescribeConstant(const Tensor* constant) {
  return constant == nullptr
             ? "computed"
             : StrCat("a constant ", Name(constant->dtype()), " ", ToString(constant->shape()));
}

// Walks two graphs side by side and mixes the constants of the first.
class Blender {
 public:
  Blender(Graph& a, const Graph& b, float t)
      : a_(a), b_(b), t_(t), partners_(a.values.size(), kNoValue), weights_(a.values.size()) {}

  // Throws Error that says what is different, without the files.
  void Blend() {
    Pair("they have", "inputs", a_.inputs, b_.inputs);
    for (std::size_t i = 0; i < std::min(a_.input_decls.size(), b_.input_decls.size()); ++i) {
      const DType x = a_.input_decls[i].dtype, y = b_.input_decls[i].dtype;
      Require(x == y, "input ", i, " is ", Name(x), " in one and ", Name(y), " in the other");
    }
    for (std::size_t i = 0; i < std::min(a_.nodes.size(), b_.nodes.size()); ++i) {
      BlendNode(a_.nodes[i], b_.nodes[i]);
    }
    Require(a_.nodes.size() == b_.nodes.size(), "they have ", a_.nodes.size(), " and ",
            b_.nodes.size(), " nodes");
    Require(a_.outputs.size() == b_.outputs.size(), "they have ", a_.outputs.size(), " and ",
            b_.outputs.size(), " outputs");
    for (std::size_t i = 0; i < a_.outputs.size(); ++i) {
      BlendOperand(StrCat("output ", i), a_.outputs[i], b_.outputs[i], false);
    }
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      if (weights_[i] != nullptr) a_.values[i].info.constant = std::move(weights_[i]);
    }
  }

 private:
  void BlendNode(Node& a, const Node& b) {
    const std::string what = Describe(a);
    Require(a.op.type == b.op.type, what, " is ", Describe(b), " in the other");
    Require(a.op.opset == b.op.opset, what, ": is of opset ", a.op.opset, " in one and ",
            b.op.opset, " in the other");
    const std::string attribute = DifferentAttribute(a.op.attributes, b.op.attributes);
    Require(attribute.empty(), what, ": attribute '", attribute, "' is different");
    Require(a.inputs.size() == b.inputs.size(), what, ": has ", a.inputs.size(), " and ",
            b.inputs.size(), " inputs");
    for (std::size_t i = 0; i < a.inputs.size(); ++i) {
      BlendOperand(StrCat(what, ": input ", i), a.inputs[i], b.inputs[i], IsSize(a, i));
    }
    Pair(what + ": has", "outputs", a.outputs, b.outputs);
    for (std::size_t i = 0; i < a.bodies.size(); ++i) {
      auto body = std::make_shared<Graph>(*a.bodies[i]);
      Blender(*body, *b.bodies[i], t_).Blend();
      a.bodies[i] = std::move(body);
    }
  }

  // Values that are made here.
  void Pair(const std::string& what, const char* values, const std::vector<ValueId>& a,
            const std::vector<ValueId>& b) {
    Require(a.size() == b.size(), what, " ", a.size(), " and ", b.size(), " ", values);
    for (std::size_t i = 0; i < a.size(); ++i) {
      Require((a[i] == kNoValue) == (b[i] == kNoValue), what, " other ", values);
      if (a[i] != kNoValue) partners_[static_cast<std::size_t>(a[i])] = b[i];
    }
  }

  void BlendOperand(const std::string& what, ValueId a, ValueId b, bool is_size) {
    const Tensor *x = a_.Constant(a), *y = b_.Constant(b);
    if (x == nullptr && y == nullptr) {
      const ValueId partner = a == kNoValue ? kNoValue : partners_[static_cast<std::size_t>(a)];
      Require(partner == b, what, " is another value");
      return;
    }
    Require(x != nullptr && y != nullptr && x->dtype() == y->dtype() && x->shape() == y->shape(),
            what, " is ", DescribeConstant(x), " in one and ", DescribeConstant(y),
            " in the other");
    if (!IsFloat(x->dtype()) || is_size) {
      Require(SameBytes(*x, *y), what, ", ", DescribeConstant(x),
              ", has other values: only floating-point weights can be blended");
      return;
    }
    ValueId& partner = partners_[static_cast<std::size_t>(a)];
    Require(partner == kNoValue || SameBytes(*b_.Constant(partner), *y), what,
            " is used elsewhere, too, in one network but not in the other");
    if (partner != kNoValue) return;
    partner = b;
    weights_[static_cast<std::size_t>(a)] =
        BlendTensors(a_.value(a).info.constant, b_.value(b).info.constant, t_);
  }

  Graph& a_;
  const Graph& b_;
  float t_;
  std::vector<ValueId> partners_;  // of each value of a_ the value of b_, once that is known
  std::vector<std::shared_ptr<const Tensor>> weights_;  // of each value of a_; null: as it is
};

}  // namespace

Graph BlendWeights(Graph a, const Graph& b, float t) {
  const std::string files = StrCat(a.file, " and ", b.file, " cannot be blended: ");
  Require(t >= 0 && t <= 1, files, t, " is not between 0 and 1");
  try {
    Blender(a, b, t).Blend();
  } catch (const Error& error) {
    throw Error(files + error.what());
  }
  return a;
}

}  // namespace tessera
