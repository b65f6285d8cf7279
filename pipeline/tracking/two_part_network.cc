// Backbone and head in two networks, as NanoTrack has them.
#include <array>
#include <utility>
#include <vector>

#include "pipeline/tracking/network_shapes.h"
#include "pipeline/tracking/siamese_network.h"
#include "pipeline/tracking/split_network.h"

namespace tessera {
namespace {

SplitNetwork SplitHead(Session& head, const Shape& of_template, const Shape& of_search,
                       const TrackerConfig& config) {
  if (HeadTemplateInput(head, config, of_template, of_search) == 1)
    return {head, 1, {of_search, of_template}, config};
  return {head, 0, {of_template, of_search}, config};
}

class TwoPartNetwork final : public SiameseNetwork {
 public:
  TwoPartNetwork(std::shared_ptr<Session> backbone, Session& head, const TrackerConfig& config)
      : backbone_(std::move(backbone)),
        head_(SplitHead(head, FeatureShape(*backbone_, config.template_size),
                        FeatureShape(*backbone_, config.search_size), config)) {}

  std::int64_t map_side() const override { return head_.map_side(); }

  void SetTemplate(const TensorView& patch, Parallel& parallel) override {
    head_.SetTemplate(Features(patch, template_features_, parallel), parallel);
  }
  Maps Search(const TensorView& patch, Parallel& parallel) override {
    return head_.Search(Features(patch, search_features_, parallel), parallel);
  }

 private:
  const TensorView& Features(const TensorView& patch, std::vector<Tensor>& features,
                             Parallel& parallel) {
    backbone_->Run(std::array{NamedView{backbone_->inputs()[0].name, patch}}, features, &parallel);
    return features[0].view();
  }

  const std::shared_ptr<Session> backbone_;
  SplitNetwork head_;
  std::vector<Tensor> template_features_, search_features_;
};

}  // namespace

std::unique_ptr<SiameseNetwork> MakeTwoPartNetwork(std::shared_ptr<Session> backbone, Session& head,
                                                   const TrackerConfig& config) {
  return std::make_unique<TwoPartNetwork>(std::move(backbone), head, config);
}

}  // namespace tessera
