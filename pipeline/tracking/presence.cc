#include "pipeline/tracking/presence.h"

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

// What a frame weighs in the usual logit. That of a target which turns comes down slowly, and the
// usual one with it; it must not follow one that goes behind something.
constexpr double kRise = 0.1, kFall = 0.06;

}  // namespace

double Logit(double score) {
  constexpr double kMargin = 1e-9;  // beyond it float32 says nothing
  const double p = std::clamp(score, kMargin, 1 - kMargin);
  return std::log(p / (1 - p));
}

Presence::Presence(double lost_below, double found_above)
    : lost_below_(Logit(lost_below)), found_above_(Logit(found_above)) {}

double Presence::Threshold(double share) const {
  return lost_below_ + share * std::max(0.0, usual_.value_or(lost_below_) - lost_below_);
}

void Presence::Reset() {
  usual_.reset();
  doubts_ = 0;
}

void Presence::Followed(double score) {
  const double logit = Logit(score);
  if (!(logit >= Threshold(kLostShare))) {  // so with what is no number
    ++doubts_;
    return;
  }
  const double before = usual_.value_or(logit);
  usual_ = before + (logit > before ? kRise : kFall) * (logit - before);
  doubts_ = std::max(0, doubts_ - 1);
}

bool Presence::Found(double score) {
  if (!(Logit(score) > std::max(found_above_, Threshold(kFoundShare)))) return false;
  doubts_ = 0;
  return true;
}

}  // namespace tessera
