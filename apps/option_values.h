// Values of command-line options from their text.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace tessera {

// All of the text, with '.' in every locale; nullopt if it is no number from `low` to `high`.
template <typename T>
std::optional<T> ReadNumber(std::string_view text, T low, T high) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!(value >= low && value <= high)) return std::nullopt;
  return value;
}

// RGB from "white", "black", "#rrggbb" or "r,g,b" (0 to 255 each).
std::optional<std::array<std::uint8_t, 3>> ReadColour(std::string_view text);

// That one may ask for, on whatever machine.
inline constexpr int kMaxThreads = 1024;

inline constexpr int kMaxWorkers = 1024;
// "K", or "load:run:save" as the ncnn tools have it. Each is 1 to kMaxWorkers.
struct Workers {
  int run;  // K
  std::optional<int> load, save;
};
std::optional<Workers> ReadWorkers(std::string_view text);

}  // namespace tessera
