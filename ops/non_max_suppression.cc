// NonMaxSuppression: of boxes that overlap, the one with the highest score.
// https://onnx.ai/onnx/operators/onnx__NonMaxSuppression.html
//
//   boxes [N, boxes, 4], scores [N, classes, boxes]
//   Y [selected, 3] of (image, class, box), by falling score within a class; int64
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/op.h"

namespace tessera {
namespace {

constexpr std::size_t kScores = 1, kMaxBoxes = 2, kIouThreshold = 3, kScoreThreshold = 4;

struct Box {
  float top, left, bottom, right;
  float area() const { return (bottom - top) * (right - left); }
};

Box ReadBox(const float* values, bool center) {
  if (center) {  // x, y, width, height
    const float half_width = values[2] / 2, half_height = values[3] / 2;
    return {values[1] - half_height, values[0] - half_width, values[1] + half_height,
            values[0] + half_width};
  }
  // y, x of any two corners that lie opposite.
  return {std::min(values[0], values[2]), std::min(values[1], values[3]),
          std::max(values[0], values[2]), std::max(values[1], values[3])};
}

bool Overlap(const Box& a, const Box& b, float threshold) {
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (!(height > 0 && width > 0)) return false;
  const float both = height * width, any = a.area() + b.area() - both;
  if (!(both > 0 && a.area() > 0 && b.area() > 0 && any > 0)) return false;
  return both / any > threshold;
}

template <typename T>
T ScalarOr(std::span<const TensorView> inputs, std::size_t i, T fallback) {
  const bool given = i < inputs.size() && inputs[i].present() && inputs[i].size() > 0;
  return given ? inputs[i].data<const T>()[0] : fallback;
}

// Triples (image, class, box).
std::vector<std::int64_t> Select(const OpNode& node, std::span<const TensorView> inputs) {
  const bool center = node.attributes.Int("center_point_box", 0) != 0;
  const auto most = ScalarOr<std::int64_t>(inputs, kMaxBoxes, 0);
  const auto iou_threshold = ScalarOr<float>(inputs, kIouThreshold, 0);
  const auto score_threshold =
      ScalarOr<float>(inputs, kScoreThreshold, -std::numeric_limits<float>::infinity());
  const bool any_score = score_threshold == -std::numeric_limits<float>::infinity();
  const Shape& shape = inputs[kScores].shape;
  std::vector<std::int64_t> result;
  if (most <= 0) return result;

  std::vector<Box> boxes(static_cast<std::size_t>(shape[2])), selected;
  std::vector<std::int64_t> order;
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::int64_t b = 0; b < shape[2]; ++b) {
      boxes[static_cast<std::size_t>(b)] =
          ReadBox(inputs[0].data<const float>() + (n * shape[2] + b) * 4, center);
    }
    for (std::int64_t c = 0; c < shape[1]; ++c) {
      const float* scores = inputs[kScores].data<const float>() + (n * shape[1] + c) * shape[2];
      order.clear();
      for (std::int64_t b = 0; b < shape[2]; ++b) {
        if (scores[b] > score_threshold || (any_score && !std::isnan(scores[b]))) {
          order.push_back(b);
        }
      }
      std::stable_sort(order.begin(), order.end(),
                       [&](std::int64_t a, std::int64_t b) { return scores[a] > scores[b]; });
      selected.clear();
      for (const std::int64_t b : order) {
        if (static_cast<std::int64_t>(selected.size()) == most) break;
        const Box& box = boxes[static_cast<std::size_t>(b)];
        if (std::any_of(selected.begin(), selected.end(),
                        [&](const Box& other) { return Overlap(box, other, iou_threshold); })) {
          continue;
        }
        selected.push_back(box);
        result.insert(result.end(), {n, c, b});
      }
    }
  }
  return result;
}

void InferNonMaxSuppression(const InferContext& context) {
  const TensorInfo &boxes = context.Input(0), &scores = context.Input(kScores);
  const Shape &b = boxes.shape, &s = scores.shape;
  Require(boxes.dtype == DType::kFloat32 && scores.dtype == DType::kFloat32, "boxes are ",
          boxes.dtype, ", scores ", scores.dtype);
  Require(b.rank() == 3 && s.rank() == 3 && b[2] == 4 && b[0] == s[0] && b[1] == s[2], "boxes ", b,
          " and scores ", s, " instead of [images, boxes, 4] and [images, classes, boxes]");
  const std::int64_t center = context.node.attributes.Int("center_point_box", 0);
  Require(center == 0 || center == 1, "center_point_box ", center, " is neither 0 nor 1");
  std::array<TensorView, kScoreThreshold + 1> views;
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (!context.HasInput(i)) continue;
    const TensorInfo& input = context.Input(i);
    const DType wanted = i == kMaxBoxes ? DType::kInt64 : DType::kFloat32;
    Require(input.dtype == wanted && (i <= kScores || input.shape.NumElements() <= 1), "input ", i,
            " is ", input.dtype, " ", input.shape);
    views[i] = context.Constant(i).view();
  }
  const auto values = static_cast<std::int64_t>(Select(context.node, views).size());
  context.SetOutput(0, DType::kInt64, {values / 3, 3});
}

class NonMaxSuppressionKernel final : public Kernel {
 public:
  explicit NonMaxSuppressionKernel(const OpNode& node) : node_(node) {}
  std::string_view name() const override { return "non_max_suppression"; }
  void Run(const RunContext& context) const override {
    const std::vector<std::int64_t> selected = Select(node_, context.inputs);
    Require(static_cast<std::int64_t>(selected.size()) == context.outputs[0].size(),
            "the inputs are not those of the plan");
    std::copy(selected.begin(), selected.end(), context.outputs[0].data<std::int64_t>());
  }

 private:
  OpNode node_;
};

std::unique_ptr<Kernel> PrepareNonMaxSuppression(const PrepareContext& context) {
  return std::make_unique<NonMaxSuppressionKernel>(context.node);
}

}  // namespace

extern const OpDef kNonMaxSuppressionOp;
const OpDef kNonMaxSuppressionOp = {
    .type = "NonMaxSuppression",
    .min_inputs = 2,
    .max_inputs = 5,
    .infer = InferNonMaxSuppression,
    .prepare = PrepareNonMaxSuppression,
    .first_opset = 10,
};

}  // namespace tessera
