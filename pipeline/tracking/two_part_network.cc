// Backbone and head in two networks, as NanoTrack has them.
#include <array>
#include <utility>
#include <vector>

#include "ops/error.h"
#include "pipeline/tracking/network_shapes.h"
#include "pipeline/tracking/siamese_network.h"
#include "pipeline/tracking/split_network.h"

namespace tessera {
namespace {

SplitNetwork SplitHead(Session& head, const Shape& of_template, const Shape& of_search,
                       const TrackerConfig& config) {
  const std::vector<ValueDecl>& inputs = head.inputs();
  Require(inputs.size() == 2, head.name(), ": has ", inputs.size(),
          " inputs, a head has two: features of the template and of the search patch");
  // By the names of the configuration, else by the declared sizes; where these do not tell, those
  // of the template come first.
  const auto called = [&](const std::string& name, std::size_t i) {
    return !name.empty() && inputs[i].name == name;
  };
  const bool by_name = called(config.template_input, 1) || called(config.search_input, 0);
  const bool by_size = !MatchesDeclared(inputs[0], of_template) &&
                       MatchesDeclared(inputs[0], of_search) &&
                       MatchesDeclared(inputs[1], of_template);
  const bool template_is_second = by_name || by_size;
  if (template_is_second) return {head, 1, {of_search, of_template}, config};
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
