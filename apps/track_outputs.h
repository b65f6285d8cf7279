// What `track` writes and prints of a run, beside the video.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <opencv2/core/mat.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/track_arguments.h"
#include "pipeline/tracking/track_record.h"
#include "pipeline/tracking/track_steps.h"
#include "pipeline/tracking/tracker.h"
#include "pipeline/video/frame_source.h"

namespace tessera {

// Throws Error, which names the file, for outputs that exist (unless they may be overwritten), that
// cannot be written, or that are an input or the same file as another output.
void CheckOutputs(const TrackArguments& arguments);

class TrackOutputs {
 public:
  // Opens the files of records. `reference`: for --steps-in. Throws Error, which names the file.
  TrackOutputs(const TrackArguments& arguments, const std::vector<TrackStep>& reference);

  void Started(const Frame& first);
  // Puts the tracker into the state of the reference, if there is one.
  void Updating(const Frame& frame, Tracker& tracker);
  void Updated(const Frame& frame, const Tracker& tracker);
  void Recorded(const TrackRecord& record);

  // Completes the files with what there is. Those that fail do not keep the others from it: returns
  // why they did.
  std::vector<std::string> Close();

  // Of all frames so far, if there is a plot to be drawn or a ground truth to compare with.
  const std::vector<TrackRecord>& records() const { return records_; }
  // That were made, of those that the reference has.
  std::size_t steps() const { return steps_.size(); }
  std::size_t reference_steps() const { return reference_.size(); }

 private:
  const TrackArguments& arguments_;
  const bool keeps_records_;
  std::vector<std::unique_ptr<RecordWriter>> writers_;
  std::vector<TrackRecord> records_;
  cv::Mat first_frame_;
  std::map<std::int64_t, Tracker::State> reference_;  // before the frame with that number
  std::optional<Tracker::State> before_;
  std::vector<TrackStep> steps_;
};

}  // namespace tessera
