// Attributes of a node: names and typed values, as ONNX has them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ops/tensor.h"

namespace tessera {

class Attributes {
 public:
  using Alternatives =
      std::variant<std::int64_t, float, std::string, std::vector<std::int64_t>, std::vector<float>,
                   std::vector<std::string>, std::shared_ptr<const Tensor>>;

  // Copied by itself: where memory for a copy is missing, libstdc++ 12 destroys what was never
  // made, as it takes a variant of such types for one that always holds a value.
  class Value : public Alternatives {
   public:
    using Alternatives::Alternatives;
    Value(const Value& other) : Alternatives(std::int64_t{0}) {
      std::visit(
          [this](const auto& value) {
            auto copy = value;
            *this = std::move(copy);
          },
          static_cast<const Alternatives&>(other));
    }
    Value(Value&&) noexcept = default;
    Value& operator=(Value other) noexcept {
      Alternatives::operator=(std::move(other));
      return *this;
    }
  };

  void Set(std::string name, Value value) {
    values_.insert_or_assign(std::move(name), std::move(value));
  }
  void Erase(std::string_view name);
  bool Has(std::string_view name) const { return values_.find(name) != values_.end(); }

  // The value, or `fallback` if the attribute is absent. Throws Error if it has another type.
  std::int64_t Int(std::string_view name, std::int64_t fallback) const;
  float Float(std::string_view name, float fallback) const;
  std::string String(std::string_view name, std::string_view fallback) const;
  std::vector<std::int64_t> Ints(std::string_view name,
                                 std::vector<std::int64_t> fallback = {}) const;
  std::vector<float> Floats(std::string_view name, std::vector<float> fallback = {}) const;
  std::vector<std::string> Strings(std::string_view name,
                                   std::vector<std::string> fallback = {}) const;
  // Null if absent.
  std::shared_ptr<const Tensor> TensorValue(std::string_view name) const;

  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace tessera
