// How well NanoTrack follows real targets, beside the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "pipeline/tracking/ground_truth.h"
#include "pipeline/tracking/track_metrics.h"
#include "pipeline/tracking/tracker.h"
#include "pipeline/video/frame_source.h"
#include "tests/pipeline/tracking/nanotrack.h"
#include "tests/pipeline/tracking/sequences.h"
#include "tests/shared_files.h"

namespace tessera {
namespace {

std::vector<TrackRecord> Follow(const std::filesystem::path& shared, const std::string& name,
                                Tracker& tracker) {
  const auto source = OpenSequence(shared, name);
  const Box start = StartBox(shared, name);
  std::vector<TrackRecord> records;
  Frame frame;
  while (source->Read(frame)) {
    if (records.empty()) {
      tracker.Init(frame.view(), start);
      records.push_back({frame.number, frame.seconds, start, 1, false});
      continue;
    }
    const TrackResult result = tracker.Update(frame.view());
    records.push_back({frame.number, frame.seconds, result.box, result.score, result.lost});
  }
  return records;
}

// What the reference made of it.
std::vector<TrackRecord> ReferenceRecords(const std::filesystem::path& shared,
                                          const std::string& name, int version) {
  std::vector<TrackRecord> records;
  for (const auto& [frame, box] :
       ReadGroundTruth(shared / "tracking/boxes" / StrCat(name, "_v", version, ".csv"))) {
    records.push_back({frame, 0, box, 1, false});
  }
  return records;
}

class TrackerQuality : public testing::TestWithParam<int> {};

TEST_P(TrackerQuality, FreeRunsAreAsGoodAsThoseOfTheReference) {
  const auto shared = SharedFolder();
  if (!shared) GTEST_SKIP() << "needs the shared folder";
  Tracker tracker = LoadNanoTrack(*shared, GetParam());
  double ours = 0, theirs = 0;
  const std::vector<std::string> names = {"crossing", "dog1", "car4"};
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const GroundTruth truth = ReadGroundTruth(SequenceFolder(*shared, name) / "gt.csv");
    const std::vector<TrackRecord> records = Follow(*shared, name, tracker);
    const TrackMetrics metrics = Measure(records, truth);
    const TrackMetrics reference = Measure(ReferenceRecords(*shared, name, GetParam()), truth);
    EXPECT_EQ(metrics.frames, reference.frames);
    EXPECT_NEAR(metrics.success_auc, reference.success_auc, 0.02);
    EXPECT_GT(metrics.precision_20, 0.9);
    ours += metrics.success_auc;
    theirs += reference.success_auc;
    // The targets are in every frame.
    EXPECT_EQ(std::ranges::count_if(records, &TrackRecord::lost), 0);
  }
  EXPECT_NEAR(ours / 3, theirs / 3, 0.01);
}

// Without known boxes; the skater is there to the end.
TEST_P(TrackerQuality, HoldsTheSkater) {
  const auto shared = SharedFolder();
  if (!shared) GTEST_SKIP() << "needs the shared folder";
  Tracker tracker = LoadNanoTrack(*shared, GetParam());
  const std::vector<TrackRecord> records = Follow(*shared, "fear_test", tracker),
                                 reference = ReferenceRecords(*shared, "fear_test", GetParam());
  ASSERT_EQ(records.size(), reference.size());
  double overlap = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    overlap += Overlap(records[i].box, reference[i].box) / static_cast<double>(records.size());
  }
  EXPECT_GT(overlap, 0.85);
  EXPECT_LE(std::ranges::count_if(records, &TrackRecord::lost), 0.01 * 661);
}

INSTANTIATE_TEST_SUITE_P(NanoTrack, TrackerQuality, testing::Values(1, 2, 3),
                         [](const auto& param) { return StrCat("v", param.param); });

}  // namespace
}  // namespace tessera
