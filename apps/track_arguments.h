// The command line of `track`.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "pipeline/tracking/box.h"
#include "pipeline/tracking/tracker.h"
#include "pipeline/video/frame_source.h"

namespace tessera {

// Paths that are not given are empty.
struct TrackArguments {
  std::string print;  // help or version, to be shown instead of doing anything

  std::string input;
  SourceOptions source;
  bool start_given = false;
  std::optional<double> picture_rate;  // frames a second
  TrackerFiles tracker;
  bool int8 = false;  // it is to compute with 8-bit integers
  int threads = 1;
  std::size_t max_memory = 0;  // bytes; 0: DefaultMaxMemory()

  // Of the target in the first frame: the box, or a file for pipeline's ReadBox.
  std::optional<Box> box;
  std::filesystem::path box_file;

  std::filesystem::path output;               // video, or folder of pictures
  std::filesystem::path csv, json;            // records; "-" is standard output
  std::filesystem::path plot;                 // picture of the whole run
  std::filesystem::path ground_truth;         // boxes to compare with
  std::filesystem::path steps_in, steps_out;  // of single steps
  bool overwrite = false;

  bool display = false, quiet = false;
};

// Throws Error for what cannot be meant.
TrackArguments ParseTrackArguments(int argc, char** argv);

}  // namespace tessera
