#include "pipeline/tracking/ground_truth.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/error.h"
#include "pipeline/display_name.h"
#include "pipeline/number_rows.h"

namespace tessera {
namespace {

// The four corners in order around the quadrilateral. The area is reckoned as VOT does for the box
// that a tracker starts from: its sides are those of the bounding box, shrunk alike, plus one.
Box UprightBox(std::span<const double, 8> corners) {
  double left = corners[0], top = corners[1], right = left, bottom = top;
  double cx = 0, cy = 0, doubled_area = 0;
  for (std::size_t i = 0; i < 8; i += 2) {
    const double x = corners[i], y = corners[i + 1];
    const double next_x = corners[(i + 2) % 8], next_y = corners[(i + 3) % 8];
    doubled_area += x * next_y - next_x * y;
    cx += x / 4;
    cy += y / 4;
    left = std::min(left, x);
    top = std::min(top, y);
    right = std::max(right, x);
    bottom = std::max(bottom, y);
  }
  const double width = right - left, height = bottom - top;
  const double shrink = std::sqrt(std::abs(doubled_area) / 2 / (width * height));
  if (!(shrink > 0)) return {};  // 0/0 too: the corners are all on one line
  const Box box{0, 0, shrink * width + 1, shrink * height + 1};
  return {cx - (box.width - 1) / 2, cy - (box.height - 1) / 2, box.width, box.height};
}

bool IsVisible(const Box& box) { return IsFinite(box) && box.width > 0 && box.height > 0; }

// What the values of a row stand for.
enum class Shape : std::uint8_t {
  kBox,            // x, y, w, h
  kCorners,        // upper left, lower right
  kQuadrilateral,  // four corners
};

struct Columns {
  Shape shape = Shape::kBox;
  std::vector<std::size_t> values;  // where they are
  std::optional<std::size_t> frame;
};

Columns NamedColumns(const std::vector<std::string>& header) {
  const auto column = [&](std::string_view name) -> std::optional<std::size_t> {
    const auto found = std::find(header.begin(), header.end(), name);
    if (found == header.end()) return std::nullopt;
    return static_cast<std::size_t>(found - header.begin());
  };
  static const std::pair<Shape, std::vector<std::string_view>> kKnown[] = {
      {Shape::kBox, {"x", "y", "w", "h"}},
      {Shape::kBox, {"x", "y", "width", "height"}},
      {Shape::kQuadrilateral, {"x1", "y1", "x2", "y2", "x3", "y3", "x4", "y4"}},
      {Shape::kCorners, {"x1", "y1", "x2", "y2"}},
  };
  for (const auto& [shape, names] : kKnown) {
    Columns columns{.shape = shape, .values = {}, .frame = column("frame")};
    for (const std::string_view name : names)
      if (const auto found = column(name)) columns.values.push_back(*found);
    if (columns.values.size() == names.size()) return columns;
  }
  return {};
}

Columns CountedColumns(std::size_t count) {
  switch (count) {
    case 4:
      return {.values = {0, 1, 2, 3}, .frame = {}};
    case 5:
      return {.values = {1, 2, 3, 4}, .frame = 0};
    case 8:
      return {.shape = Shape::kQuadrilateral, .values = {0, 1, 2, 3, 4, 5, 6, 7}, .frame = {}};
    default:
      return {};
  }
}

Box ToBox(Shape shape, std::span<const double> v) {
  switch (shape) {
    case Shape::kBox:
      return {v[0], v[1], v[2], v[3]};
    case Shape::kCorners:
      return {v[0], v[1], v[2] - v[0], v[3] - v[1]};
    case Shape::kQuadrilateral:
      return UprightBox(v.first<8>());
  }
  return {};
}

class BoxRows {
 public:
  struct Row {
    std::int64_t frame;
    Box box;
  };

  explicit BoxRows(const std::filesystem::path& path)
      : rows_(path), columns_(NamedColumns(rows_.header())), num_columns_(rows_.header().size()) {
    RequireRow(num_columns_ == 0 || !columns_.values.empty(),
               "a header has to name x, y, w, h (or width, height), or x1, y1, x2, y2, or x1, y1, "
               "..., y4");
  }

  // Whether rows have them, once there was one.
  bool has_frames() const { return columns_.frame.has_value(); }

  std::optional<Row> Next() {
    const std::span<const double> row = rows_.Next();
    if (row.empty()) return std::nullopt;
    if (num_columns_ == 0) {
      columns_ = CountedColumns(row.size());
      num_columns_ = row.size();
      RequireRow(!columns_.values.empty(), row.size(), " columns: a box has 4 (x, y, w, h), 5 ",
                 "(frame, x, y, w, h) or 8 (four corners), or a header that names them");
    }
    RequireRow(row.size() == num_columns_, row.size(), " columns instead of ", num_columns_);

    std::int64_t frame = next_frame_++;
    if (columns_.frame) {
      RequireRow(ToWhole(row[*columns_.frame], frame) && frame >= 0,
                 "no number of a frame: ", row[*columns_.frame]);
    }
    values_.clear();
    for (const std::size_t column : columns_.values) values_.push_back(row[column]);
    return Row{frame, ToBox(columns_.shape, values_)};
  }

  template <typename... Args>
  void RequireRow(bool condition, const Args&... reason) const {
    rows_.RequireRow(condition, reason...);
  }

 private:
  NumberRows rows_;
  Columns columns_;
  std::size_t num_columns_;
  std::int64_t next_frame_ = 0;
  std::vector<double> values_;  // of a row, in the order of the shape
};

}  // namespace

GroundTruth ReadGroundTruth(const std::filesystem::path& path) {
  BoxRows rows(path);
  GroundTruth truth;
  std::set<std::int64_t> frames;
  while (const auto row = rows.Next()) {
    rows.RequireRow(frames.insert(row->frame).second, "a second box for frame ", row->frame);
    if (IsVisible(row->box)) truth.emplace(row->frame, row->box);
  }
  return truth;
}

Box ReadBox(const std::filesystem::path& path, std::int64_t frame) {
  BoxRows rows(path);
  auto row = rows.Next();
  Require(row.has_value(), InputName(path), ": holds no box");
  if (rows.has_frames()) {
    while (row && row->frame != frame) row = rows.Next();
    Require(row.has_value(), InputName(path), ": holds no box of frame ", frame, ", the first one");
  }
  rows.RequireRow(IsVisible(row->box), "that is no box: its size has to be above 0");
  return row->box;
}

}  // namespace tessera
