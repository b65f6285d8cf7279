#include "ops/attributes.h"

#include "ops/error.h"

namespace tessera {
namespace {

template <typename T, typename Map>
const T* Find(const Map& values, std::string_view name, const char* type) {
  const auto it = values.find(name);
  if (it == values.end()) return nullptr;
  const T* value = std::get_if<T>(&it->second);
  Require(value != nullptr, "attribute '", name, "' is not of type ", type);
  return value;
}

}  // namespace

void Attributes::Erase(std::string_view name) {
  if (const auto it = values_.find(name); it != values_.end()) values_.erase(it);
}

std::int64_t Attributes::Int(std::string_view name, std::int64_t fallback) const {
  const auto* v = Find<std::int64_t>(values_, name, "int");
  return v ? *v : fallback;
}

float Attributes::Float(std::string_view name, float fallback) const {
  const auto* v = Find<float>(values_, name, "float");
  return v ? *v : fallback;
}

std::string Attributes::String(std::string_view name, std::string_view fallback) const {
  const auto* v = Find<std::string>(values_, name, "string");
  return v ? *v : std::string(fallback);
}

std::vector<std::int64_t> Attributes::Ints(std::string_view name,
                                           std::vector<std::int64_t> fallback) const {
  const auto* v = Find<std::vector<std::int64_t>>(values_, name, "ints");
  return v ? *v : std::move(fallback);
}

std::vector<float> Attributes::Floats(std::string_view name, std::vector<float> fallback) const {
  const auto* v = Find<std::vector<float>>(values_, name, "floats");
  return v ? *v : std::move(fallback);
}

std::vector<std::string> Attributes::Strings(std::string_view name,
                                             std::vector<std::string> fallback) const {
  const auto* v = Find<std::vector<std::string>>(values_, name, "strings");
  return v ? *v : std::move(fallback);
}

std::shared_ptr<const Tensor> Attributes::TensorValue(std::string_view name) const {
  const auto* v = Find<std::shared_ptr<const Tensor>>(values_, name, "tensor");
  return v ? *v : nullptr;
}

}  // namespace tessera
