#include "apps/option_values.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>
#include <vector>

#include "ops/error.h"
#include "pipeline/read_number.h"

namespace tessera {
namespace {

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

constexpr double kMaxCoordinate = 1e9;

// Without the spaces in front.
std::string_view Trimmed(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

std::optional<Box> ReadBoxText(std::string_view text) {
  std::array<double, 4> values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0 && text.starts_with(',')) text = Trimmed(text.substr(1));
    const std::size_t end = std::min(text.find_first_of(", "), text.size());
    const auto value = ReadNumber(text.substr(0, end), -kMaxCoordinate, kMaxCoordinate);
    if (!value) return std::nullopt;
    values[i] = *value;
    text = Trimmed(text.substr(end));
  }
  if (!text.empty()) return std::nullopt;
  return Box{values[0], values[1], values[2], values[3]};
}

// Of a box, with a mistake in it, rather than the name of a file.
bool LooksLikeNumbers(std::string_view text) {
  return text.find_first_not_of("0123456789+-.,; ") == std::string_view::npos;
}

}  // namespace

std::optional<std::array<std::uint8_t, 3>> ReadColour(std::string_view text) {
  using Colour = std::array<std::uint8_t, 3>;
  if (text == "white") return Colour{255, 255, 255};
  if (text == "black") return Colour{0, 0, 0};
  if (text.starts_with('#')) {
    std::uint32_t rgb = 0;
    const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), rgb, 16);
    if (text.size() != 7 || error != std::errc() || end != text.data() + 7) return std::nullopt;
    return Colour{static_cast<std::uint8_t>(rgb >> 16), static_cast<std::uint8_t>(rgb >> 8),
                  static_cast<std::uint8_t>(rgb)};
  }
  const std::vector<std::string_view> parts = Split(text, ',');
  Colour colour;
  if (parts.size() != colour.size()) return std::nullopt;
  for (std::size_t c = 0; c < colour.size(); ++c) {
    const std::optional<int> value = ReadNumber(parts[c], 0, 255);
    if (!value) return std::nullopt;
    colour[c] = static_cast<std::uint8_t>(*value);
  }
  return colour;
}

std::optional<Workers> ReadWorkers(std::string_view text) {
  std::vector<int> numbers;
  for (const std::string_view part : Split(text, ':')) {
    const std::optional<int> number = ReadNumber(part, 1, kMaxWorkers);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  if (numbers.size() == 1) return Workers{.run = numbers[0], .load = {}, .save = {}};
  if (numbers.size() == 3)
    return Workers{.run = numbers[1], .load = numbers[0], .save = numbers[2]};
  return std::nullopt;
}

void AddInitialBox(Options& options, std::optional<Box>& box, std::filesystem::path& file) {
  const auto take = [&box, &file](const std::string& text) {
    const std::optional<Box> numbers = ReadBoxText(text);
    std::error_code error;
    if (!numbers && LooksLikeNumbers(text) && !std::filesystem::exists(text, error)) return false;
    Require(!numbers || (numbers->width > 0 && numbers->height > 0), "--init ", text,
            ": the box is empty");
    box = numbers;
    file = numbers ? "" : text;
    return true;
  };
  options.Text("-b,--init", "X,Y,W,H|FILE",
               "X,Y,W,H, the upper left corner and the size of a box, or a file that holds them",
               take, "Box of the target in the first frame, in pixels");
}

void AddMaxMemory(Options& options, std::size_t& bytes) {
  constexpr int kMostMegabytes = 1 << 30;
  const auto take = [&bytes](const std::string& text) {
    const std::optional<int> megabytes = ReadNumber(text, 1, kMostMegabytes);
    if (megabytes) bytes = static_cast<std::size_t>(*megabytes) << 20;
    return megabytes.has_value();
  };
  options.Text("--max-memory", "MB", StrCat("a whole number from 1 to ", kMostMegabytes), take,
               "Refuse networks that take more (default: 80 % of what there is)");
}

}  // namespace tessera
