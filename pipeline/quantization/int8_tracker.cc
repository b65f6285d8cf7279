#include "pipeline/quantization/int8_tracker.h"

#include <filesystem>
#include <utility>

#include "engine/model_file.h"
#include "ops/error.h"
#include "pipeline/format_text.h"
#include "pipeline/quantization/quantize_network.h"
#include "pipeline/quantization/tracker_damage.h"
#include "pipeline/quantization/tracker_samples.h"
#include "pipeline/tracking/load_tracker.h"

namespace tessera {
namespace {

// Of the boxes with quantised networks to those with float ones, in the mean.
constexpr double kLeastOverlap = 0.9;
constexpr int kSearchesInFrame = 24, kSearchesInClip = 40;
constexpr std::int64_t kFrames = 64;  // that are looked at after the first
constexpr std::size_t kTests = 12;

// Whether the frames can be read beside the run that reads them.
bool CanBeReadAgain(const std::string& input) {
  std::error_code error;
  const std::filesystem::path path(input);
  return std::filesystem::is_regular_file(path, error) ||
         std::filesystem::is_directory(path, error) || input.find('%') != std::string::npos;
}

std::shared_ptr<Session> QuantizePart(const Int8Network& network, const Calibration& calibration,
                                      const Int8Note& note) {
  QuantizedModel model = QuantizeNetwork(network.graph(), calibration, std::nullopt, {});
  if (!(model.damage <= 1 - kLeastOverlap)) {
    note(StrCat(network.name(), ": the boxes of int8 would overlap those of float32 by ",
                Fixed(100 * (1 - model.damage), 1),
                " % only; the layers that do the harm are searched for"));
    model = QuantizeNetwork(network.graph(), calibration, 1 - kLeastOverlap, {});
  }
  note(StrCat(network.name(), ": ", CountText(model), ", boxes overlap those of float32 by ",
              Fixed(100 * (1 - model.damage), 1), " %"));
  return network.Keep(model.graph, note);
}

}  // namespace

Int8Tracker::Int8Tracker(const TrackerFiles& files, const std::optional<ModelCache>& cache,
                         int threads)
    : threads_(threads), model_(ImportModel(files.model), cache) {
  // The head is calibrated with the backbone's features.
  if (!files.head.empty()) head_.emplace(ImportModel(files.head), cache, model_.onnx());
  float_.model = model_.LoadFloat();
  if (head_) float_.head = head_->LoadFloat();
  float_.config = FindTrackerConfig(files.variant, *float_.model, float_.head.get());
  model_int8_ = model_.Find();
  if (head_) head_int8_ = head_->Find();
}

void Int8Tracker::Quantize(const std::string& input, const Frame& first, const Box& box,
                           const Int8Note& note) {
  TrackerSampler sampler(MakeSiameseNetwork(float_.model, float_.head.get(), float_.config),
                         float_.config, threads_);
  sampler.AddFrame(first.view(), box, kSearchesInFrame);
  if (CanBeReadAgain(input)) {
    const auto again =
        OpenFrameSource(input, {.start = first.number, .end = first.number + kFrames});
    sampler.AddClip(*again, input, {{first.number, box}}, kSearchesInClip);
  }
  const TrackerSamples samples = sampler.Take(), tests = SomeOf(samples, kTests);
  if (model_int8_ == nullptr) {
    model_int8_ = QuantizePart(model_,
                               {.samples = ModelInputs(float_, samples),
                                .tests = ModelInputs(float_, tests),
                                .damage = ModelBoxDamage(float_, tests)},
                               note);
  }
  if (head_ && head_int8_ == nullptr) {
    head_int8_ = QuantizePart(*head_,
                              {.samples = HeadInputs(float_, samples),
                               .tests = HeadInputs(float_, tests),
                               .damage = HeadBoxDamage(float_, tests)},
                              note);
  }
}

Tracker Int8Tracker::Make() const {
  const std::shared_ptr<Session> model = model_int8_ != nullptr ? model_int8_ : float_.model;
  const std::shared_ptr<Session> head = head_int8_ != nullptr ? head_int8_ : float_.head;
  return Tracker(MakeSiameseNetwork(model, head.get(), float_.config), float_.config, threads_);
}

}  // namespace tessera
