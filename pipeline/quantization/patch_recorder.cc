#include "pipeline/quantization/patch_recorder.h"

#include <cstring>
#include <utility>

namespace tessera {
namespace {

constexpr std::int64_t kSide = 16;
constexpr std::size_t kClasses = 2, kSides = 4;  // channels of the maps, at most

Tensor Copy(const TensorView& patch) {
  Tensor copy(patch.dtype, patch.shape);
  std::memcpy(copy.data<float>(), patch.bytes, copy.bytes());
  return copy;
}

}  // namespace

PatchRecorder::PatchRecorder(std::unique_ptr<SiameseNetwork> network, Tape& tape)
    : network_(std::move(network)), tape_(tape) {
  if (network_ == nullptr) nothing_.assign((kClasses + kSides) * kSide * kSide, 0.0F);
}

std::int64_t PatchRecorder::map_side() const {
  return network_ == nullptr ? kSide : network_->map_side();
}

void PatchRecorder::SetTemplate(const TensorView& patch, Parallel& parallel) {
  if (tape_.recording) tape_.samples.targets.push_back(Copy(patch));
  if (network_ != nullptr) network_->SetTemplate(patch, parallel);
}

SiameseNetwork::Maps PatchRecorder::Search(const TensorView& patch, Parallel& parallel) {
  if (tape_.recording && !tape_.samples.targets.empty())
    tape_.samples.searches.push_back(
        {.target = tape_.samples.targets.size() - 1, .patch = Copy(patch)});
  if (network_ != nullptr) return network_->Search(patch, parallel);
  return {nothing_.data(), nothing_.data() + kClasses * kSide * kSide};
}

}  // namespace tessera
