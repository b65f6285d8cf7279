// Colours where a picture is transparent.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/picture.h"

namespace tessera {

struct FillOptions {
  // Rows above and below that are looked at: as far as anything that is made of the picture looks.
  std::int64_t reach = 16;
  bool wrap_x = false, wrap_y = false;  // the picture goes on at the other side
};

// What lies under transparent pixels is often black or noise; a network would carry it across the
// edge of what can be seen. So they get colours of their neighbours, rows from top to bottom: that
// of the nearest pixel that is not transparent, among those at most `reach` rows away (at equal
// distances of the nearer row, then the upper one, then the left pixel); if there is none, that of
// the pixel above. Pixels whose alpha is not 0 keep theirs, and alpha stays.
class TransparentFill {
 public:
  // The picture has alpha, and is to outlive this.
  TransparentFill(const Picture& picture, const FillOptions& options);

  // Row y has been read, in turn. Fills what can be filled then: the rows [0, filled()). Looks at
  // the rows from filled() - reach on. Where rows wrap, nothing is filled before all are read.
  void RowRead(std::int64_t y);
  std::int64_t filled() const { return filled_; }

  // Memory beside the picture.
  static std::size_t Bytes(const PictureFormat& picture, const FillOptions& options);

 private:
  template <typename T>
  void FindNearest(std::int64_t y);
  template <typename T>
  void FillRow(std::int64_t y);

  // Rows whose nearest pixels are kept.
  static std::int64_t KeptRows(const PictureFormat& picture, const FillOptions& options);
  // Of each pixel of row y, the distance in columns to the nearest one in its row that is not
  // transparent: to the left if negative.
  std::int32_t* Nearest(std::int64_t y) {
    return nearest_.data() + y % kept_rows_ * picture_.width();
  }

  const Picture& picture_;
  const FillOptions options_;
  const std::int64_t kept_rows_;
  std::int64_t filled_ = 0;
  std::vector<std::int32_t> nearest_;
  std::vector<bool> has_colour_;          // whether anything can be seen of a kept row
  std::vector<std::int64_t> candidates_;  // rows relative to the one that is filled
};

}  // namespace tessera
