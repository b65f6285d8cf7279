// Constant and ConstantOfShape.
// https://onnx.ai/onnx/operators/onnx__Constant.html
// https://onnx.ai/onnx/operators/onnx__ConstantOfShape.html
#include <algorithm>
#include <cstring>
#include <vector>

#include "ops/elements.h"
#include "ops/op.h"

namespace tessera {
namespace {

template <typename T>
std::shared_ptr<const Tensor> Scalar(T value) {
  return std::make_shared<const Tensor>(Tensor::FromVector<T>({}, {value}));
}

template <typename T>
std::shared_ptr<const Tensor> Vector(const std::vector<T>& values) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  return std::make_shared<const Tensor>(Tensor::FromVector<T>(shape, values));
}

std::shared_ptr<const Tensor> ValueOf(const OpNode& node) {
  const Attributes& a = node.attributes;
  if (auto tensor = a.TensorValue("value")) return tensor;
  if (a.Has("value_float")) return Scalar(a.Float("value_float", 0));
  if (a.Has("value_floats")) return Vector(a.Floats("value_floats"));
  if (a.Has("value_int")) return Scalar(a.Int("value_int", 0));
  if (a.Has("value_ints")) return Vector(a.Ints("value_ints"));
  throw Error("has no value of a supported kind (value, value_float(s), value_int(s))");
}

void InferConstant(const InferContext& context) {
  const auto value = ValueOf(context.node);
  context.SetOutput(0, value->dtype(), value->shape());
}

class ConstantKernel final : public Kernel {
 public:
  explicit ConstantKernel(std::shared_ptr<const Tensor> value) : value_(std::move(value)) {}
  std::string_view name() const override { return "constant"; }
  void Run(const RunContext& context) const override {
    std::memcpy(context.outputs[0].bytes, value_->data<std::byte>(), value_->bytes());
  }

 private:
  std::shared_ptr<const Tensor> value_;
};

std::unique_ptr<Kernel> PrepareConstant(const PrepareContext& context) {
  return std::make_unique<ConstantKernel>(ValueOf(context.node));
}

// The element that fills a ConstantOfShape: float 0 if none is given.
std::shared_ptr<const Tensor> FillOf(const OpNode& node) {
  if (auto value = node.attributes.TensorValue("value")) return value;
  return Scalar(0.f);
}

void InferConstantOfShape(const InferContext& context) {
  const auto fill = FillOf(context.node);
  Require(fill->size() == 1, "value has ", fill->size(), " elements instead of one");
  Require(context.Input(0).shape.rank() == 1, "the shape is not a vector");
  context.SetOutput(0, fill->dtype(), Shape(ConstantInt64s(context.inputs, 0)));
}

class FillKernel final : public Kernel {
 public:
  explicit FillKernel(std::shared_ptr<const Tensor> fill) : fill_(std::move(fill)) {}
  std::string_view name() const override { return "constant_of_shape"; }
  void Run(const RunContext& context) const override {
    DispatchSize(fill_->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::fill_n(context.outputs[0].data<T>(), context.outputs[0].size(), *fill_->data<T>());
    });
  }

 private:
  std::shared_ptr<const Tensor> fill_;
};

std::unique_ptr<Kernel> PrepareConstantOfShape(const PrepareContext& context) {
  return std::make_unique<FillKernel>(FillOf(context.node));
}

}  // namespace

extern const OpDef kConstantOp, kConstantOfShapeOp;
const OpDef kConstantOp = {
    .type = "Constant",
    .min_inputs = 0,
    .max_inputs = 0,
    .infer = InferConstant,
    .prepare = PrepareConstant,
};
const OpDef kConstantOfShapeOp = {
    .type = "ConstantOfShape",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferConstantOfShape,
    .prepare = PrepareConstantOfShape,
    .first_opset = 9,
};

}  // namespace tessera
