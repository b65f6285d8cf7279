#include "pipeline/quantization/calibration.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "ops/error.h"
#include "pipeline/display_name.h"
#include "pipeline/quantization/damage.h"
#include "pipeline/quantization/input_list.h"
#include "pipeline/quantization/raw_samples.h"
#include "pipeline/quantization/tracker_damage.h"
#include "pipeline/quantization/tracker_samples.h"
#include "pipeline/tracking/load_tracker.h"

namespace tessera {
namespace {

constexpr std::size_t kTests = 8, kTrackerTests = 16;

// Whether what comes out is a picture like what went in.
bool MakesPictures(Session& network, const Shape& input) {
  const std::vector<TensorView> outputs = network.InferOutputs(std::array{input});
  return outputs.size() == 1 && outputs[0].shape.rank() == 4 && outputs[0].shape[1] == input[1] &&
         outputs[0].shape[2] > 1 && outputs[0].shape[3] > 1;
}

Calibration OfRaw(Session& network, const std::vector<std::string>& texts) {
  Calibration calibration{.samples = ReadRawSamples(network, texts), .damage = RelativeDamage};
  calibration.tests = SomeOf(calibration.samples, kTests);
  return calibration;
}

Calibration OfPictures(Session& network, const std::vector<std::string>& inputs,
                       const CalibrationOptions& options) {
  const Shape tile = FindTileShape(network, options.side);
  Calibration calibration{
      .samples = SampleInputs(inputs, tile, options.samples.value_or(kSampleTiles)),
      .damage = RelativeDamage};
  if (MakesPictures(network, tile)) {
    calibration.damage = PictureDamage;
    calibration.unit = DamageUnit::kDecibels;
  }
  calibration.tests = SomeOf(calibration.samples, kTests);
  return calibration;
}

Calibrations OfTracker(const TrackerSessions& sessions, const CalibrationOptions& options) {
  Require(options.inputs.size() == 1, "a tracker is calibrated with one clip, not with ",
          options.inputs.size());
  const std::string& input = options.inputs[0];
  const bool backbone_alone = sessions.head == nullptr && sessions.model->inputs().size() == 1;
  TrackerSampler sampler(
      backbone_alone ? nullptr
                     : MakeSiameseNetwork(sessions.model, sessions.head.get(), sessions.config),
      sessions.config, options.threads);
  SourceOptions source;
  if (!options.boxes->empty()) source.start = options.boxes->begin()->first;
  NamingClip(input, [&] {
    sampler.AddClip(*OpenFrameSource(input, source), ShownInput(input), *options.boxes,
                    options.samples.value_or(kTrackerSearches));
  });
  const TrackerSamples samples = sampler.Take(), tests = SomeOf(samples, kTrackerTests);
  Calibrations all;
  all.model.samples = ModelInputs(sessions, samples);
  all.model.tests = ModelInputs(sessions, tests);
  all.model.damage = RelativeDamage;
  if (backbone_alone) return all;
  all.model.damage = ModelBoxDamage(sessions, tests);
  all.model.unit = DamageUnit::kOverlap;
  if (sessions.head != nullptr) {
    all.head = Calibration{.samples = HeadInputs(sessions, samples),
                           .tests = HeadInputs(sessions, tests),
                           .damage = HeadBoxDamage(sessions, tests),
                           .unit = DamageUnit::kOverlap};
  }
  return all;
}

// Without a head or a variant the patches are those that all versions of NanoTrack have.
TrackerConfig ConfigOf(const std::string& variant, Session& model, Session* head) {
  if (head == nullptr && variant.empty() && model.inputs().size() == 1) return NanoTrackConfig(1);
  return FindTrackerConfig(variant, model, head);
}

}  // namespace

Calibrations Calibrate(const Graph& model, const Graph* head, const CalibrationOptions& options) {
  const std::shared_ptr<Session> session = MakeSession(model);
  if (options.boxes) {
    const std::shared_ptr<Session> head_session = head == nullptr ? nullptr : MakeSession(*head);
    return OfTracker(
        {session, head_session, ConfigOf(options.variant, *session, head_session.get())}, options);
  }
  Require(head == nullptr,
          "a head is calibrated with a clip and the target's box in it (--init or "
          "--groundtruth)");
  const std::vector<std::string> inputs = ListInputs(options.inputs);
  const auto raw = std::ranges::count_if(inputs, IsRawSpec);
  Require(raw == 0 || raw == std::ssize(inputs), "raw numbers and pictures do not go together");
  Calibrations all;
  all.model = raw > 0 ? OfRaw(*session, inputs) : OfPictures(*session, inputs, options);
  return all;
}

}  // namespace tessera
