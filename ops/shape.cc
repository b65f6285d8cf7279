// Shape and Size. Both need only the shape of their input, which is known at plan time.
// https://onnx.ai/onnx/operators/onnx__Shape.html
#include <algorithm>
#include <vector>

#include "ops/op.h"

namespace tessera {
namespace {

// The dimensions that are asked for; attributes start and end came with opset 15.
std::vector<std::int64_t> WantedDims(const OpNode& node, const Shape& shape) {
  const std::int64_t rank = shape.rank();
  std::int64_t start = 0, end = rank;
  if (node.opset >= 15) {
    const auto place = [&](std::int64_t at) {
      return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
    };
    start = place(node.attributes.Int("start", 0));
    end = std::max(start, place(node.attributes.Int("end", rank)));
  }
  return {shape.begin() + start, shape.begin() + end};
}

void InferShape(const InferContext& context) {
  const auto n = static_cast<std::int64_t>(WantedDims(context.node, context.Input(0).shape).size());
  context.SetOutput(0, DType::kInt64, Shape{n});
}

void InferSize(const InferContext& context) {
  context.Input(0);
  context.SetOutput(0, DType::kInt64, Shape{});
}

class WriteInt64sKernel final : public Kernel {
 public:
  WriteInt64sKernel(std::string_view name, std::vector<std::int64_t> values)
      : name_(name), values_(std::move(values)) {}
  std::string_view name() const override { return name_; }
  void Run(const RunContext& context) const override {
    std::copy(values_.begin(), values_.end(), context.outputs[0].data<std::int64_t>());
  }

 private:
  std::string_view name_;
  std::vector<std::int64_t> values_;
};

std::unique_ptr<Kernel> PrepareShape(const PrepareContext& context) {
  return std::make_unique<WriteInt64sKernel>("shape",
                                             WantedDims(context.node, context.inputs[0].shape));
}

std::unique_ptr<Kernel> PrepareSize(const PrepareContext& context) {
  return std::make_unique<WriteInt64sKernel>(
      "size", std::vector<std::int64_t>{context.inputs[0].shape.NumElements()});
}

}  // namespace

extern const OpDef kShapeOp, kSizeOp;
const OpDef kShapeOp = {
    .type = "Shape",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferShape,
    .prepare = PrepareShape,
};
const OpDef kSizeOp = {
    .type = "Size",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferSize,
    .prepare = PrepareSize,
};

}  // namespace tessera
