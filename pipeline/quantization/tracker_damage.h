// What quantisation does to the boxes that a tracker finds.
#pragma once

#include "engine/quantization/quantizer.h"
#include "pipeline/quantization/tracker_inputs.h"

namespace tessera {

// Damages as the share of the boxes that does not agree: 1 less the mean overlap (intersection over
// union) of the boxes that the tracker finds with the float network and with the quantised one in
// the same search patches, 0 to 1. They hold what they need of their arguments.
//
// For the outputs of the network for ModelInputs; those of a backbone go through the float head.
Damage ModelBoxDamage(const TrackerSessions& sessions, const TrackerSamples& samples);
// For the outputs of the head for HeadInputs.
Damage HeadBoxDamage(const TrackerSessions& sessions, const TrackerSamples& samples);

}  // namespace tessera
