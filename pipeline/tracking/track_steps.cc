#include "pipeline/tracking/track_steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>

#include "pipeline/format_text.h"
#include "pipeline/number_rows.h"
#include "pipeline/text_output.h"

namespace tessera {
namespace {

constexpr std::array kColumns = {"frame",       "cx0",       "cy0", "w0",  "h0",    "crop_x",
                                 "crop_y",      "crop_side", "row", "col", "score", "penalty",
                                 "rank_margin", "cx1",       "cy1", "w1",  "h1"};

// Whole numbers in a stream would follow the locale.
std::string Text(std::int64_t value) { return std::to_string(value); }
std::string Text(double value) { return Shortest(value); }

}  // namespace

std::vector<TrackStep> ReadSteps(const std::filesystem::path& path) {
  NumberRows rows(path);
  rows.RequireRow(rows.header().empty() || std::equal(kColumns.begin(), kColumns.end(),
                                                      rows.header().begin(), rows.header().end()),
                  "the columns are not those of steps");
  std::vector<TrackStep> steps;
  for (std::span<const double> row; !(row = rows.Next()).empty();) {
    rows.RequireRow(row.size() == kColumns.size(), row.size(), " columns instead of ",
                    kColumns.size());
    std::size_t column = 0;
    const auto number = [&] {
      rows.RequireRow(std::isfinite(row[column]), kColumns[column], " is no finite number");
      return row[column++];
    };
    const auto whole = [&] {
      std::int64_t value = 0;
      rows.RequireRow(ToWhole(row[column], value), kColumns[column], " is no whole number");
      ++column;
      return value;
    };
    // Elements of a list in braces are evaluated in their order.
    const auto length = [&] {
      constexpr double kMost = 1e9;
      rows.RequireRow(row[column] > 0 && row[column] <= kMost, kColumns[column],
                      " is no length of a box");
      return number();
    };
    const auto start = [&] { return Tracker::State{number(), number(), length(), length()}; };
    const auto state = [&] { return Tracker::State{number(), number(), number(), number()}; };
    steps.push_back({.frame = whole(),
                     .before = start(),
                     .step = {.window = {whole(), whole(), whole()},
                              .row = whole(),
                              .column = whole(),
                              .score = number(),
                              .penalty = number(),
                              .rank_margin = number()},
                     .after = state()});
  }
  return steps;
}

void WriteSteps(const std::filesystem::path& path, const std::vector<TrackStep>& steps,
                bool overwrite) {
  TextOutput output(path, overwrite);
  std::string line;
  for (const char* name : kColumns) line.append(line.empty() ? "" : ",").append(name);
  output.Write(line += '\n');
  for (const TrackStep& item : steps) {
    line = Text(item.frame);
    const auto add = [&](auto... values) { (line.append(",").append(Text(values)), ...); };
    const auto add_state = [&](const Tracker::State& s) { add(s.cx, s.cy, s.width, s.height); };
    const Tracker::Step& step = item.step;
    add_state(item.before);
    add(step.window.x, step.window.y, step.window.side, step.row, step.column);
    add(step.score, step.penalty, step.rank_margin);
    add_state(item.after);
    output.Write(line += '\n');
  }
  output.Close();
}

}  // namespace tessera
