#include "pipeline/tracking/load_tracker.h"

#include <filesystem>
#include <memory>
#include <string>

#include "ops/error.h"
#include "pipeline/tracking/network_shapes.h"

namespace tessera {
namespace {

// The version that has these networks. Its features have 48 channels and its maps 16 x 16 points,
// but for version 3 with 96 and 15 x 15; what tells versions 1 and 2 apart is that the head of the
// second, which correlates once for either map, has half as many weights again.
int NanoTrackVersion(Session& backbone, Session& head) {
  const std::int64_t found = FeatureShape(backbone, NanoTrackConfig(1).search_size)[1];
  if (found == 96) return 3;
  Require(found == 48, backbone.name(), ": no version of NanoTrack has features of ", found,
          " channels; --variant says what the tracker has to know");
  constexpr std::int64_t kHeadWeights1 = 96678, kHeadWeights2 = 142024;
  return head.num_weights() < (kHeadWeights1 + kHeadWeights2) / 2 ? 1 : 2;
}

}  // namespace

TrackerConfig FindTrackerConfig(const std::string& variant, Session& model, Session* head) {
  if (const auto version = NanoTrackNamed(variant)) return NanoTrackConfig(*version);
  if (!variant.empty()) {
    Require(std::filesystem::exists(variant), variant, ": is neither v1, v2, v3 nor a file");
    return ReadTrackerConfig(variant);
  }
  Require(head != nullptr, model.name(), ": ",
          model.inputs().size() == 1
              ? "is a backbone, which goes with a --head"
              : "a network with both towers goes with a file that describes it (--variant)");
  return NanoTrackConfig(NanoTrackVersion(model, *head));
}

std::unique_ptr<SiameseNetwork> MakeSiameseNetwork(const std::shared_ptr<Session>& model,
                                                   Session* head, const TrackerConfig& config) {
  return head == nullptr ? MakeTwoInputNetwork(*model, config)
                         : MakeTwoPartNetwork(model, *head, config);
}

Tracker LoadTracker(const TrackerFiles& files, int threads) {
  const std::shared_ptr<Session> model = Session::Load(files.model);
  const std::shared_ptr<Session> head = files.head.empty() ? nullptr : Session::Load(files.head);
  const TrackerConfig config = FindTrackerConfig(files.variant, *model, head.get());
  return Tracker(MakeSiameseNetwork(model, head.get(), config), config, threads);
}

}  // namespace tessera
