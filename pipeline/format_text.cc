#include "pipeline/format_text.h"

#include <array>
#include <charconv>
#include <cstdint>

#include "ops/error.h"
#include "pipeline/display_name.h"

namespace tessera {

std::string Fixed(double value, int decimals) {
  std::array<char, 400> text;  // 309 digits before the '.'
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value,
                                          std::chars_format::fixed, decimals);
  return {text.data(), end};
}

std::string Shortest(double value) {
  std::array<char, 32> text;
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

std::string Duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  const auto two_digits = [](std::int64_t n) { return StrCat(n < 10 ? "0" : "", n); };
  const std::int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  return (hours > 0 ? StrCat(hours, ":", two_digits(minutes)) : std::to_string(minutes)) + ":" +
         two_digits(whole % 60);
}

std::string JsonString(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : OneLine(text)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace tessera
