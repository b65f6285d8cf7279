// Boxes of a video's target that are known to be right.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>

#include "pipeline/tracking/box.h"

namespace tessera {

// Known boxes by the number of their frame. Frames where the target is not to be seen (empty boxes,
// values that are no numbers) have none.
using GroundTruth = std::map<std::int64_t, Box>;

// Lines of x, y, w, h, separated by commas, tabs, semicolons or spaces, for frame 0, 1, ...; with
// five columns the first is the number of the frame, with eight they are the corners of a
// quadrilateral (VOT), x1, y1, ..., x4, y4, which stands for the upright box with the same centre
// and area. Empty lines and those that begin with '#' do not count. A first line without numbers is
// a header. It names, in any order, x, y, w, h (or width, height), or the corners x1, y1, x2, y2,
// or those of a quadrilateral, x1, ..., y4, and perhaps frame; columns of other names are left out.
// Throws Error, which names file and line.
GroundTruth ReadGroundTruth(const std::filesystem::path& path);

// The box of one of these lines, whatever follows it: of the first one, or, where they have numbers
// of frames, of that with the number `frame`. Throws Error, which names the file, if there is none,
// or if it is empty or no number.
Box ReadBox(const std::filesystem::path& path, std::int64_t frame);

}  // namespace tessera
