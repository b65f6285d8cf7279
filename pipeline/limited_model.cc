#include "pipeline/limited_model.h"

#include <semaphore>
#include <utility>

namespace tessera {
namespace {

class LimitedModel final : public TileModel {
 public:
  LimitedModel(std::unique_ptr<TileModel> model, int runs)
      : model_(std::move(model)), free_(runs) {}

  const std::string& name() const override { return model_->name(); }
  const ModelTraits& traits() const override { return model_->traits(); }
  std::size_t RunBytes(std::int64_t width, std::int64_t height) const override {
    return model_->RunBytes(width, height);
  }

  void Run(const TensorView& input, std::vector<Tensor>& outputs, Parallel& parallel) override {
    free_.acquire();
    const struct Released {
      std::counting_semaphore<>& free;
      ~Released() { free.release(); }
    } released{free_};
    model_->Run(input, outputs, parallel);
  }

 private:
  const std::unique_ptr<TileModel> model_;
  std::counting_semaphore<> free_;
};

}  // namespace

std::unique_ptr<TileModel> MakeLimitedModel(std::unique_ptr<TileModel> model, int runs) {
  return std::make_unique<LimitedModel>(std::move(model), runs);
}

}  // namespace tessera
