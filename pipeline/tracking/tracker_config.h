// What a tracker has to know of its network.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "pipeline/tracking/crop.h"

namespace tessera {

// How the network's class map tells whether the target is at a point.
enum class ScoreKind : std::uint8_t {
  kSoftmax,      // [1, 2, n, n]: logits of background and target
  kSigmoid,      // [1, 1, n, n]: a logit
  kProbability,  // [1, 1, n, n]: from 0 to 1
};

// What the four values of the box map, [1, 4, n, n], say: distances from the point to the left,
// top, right and bottom side of the box.
enum class BoxKind : std::uint8_t {
  kPixels,     // of the search patch
  kLogPixels,  // their logarithms
  kCells,      // in units of the stride
};

struct TrackerConfig {
  std::string name;

  // The network. Patches are squares of 3 planes.
  int template_size = 127, search_size = 255;
  int stride = 16;  // of the points, in pixels of the search patch
  PixelScaling pixels;
  ScoreKind score = ScoreKind::kSoftmax;
  BoxKind box = BoxKind::kPixels;
  // Of networks with both towers in one file; "" where the name does not matter, as there is only
  // one value of that shape.
  std::string template_input, search_input, class_output, box_output;

  // The tracker: see pipeline/tracking/point_ranking.h, for `rate` pipeline/tracking/tracker.h.
  double context = 0.5;
  double window_influence = 0.4;
  double penalty = 0.1;
  double rate = 0.3;
  double min_side = 10;  // of a box, in pixels of the frame

  // Scores that leave doubt whether the target is there, and that it must have to be found again:
  // see pipeline/tracking/presence.h.
  double lost_below = 0.5, found_above = 0.7;
};

// NanoTrack 1, 2 or 3 (HonglinChu/SiamTrackers, Apache-2.0).
TrackerConfig NanoTrackConfig(int version);
// The version that "v1", "v2" or "v3" names; nullopt for other texts.
std::optional<int> NanoTrackNamed(std::string_view name);

// From a text file of lines "key = value"; '#' begins a comment. Keys are the names of the fields
// above; those of `pixels` are `colours` (BGR or RGB), `mean` and `deviation` (three numbers each);
// `score` is softmax, sigmoid or probability, `box` is pixels, log-pixels or cells. What is not
// given keeps its default, or has the value of NanoTrack's version `base` (v1, v2 or v3), if that
// is the first key. samples/tracker-configs has one. Throws Error, which names file and line, for
// unknown keys, keys that are given twice and values that cannot be.
TrackerConfig ReadTrackerConfig(const std::filesystem::path& path);

}  // namespace tessera
