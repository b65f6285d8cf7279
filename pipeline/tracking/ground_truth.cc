#include "pipeline/tracking/ground_truth.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "ops/error.h"
#include "pipeline/display_name.h"
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

class BoxRows {
 public:
  struct Row {
    std::int64_t frame;
    Box box;
  };

  explicit BoxRows(const std::filesystem::path& path)
      : rows_(path), columns_(NamedColumns(rows_.header())), num_columns_(rows_.header().size()) {}

  // Whether rows have them, once there was one.
  bool has_frames() const { return columns_ && columns_->frame; }

  std::optional<Row> Next() {
    const std::span<const double> row = rows_.Next();
    if (row.empty()) return std::nullopt;
    if (!columns_) {
      columns_ = CountedColumns(row.size());
      num_columns_ = row.size();
      RequireRow(columns_.has_value(), row.size(), " columns: a box has 4 (x, y, w, h), 5 ",
                 "(frame, x, y, w, h) or 8 (four corners), or a header that names them");
    }
    RequireRow(row.size() == num_columns_, row.size(), " columns instead of ", num_columns_);

    std::int64_t frame = next_frame_++;
    if (columns_->frame) {
      RequireRow(ToWhole(row[*columns_->frame], frame) && frame >= 0,
                 "no number of a frame: ", row[*columns_->frame]);
    }
    const auto& at = columns_->box;
    return Row{frame, columns_->quadrilateral
                          ? UprightBox(row.first<8>())
                          : Box{row[at[0]], row[at[1]], row[at[2]], row[at[3]]}};
  }

  template <typename... Args>
  void RequireRow(bool condition, const Args&... reason) const {
    rows_.RequireRow(condition, reason...);
  }

 private:
  NumberRows rows_;
  std::optional<Columns> columns_;
  std::size_t num_columns_;
  std::int64_t next_frame_ = 0;
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
