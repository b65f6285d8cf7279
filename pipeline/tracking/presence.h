// Whether a target is there, from the scores that the network gives it.
#pragma once

#include <optional>

namespace tessera {

// log(score / (1 - score)), for a score from 0 to 1; those that float32 does not tell from 0 and 1
// give -20.7 and 20.7.
double Logit(double score);

// Scores of some targets stay at 0.95 where those of others stay at 0.9999, and come down slowly
// when a target turns; without the target, something else in the picture may still reach 0.95. So
// what counts is the logit beside what it usually was.
//
// A frame is one of doubt if its score is below `lost_below`, or its logit has come down from the
// usual one, on the way to that of `lost_below`, to less than kLostShare of it. A target is lost
// after kDoubtsOfLoss such frames (others take one off the count again), and found by a logit above
// kFoundShare of that way, if the score is above `found_above` too.
class Presence {
 public:
  static constexpr double kLostShare = 0.27, kFoundShare = 0.47;
  // Motion blur, or somebody who walks past, takes one or two.
  static constexpr int kDoubtsOfLoss = 3;

  // Scores from 0 to 1.
  Presence(double lost_below, double found_above);

  // For a new target.
  void Reset();
  // The target was followed to where it has this score.
  void Followed(double score);
  // It was looked for, being lost; says whether it is there.
  bool Found(double score);

  bool doubted() const { return doubts_ > 0; }
  bool lost() const { return doubts_ >= kDoubtsOfLoss; }

 private:
  // The logit so far above the lowest one.
  double Threshold(double share) const;

  double lost_below_, found_above_;  // logits
  std::optional<double> usual_;      // logit, of the frames without doubt
  int doubts_ = 0;
};

}  // namespace tessera
