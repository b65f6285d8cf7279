// Backbone and head in two networks, as NanoTrack has them.
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "ops/error.h"
#include "pipeline/tracking/network_outputs.h"
#include "pipeline/tracking/siamese_network.h"

namespace tessera {
namespace {

const std::string& File(const Session& session) { return session.name(); }

class TwoPartNetwork : public SiameseNetwork {
 public:
  TwoPartNetwork(std::shared_ptr<Session> backbone, std::shared_ptr<Session> head,
                 const TrackerConfig& config)
      : backbone_(std::move(backbone)), head_(std::move(head)) {
    Require(backbone_->inputs().size() == 1, File(*backbone_),
            ": a backbone has one input, this has ", backbone_->inputs().size());
    Require(head_->inputs().size() == 2, File(*head_), ": a head has two inputs, this has ",
            head_->inputs().size());
    const auto features = [this](std::int64_t size) {
      const Shape patch{1, 3, size, size};
      const Shape shape = backbone_->InferOutputs(std::array{patch}).at(0).shape;
      Require(shape.rank() == 4 && shape[0] == 1, File(*backbone_), ": features of ", patch,
              " are ", shape, ", want 1 x channels x height x width");
      return shape;
    };
    const Shape of_template = features(config.template_size),
                of_search = features(config.search_size);
    // By the declared sizes; where these do not tell, template features come first.
    template_index_ = MatchesDeclared(head_->inputs()[0], of_search) &&
                              MatchesDeclared(head_->inputs()[1], of_template) &&
                              !MatchesDeclared(head_->inputs()[0], of_template)
                          ? 1
                          : 0;
    std::array<Shape, 2> shapes;
    shapes[template_index_] = of_template;
    shapes[1 - template_index_] = of_search;
    outputs_ = FindMaps(*head_, shapes, config);
  }

  std::int64_t map_side() const override { return outputs_.side; }

  void SetTemplate(const TensorView& patch, Parallel& parallel) override {
    RunBackbone(patch, template_features_, parallel);
  }

  Maps Search(const TensorView& patch, Parallel& parallel) override {
    RunBackbone(patch, search_features_, parallel);
    const std::vector<ValueDecl>& inputs = head_->inputs();
    head_->Run(
        std::array<NamedView, 2>{
            NamedView{inputs[template_index_].name, template_features_.at(0).view()},
            NamedView{inputs[1 - template_index_].name, search_features_.at(0).view()}},
        maps_, &parallel);
    return {maps_[outputs_.classes].data<float>(), maps_[outputs_.boxes].data<float>()};
  }

 private:
  void RunBackbone(const TensorView& patch, std::vector<Tensor>& features, Parallel& parallel) {
    backbone_->Run(std::array<NamedView, 1>{NamedView{backbone_->inputs()[0].name, patch}},
                   features, &parallel);
  }

  const std::shared_ptr<Session> backbone_, head_;
  std::size_t template_index_ = 0;  // of the head's inputs
  MapOutputs outputs_;
  std::vector<Tensor> template_features_, search_features_, maps_;
};

}  // namespace

std::unique_ptr<SiameseNetwork> MakeTwoPartNetwork(std::shared_ptr<Session> backbone,
                                                   std::shared_ptr<Session> head,
                                                   const TrackerConfig& config) {
  return std::make_unique<TwoPartNetwork>(std::move(backbone), std::move(head), config);
}

}  // namespace tessera
