#include "pipeline/format_text.h"

#include <array>
#include <charconv>

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

std::string JsonString(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : OneLine(text)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace tessera
