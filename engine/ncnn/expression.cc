#include "engine/ncnn/expression.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

namespace tessera {
namespace {

// An integer or a float, either known or the output of a node.
struct Term {
  bool is_float = false;
  std::optional<double> known;
  ValueId value = kNoValue;
};

class Evaluator {
 public:
  Evaluator(NcnnLayerContext& layer, std::string_view text) : layer_(layer), text_(text) {}

  std::vector<Term> List() {
    std::vector<Term> terms = {Parse(0)};
    while (Accept(',')) terms.push_back(Parse(0));
    Check(text_.empty());
    return terms;
  }

  ValueId AsNode(const Term& term) {
    if (term.value != kNoValue) return term.value;
    if (term.is_float) {
      return layer_.Constant(Tensor::FromVector<float>({1}, {static_cast<float>(*term.known)}));
    }
    return layer_.Int64s({static_cast<std::int64_t>(*term.known)});
  }

  Term ToInt(const Term& term) {
    if (!term.is_float) return term;
    if (term.known) return Known(false, std::trunc(*term.known));
    return {false, {}, Node("Cast", {term}, {{"to", DTypeToOnnx(DType::kInt64)}})};
  }

 private:
  void Check(bool condition) const {
    layer_.Check(condition, "cannot read the expression at '", text_.substr(0, 40), "'");
  }

  bool Accept(char c) {
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }

  Term Known(bool is_float, double value) const {
    layer_.Check(std::abs(value) <= std::numeric_limits<std::int32_t>::max(),
                 "a number of its expression is too large");
    return {is_float, value, kNoValue};
  }

  Term ToFloat(const Term& term) {
    if (term.is_float) return term;
    if (term.known) return Known(true, *term.known);
    return {true, {}, Node("Cast", {term}, {{"to", DTypeToOnnx(DType::kFloat32)}})};
  }

  ValueId Node(std::string_view op, const std::vector<Term>& operands,
               const std::vector<NcnnLayerContext::Attribute>& attributes = {}) {
    std::vector<ValueId> inputs;
    for (const Term& term : operands) inputs.push_back(AsNode(term));
    return layer_.MultiNode(op, inputs, 1, attributes)[0];
  }

  Term Parse(int depth) {
    constexpr int kMaxDepth = 64;
    Check(depth < kMaxDepth);
    const std::size_t end = std::min(text_.find_first_of("(),"), text_.size());
    const std::string_view token = text_.substr(0, end);
    Check(!token.empty());
    if (end < text_.size() && text_[end] == '(') {
      text_.remove_prefix(end + 1);
      std::vector<Term> operands = {Parse(depth + 1)};
      while (Accept(',')) operands.push_back(Parse(depth + 1));
      Check(Accept(')'));
      return Apply(token, operands);
    }
    const Term leaf = Leaf(token);
    text_.remove_prefix(end);
    return leaf;
  }

  Term Leaf(std::string_view token) {
    if (token.size() == 2 && token[0] >= '0' && token[0] <= '9' &&
        std::string_view("whdc").find(token[1]) != std::string_view::npos) {
      const auto i = static_cast<std::size_t>(token[0] - '0');
      layer_.Check(i < layer_.num_bottoms(), "its expression needs input ", i);
      const NcnnBlob& x = layer_.In(i);
      const int axis = NcnnAxis(token[1], x.rank());
      if (axis < 0) return Known(false, 1);
      const std::int64_t length = x.dims[static_cast<std::size_t>(axis)];
      if (length >= 0) return Known(false, static_cast<double>(length));
      return {false, {}, layer_.DimOf(x, axis)};
    }
    double value = 0;
    const auto [last, error] = std::from_chars(token.data(), token.data() + token.size(), value);
    Check(error == std::errc() && last == token.data() + token.size());
    return Known(token.find_first_of(".eE") != std::string_view::npos, value);
  }

  struct Function {
    std::string_view name, op;
    std::size_t operands;
    bool to_float, to_int;  // what its operands and its result become
    double (*compute)(double a, double b);
  };

  Term Apply(std::string_view name, std::vector<Term>& operands) {
    static constexpr Function kFunctions[] = {
        {"+", "Add", 2, false, false, [](double a, double b) { return a + b; }},
        {"-", "Sub", 2, false, false, [](double a, double b) { return a - b; }},
        {"*", "Mul", 2, false, false, [](double a, double b) { return a * b; }},
        {"/", "Div", 2, true, false, [](double a, double b) { return a / b; }},
        {"max", "Max", 2, false, false, [](double a, double b) { return std::max(a, b); }},
        {"min", "Min", 2, false, false, [](double a, double b) { return std::min(a, b); }},
        {"abs", "Abs", 1, false, false, [](double a, double) { return std::abs(a); }},
        {"neg", "Neg", 1, false, false, [](double a, double) { return -a; }},
        {"sign", "Sign", 1, false, false,
         [](double a, double) { return static_cast<double>(a > 0) - static_cast<double>(a < 0); }},
        {"sqrt", "Sqrt", 1, true, false, [](double a, double) { return std::sqrt(a); }},
        {"floor", "Floor", 1, true, true, [](double a, double) { return std::floor(a); }},
        {"ceil", "Ceil", 1, true, true, [](double a, double) { return std::ceil(a); }},
        {"round", "Round", 1, true, true, [](double a, double) { return std::round(a); }},
    };
    if (name == "trunc" && operands.size() == 1) return ToInt(operands[0]);
    if (name == "square" && operands.size() == 1) {
      operands.push_back(operands[0]);
      return Apply("*", operands);
    }
    if (name == "//" && operands.size() == 2) return FloorDivide(operands);
    const auto* f = std::ranges::find(kFunctions, name, &Function::name);
    layer_.Check(f != std::end(kFunctions) && f->operands == operands.size(),
                 "its expression uses '", name, "' with ", operands.size(),
                 " operands, which is not supported");
    // Integers are rounded already.
    if (f->to_int && !operands[0].is_float) return operands[0];
    const bool any_float =
        f->to_float || std::ranges::any_of(operands, [](const Term& t) { return t.is_float; });
    if (any_float) {
      for (Term& term : operands) term = ToFloat(term);
    }
    if (std::ranges::all_of(operands, [](const Term& t) { return t.known.has_value(); })) {
      const Term result = Known(any_float, f->compute(*operands[0].known, *operands.back().known));
      return f->to_int ? ToInt(result) : result;
    }
    const Term result{any_float, {}, Node(f->op, operands)};
    return f->to_int ? ToInt(result) : result;
  }

  // Of integers towards 0, as in C.
  Term FloorDivide(std::vector<Term>& operands) {
    layer_.Check(!operands[1].known || *operands[1].known != 0, "its expression divides by 0");
    const bool integers = !operands[0].is_float && !operands[1].is_float;
    if (!integers) {
      std::vector<Term> quotient = {Apply("/", operands)};
      const Term floor = Apply("floor", quotient);
      return ToFloat(floor);
    }
    if (operands[0].known && operands[1].known) {
      return Known(false, std::trunc(*operands[0].known / *operands[1].known));
    }
    return {false, {}, Node("Div", operands)};
  }

  NcnnLayerContext& layer_;
  std::string_view text_;  // what is not read yet
};

}  // namespace

std::vector<NcnnSize> EvaluateNcnnSizes(NcnnLayerContext& layer, const std::string& text) {
  Evaluator evaluator(layer, text);
  std::vector<NcnnSize> sizes;
  for (const Term& term : evaluator.List()) {
    const Term size = evaluator.ToInt(term);
    if (size.known) {
      sizes.push_back({static_cast<std::int64_t>(*size.known), kNoValue});
    } else {
      sizes.push_back({{}, size.value});
    }
  }
  return sizes;
}

ValueId JoinNcnnSizes(NcnnLayerContext& layer, const std::vector<NcnnSize>& sizes) {
  std::vector<ValueId> parts;
  std::vector<std::int64_t> known;
  const auto flush = [&] {
    if (!known.empty()) parts.push_back(layer.Int64s(known));
    known.clear();
  };
  for (const NcnnSize& size : sizes) {
    if (size.known) {
      known.push_back(*size.known);
    } else {
      flush();
      parts.push_back(size.value);
    }
  }
  flush();
  if (parts.size() == 1) return parts[0];
  return layer.MultiNode("Concat", parts, 1, {{"axis", std::int64_t{0}}})[0];
}

}  // namespace tessera
