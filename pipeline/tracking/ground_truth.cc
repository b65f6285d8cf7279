#include "pipeline/tracking/ground_truth.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "pipeline/tracking/number_rows.h"

namespace tessera {
namespace {

// The four corners in order around the quadrilateral. The area is reckoned as VOT does for the box
// that a tracker starts from: its sides are those of the bounding box, shrunk alike, plus one.
Box UprightBox(std::span<const double, 8> corners) {
  Box bounds{corners[0], corners[1], corners[0], corners[1]};  // here right and bottom, not a size
  double cx = 0, cy = 0, doubled_area = 0;
  for (std::size_t i = 0; i < 8; i += 2) {
    const double x = corners[i], y = corners[i + 1];
    const double next_x = corners[(i + 2) % 8], next_y = corners[(i + 3) % 8];
    doubled_area += x * next_y - next_x * y;
    cx += x / 4;
    cy += y / 4;
    bounds = {std::min(bounds.x, x), std::min(bounds.y, y), std::max(bounds.width, x),
              std::max(bounds.height, y)};
  }
  const double width = bounds.width - bounds.x, height = bounds.height - bounds.y;
  const double shrink = std::sqrt(std::abs(doubled_area) / 2 / (width * height));
  if (!(shrink > 0)) return {};  // 0/0 too: the corners are all on one line
  const Box box{0, 0, shrink * width + 1, shrink * height + 1};
  return {cx - (box.width - 1) / 2, cy - (box.height - 1) / 2, box.width, box.height};
}

bool IsVisible(const Box& box) { return IsFinite(box) && box.width > 0 && box.height > 0; }

// Where the values are in a row.
struct Columns {
  std::array<std::size_t, 4> box;  // x, y, w, h
  std::optional<std::size_t> frame;
  bool quadrilateral = false;
};

std::optional<Columns> NamedColumns(const std::vector<std::string>& header) {
  const auto column = [&](const char* name) -> std::optional<std::size_t> {
    const auto found = std::find(header.begin(), header.end(), name);
    if (found == header.end()) return std::nullopt;
    return static_cast<std::size_t>(found - header.begin());
  };
  const auto x = column("x"), y = column("y"), w = column("w"), h = column("h");
  if (!x || !y || !w || !h) return std::nullopt;
  return Columns{.box = {*x, *y, *w, *h}, .frame = column("frame")};
}

std::optional<Columns> CountedColumns(std::size_t count) {
  switch (count) {
    case 4:
      return Columns{.box = {0, 1, 2, 3}, .frame = {}};
    case 5:
      return Columns{.box = {1, 2, 3, 4}, .frame = 0};
    case 8:
      return Columns{.box = {}, .frame = {}, .quadrilateral = true};
    default:
      return std::nullopt;
  }
}

}  // namespace

GroundTruth ReadGroundTruth(const std::filesystem::path& path) {
  NumberRows rows(path);
  std::optional<Columns> columns = NamedColumns(rows.header());
  std::size_t num_columns = columns ? rows.header().size() : 0;
  GroundTruth truth;
  std::int64_t next_frame = 0;
  std::set<std::int64_t> frames;
  for (std::span<const double> row; !(row = rows.Next()).empty();) {
    if (!columns) {
      columns = CountedColumns(row.size());
      num_columns = row.size();
      rows.RequireRow(columns.has_value(), row.size(), " columns: a box has 4 (x, y, w, h), 5 ",
                      "(frame, x, y, w, h) or 8 (four corners), or a header that names them");
    }
    rows.RequireRow(row.size() == num_columns, row.size(), " columns instead of ", num_columns);

    std::int64_t frame = next_frame++;
    if (columns->frame) {
      rows.RequireRow(ToWhole(row[*columns->frame], frame) && frame >= 0,
                      "no number of a frame: ", row[*columns->frame]);
      rows.RequireRow(frames.insert(frame).second, "a second box for frame ", frame);
    }
    const auto& at = columns->box;
    const Box box = columns->quadrilateral ? UprightBox(row.first<8>())
                                           : Box{row[at[0]], row[at[1]], row[at[2]], row[at[3]]};
    if (IsVisible(box)) truth.emplace(frame, box);
  }
  return truth;
}

}  // namespace tessera
