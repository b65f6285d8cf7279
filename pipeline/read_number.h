// Numbers from text, the other way of format_text.h.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace tessera {

// All of the text, with '.' in every locale; nullopt if it is no number or T has none like it. NaN
// and infinities are numbers.
template <typename T>
std::optional<T> ReadNumber(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The same; nullopt too if it is not from `low` to `high`.
template <typename T>
std::optional<T> ReadNumber(std::string_view text, T low, T high) {
  const std::optional<T> value = ReadNumber<T>(text);
  return value && *value >= low && *value <= high ? value : std::nullopt;
}

}  // namespace tessera
