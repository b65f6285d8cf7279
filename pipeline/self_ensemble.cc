#include "pipeline/self_ensemble.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "ops/parallel.h"

namespace tessera {
namespace {

struct Turn {
  bool flip_x, flip_y, transpose;
};

// The flips come first: they are all there is for networks that cannot take transposed inputs.
constexpr std::array<Turn, 8> kTurns = {{{false, false, false},
                                         {true, false, false},
                                         {false, true, false},
                                         {true, true, false},
                                         {false, false, true},
                                         {true, false, true},
                                         {false, true, true},
                                         {true, true, true}}};
constexpr std::size_t kFlips = 4;

// Calls body(i, j) for each pixel of `planes` pictures of height h and width w: i is the pixel's
// index in them, j that in their turned forms.
template <typename Body>
void ForEachPixel(std::int64_t planes, std::int64_t h, std::int64_t w, const Turn& turn,
                  Parallel& parallel, Body&& body) {
  const std::int64_t step_x = (turn.flip_x ? -1 : 1) * (turn.transpose ? h : 1);
  const std::int64_t step_y = (turn.flip_y ? -1 : 1) * (turn.transpose ? 1 : w);
  const std::int64_t start =
      (turn.flip_x ? -(w - 1) * step_x : 0) + (turn.flip_y ? -(h - 1) * step_y : 0);
  // Columns of so many rows fill a cache line on either side of a transposition.
  constexpr std::int64_t kRows = 16;
  const std::int64_t bands = (h + kRows - 1) / kRows;
  parallel.For(planes * bands, [&](std::int64_t item, int) {
    const std::int64_t plane = item / bands * h * w, top = item % bands * kRows;
    const std::int64_t bottom = std::min(top + kRows, h);
    if (turn.transpose) {
      for (std::int64_t x = 0; x < w; ++x) {
        for (std::int64_t y = top; y < bottom; ++y)
          body(plane + y * w + x, plane + start + y * step_y + x * step_x);
      }
    } else {
      for (std::int64_t y = top; y < bottom; ++y) {
        for (std::int64_t x = 0; x < w; ++x)
          body(plane + y * w + x, plane + start + y * step_y + x * step_x);
      }
    }
  });
}

// Takes inputs from either end.
ReceptiveField::Axis Symmetric(ReceptiveField::Axis axis) {
  axis.before = axis.after = std::max(axis.before, axis.after);
  axis.exact_before = axis.exact_after = std::max(axis.exact_before, axis.exact_after);
  return axis;
}

// `tensor` as float32 of `shape`; its memory is kept if that is its shape already.
void Reshape(Tensor& tensor, const Shape& shape) {
  if (!tensor.view().present() || tensor.shape() != shape) {
    tensor = Tensor(DType::kFloat32, shape);
  }
}

class SelfEnsemble final : public TileModel {
 public:
  explicit SelfEnsemble(std::unique_ptr<TileModel> model)
      : model_(std::move(model)), traits_(model_->traits()) {
    ReceptiveField::Axis& x = traits_.field.width;
    ReceptiveField::Axis& y = traits_.field.height;
    x = Symmetric(x);
    y = Symmetric(y);
    transposes_ =
        x.scale_num == y.scale_num && x.scale_den == y.scale_den && x.alignment == y.alignment &&
        (!traits_.fixed_input || traits_.fixed_input->width == traits_.fixed_input->height);
    if (transposes_) {
      x.before = x.after = y.before = y.after = std::max(x.before, y.before);
      x.exact_before = x.exact_after = y.exact_before = y.exact_after =
          std::max(x.exact_before, y.exact_before);
    }
  }

  const std::string& name() const override { return model_->name(); }
  const ModelTraits& traits() const override { return traits_; }

  void Run(const TensorView& input, std::vector<Tensor>& outputs, Parallel& parallel) override {
    const std::int64_t planes = input.shape[1], h = input.shape[2], w = input.shape[3];
    std::array<std::vector<Tensor>, 2> own = TakeOwn(outputs);
    outputs.resize(kOwn);
    Tensor& mean = outputs[kMean];
    Tensor& turned = outputs[kTurned];
    Reshape(turned, input.shape);
    const std::size_t runs = transposes_ ? kTurns.size() : kFlips;
    const float share = 1 / static_cast<float>(runs);
    for (std::size_t i = 0; i < runs; ++i) {
      const Turn& turn = kTurns[i];
      TensorView view = turned.view();
      if (turn.transpose) std::swap(view.shape[2], view.shape[3]);
      ForEachPixel(planes, h, w, turn, parallel,
                   [from = input.data<const float>(), to = view.data<float>()](
                       std::int64_t here, std::int64_t there) { to[there] = from[here]; });
      std::vector<Tensor>& results = own[turn.transpose && h != w ? 1 : 0];
      model_->Run(view, results, parallel);
      if (i == 0) Reshape(mean, results[0].shape());
      ForEachPixel(planes, mean.shape()[2], mean.shape()[3], turn, parallel,
                   [from = results[0].data<const float>(), to = mean.data<float>(), share,
                    first = i == 0](std::int64_t here, std::int64_t there) {
                     to[here] = (first ? 0 : to[here]) + share * from[there];
                   });
    }
    GiveOwn(std::move(own), outputs);
  }

  // The network keeps the buffers of inputs of both shapes.
  std::size_t RunBytes(std::int64_t width, std::int64_t height) const override {
    const ReceptiveField::Axis &x = traits_.field.width, &y = traits_.field.height;
    const std::int64_t result =
        (width * x.scale_num / x.scale_den) * (height * y.scale_num / y.scale_den);
    const auto samples = static_cast<std::size_t>(traits_.channels * (width * height + result));
    const std::size_t transposed =
        transposes_ && width != height ? model_->RunBytes(height, width) : 0;
    return model_->RunBytes(width, height) + transposed + samples * sizeof(float);
  }

 private:
  // What `outputs` of Run holds: the mean, the turned input, and what the network's own runs left
  // there, half of it from inputs of the same shape and half from transposed ones.
  static constexpr std::size_t kMean = 0, kTurned = 1, kOwn = 2;

  static std::array<std::vector<Tensor>, 2> TakeOwn(std::vector<Tensor>& outputs) {
    std::array<std::vector<Tensor>, 2> own;
    if (outputs.size() <= kOwn) return own;
    const auto first = outputs.begin() + kOwn, middle = first + (outputs.end() - first) / 2;
    own[0].assign(std::move_iterator(first), std::move_iterator(middle));
    own[1].assign(std::move_iterator(middle), std::move_iterator(outputs.end()));
    return own;
  }

  static void GiveOwn(std::array<std::vector<Tensor>, 2> own, std::vector<Tensor>& outputs) {
    const std::size_t half = std::max(own[0].size(), own[1].size());
    for (std::vector<Tensor>& tensors : own) {
      tensors.resize(half);
      std::move(tensors.begin(), tensors.end(), std::back_inserter(outputs));
    }
  }

  std::unique_ptr<TileModel> model_;
  ModelTraits traits_;
  bool transposes_ = false;  // runs on transposed inputs, too
};

}  // namespace

std::unique_ptr<TileModel> MakeSelfEnsemble(std::unique_ptr<TileModel> model) {
  return std::make_unique<SelfEnsemble>(std::move(model));
}

}  // namespace tessera
