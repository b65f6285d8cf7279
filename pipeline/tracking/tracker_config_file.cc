#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "ops/error.h"
#include "pipeline/display_name.h"
#include "pipeline/read_number.h"
#include "pipeline/text_lines.h"
#include "pipeline/tracking/tracker_config.h"

namespace tessera {
namespace {

constexpr int kMaxSize = 4096;  // of a patch
constexpr double kNoLimit = std::numeric_limits<double>::max();

// Text up to `delimiter`, which it takes from the front of `rest`.
std::string_view Next(std::string_view& rest, std::string_view delimiters) {
  const std::size_t end = std::min(rest.find_first_of(delimiters), rest.size());
  const std::string_view text = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return text;
}

template <typename Number>
Number Parse(std::string_view text, Number least, Number most) {
  const std::optional<Number> value = ReadNumber(text, least, most);
  Require(value.has_value(), "'", text, "' is no ", std::is_integral_v<Number> ? "whole " : "",
          "number ",
          most == std::numeric_limits<Number>::max() ? StrCat("of at least ", least)
                                                     : StrCat("from ", least, " to ", most));
  return *value;
}

std::array<float, 3> ParseThree(std::string_view text, float least) {
  constexpr float kMost = std::numeric_limits<float>::max();
  std::array<float, 3> values;
  std::size_t count = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view word = Next(rest, " \t,");
    if (word.empty()) continue;
    Require(count < values.size(), "'", text, "' are more than three numbers");
    values[count++] = Parse(word, least, kMost);
  }
  Require(count == values.size(), "'", text, "' are fewer than three numbers");
  return values;
}

template <typename Choice, std::size_t count>
Choice ParseChoice(std::string_view text,
                   const std::pair<std::string_view, Choice> (&choices)[count]) {
  std::string all;
  for (const auto& [name, choice] : choices) {
    if (text == name) return choice;
    all += StrCat(all.empty() ? "" : ", ", name);
  }
  throw Error(StrCat("'", text, "' is none of ", all));
}

constexpr std::string_view kBase = "base";

struct Key {
  std::string_view name;
  void (*set)(TrackerConfig& config, std::string_view value);
};

using Config = TrackerConfig;
using Text = std::string_view;
constexpr Key kKeys[] = {
    {kBase,
     [](Config& c, Text v) {
       const std::optional<int> version = NanoTrackNamed(v);
       Require(version.has_value(), "'", v, "' is none of v1, v2, v3");
       c = NanoTrackConfig(*version);
     }},
    {"name", [](Config& c, Text v) { c.name = v; }},
    {"template_size", [](Config& c, Text v) { c.template_size = Parse(v, 1, kMaxSize); }},
    {"search_size", [](Config& c, Text v) { c.search_size = Parse(v, 1, kMaxSize); }},
    {"stride", [](Config& c, Text v) { c.stride = Parse(v, 1, kMaxSize); }},
    {"colours",
     [](Config& c, Text v) {
       c.pixels.rgb = ParseChoice<bool>(v, {{"BGR", false}, {"RGB", true}});
     }},
    {"mean", [](Config& c, Text v) { c.pixels.mean = ParseThree(v, -1e6f); }},
    {"deviation", [](Config& c, Text v) { c.pixels.deviation = ParseThree(v, 1e-6f); }},
    {"score",
     [](Config& c, Text v) {
       c.score = ParseChoice<ScoreKind>(v, {{"softmax", ScoreKind::kSoftmax},
                                            {"sigmoid", ScoreKind::kSigmoid},
                                            {"probability", ScoreKind::kProbability}});
     }},
    {"box",
     [](Config& c, Text v) {
       c.box = ParseChoice<BoxKind>(v, {{"pixels", BoxKind::kPixels},
                                        {"log-pixels", BoxKind::kLogPixels},
                                        {"cells", BoxKind::kCells}});
     }},
    {"template_input", [](Config& c, Text v) { c.template_input = v; }},
    {"search_input", [](Config& c, Text v) { c.search_input = v; }},
    {"class_output", [](Config& c, Text v) { c.class_output = v; }},
    {"box_output", [](Config& c, Text v) { c.box_output = v; }},
    {"context", [](Config& c, Text v) { c.context = Parse(v, 0.0, 10.0); }},
    {"window_influence", [](Config& c, Text v) { c.window_influence = Parse(v, 0.0, 1.0); }},
    {"penalty", [](Config& c, Text v) { c.penalty = Parse(v, 0.0, kNoLimit); }},
    {"rate", [](Config& c, Text v) { c.rate = Parse(v, 0.0, 1.0); }},
    {"min_side", [](Config& c, Text v) { c.min_side = Parse(v, 1.0, 4096.0); }},
    {"lost_below", [](Config& c, Text v) { c.lost_below = Parse(v, 0.0, 1.0); }},
    {"found_above", [](Config& c, Text v) { c.found_above = Parse(v, 0.0, 1.0); }},
};

void ReadLine(std::string_view line, TrackerConfig& config, std::set<std::string_view>& given) {
  Require(line.find('=') != std::string_view::npos, "want 'key = value', got '", line, "'");
  std::string_view rest = line;
  const std::string_view name = Trim(Next(rest, "=")), value = Trim(rest);
  const auto* key = std::find_if(std::begin(kKeys), std::end(kKeys),
                                 [&](const Key& k) { return k.name == name; });
  if (key == std::end(kKeys)) {
    std::string all;
    for (const Key& k : kKeys) all += StrCat(all.empty() ? "" : ", ", k.name);
    throw Error(StrCat("no key is called '", name, "' (keys: ", all, ")"));
  }
  Require(name != kBase || given.empty(), "'", kBase, "' comes before all others");
  Require(given.insert(key->name).second, "'", name, "' is given twice");
  Naming(std::string(name), [&] {
    Require(!value.empty(), "has no value");
    key->set(config, value);
  });
}

}  // namespace

TrackerConfig ReadTrackerConfig(const std::filesystem::path& path) {
  TextLines lines(path);
  TrackerConfig config;
  std::set<std::string_view> given;
  for (std::string_view line; !(line = lines.Next()).empty();) {
    try {
      ReadLine(line, config, given);
    } catch (const Error& error) {
      lines.Fail(error.what());
    }
  }
  Require(config.lost_below <= config.found_above, lines.shown_name(), ": lost_below, ",
          config.lost_below, ", is more than found_above, ", config.found_above);
  return config;
}

}  // namespace tessera
