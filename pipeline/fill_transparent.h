// Colours where a picture is transparent.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/picture.h"

namespace tessera {

// What lies under transparent pixels is often black or noise; a network would carry it across the
// edge of what can be seen. So they get colours of their neighbours, rows from top to bottom: that
// of the nearest pixel that is not transparent, among those at most kReach rows away (at equal
// distances of the upper, then the left one); if there is none, that of the pixel above. Pixels
// whose alpha is not 0 keep theirs, and alpha stays.
class TransparentFill {
 public:
  static constexpr std::int64_t kReach = 16;

  explicit TransparentFill(const Picture& picture);  // which has alpha, and is to outlive this

  // Row y has been read, in turn. Fills what can be filled then: the rows [0, filled()). Looks at
  // the rows from filled() - kReach on.
  void RowRead(std::int64_t y);
  std::int64_t filled() const { return filled_; }

 private:
  template <typename T>
  void FindNearest(std::int64_t y);
  template <typename T>
  void FillRow(std::int64_t y);

  // Of each pixel of row y, the column of the nearest one in its row that is not transparent, or
  // kNone. A ring of the rows within reach.
  static constexpr std::int32_t kNone = -1;
  std::int32_t* Nearest(std::int64_t y) {
    return nearest_.data() + (y % (2 * kReach + 1)) * picture_.width();
  }

  const Picture& picture_;
  std::int64_t filled_ = 0;
  std::vector<std::int32_t> nearest_;
};

}  // namespace tessera
