#include "engine/ncnn/layers.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/checked_math.h"

namespace tessera {

int NcnnAxis(char name, int rank) {
  constexpr std::string_view kNames[] = {"w", "hw", "chw", "cdhw"};
  const std::size_t axis = kNames[rank - 1].find(name);
  return axis == std::string_view::npos ? -1 : static_cast<int>(axis);
}

std::int64_t NcnnProduct(std::span<const std::int64_t> dims) {
  std::int64_t product = 1;
  for (std::int64_t d : dims) {
    if (d < 0) return -1;
    product = CheckedMul(product, d);
  }
  return product;
}

const NcnnLayerDef* FindNcnnLayer(std::string_view type) {
  for (const auto family :
       {NcnnActivationLayers(), NcnnArithmeticLayers(), NcnnConvolutionLayers(), NcnnCropLayers(),
        NcnnLstmLayers(), NcnnNormalizationLayers(), NcnnPoolingLayers(), NcnnQuantizationLayers(),
        NcnnReductionLayers(), NcnnResizeLayers(), NcnnShapeLayers()}) {
    const auto def = std::ranges::find(family, type, &NcnnLayerDef::type);
    if (def != family.end()) return &*def;
  }
  return nullptr;
}

const NcnnParam* NcnnLayerContext::Find(int id) {
  used_params_.insert(id);
  const auto it = layer_.params.find(id);
  return it == layer_.params.end() ? nullptr : &it->second;
}

int NcnnLayerContext::ToInt(int id, double value) const {
  Check(value == std::trunc(value) && std::abs(value) <= std::numeric_limits<int>::max(),
        "parameter ", id, " has to be an integer, not ", value);
  return static_cast<int>(value);
}

int NcnnLayerContext::Int(int id, int fallback) {
  const NcnnParam* param = Find(id);
  if (param == nullptr) return fallback;
  Check(param->kind == NcnnParam::Kind::kNumber, "parameter ", id, " has to be one number");
  return ToInt(id, param->numbers[0]);
}

float NcnnLayerContext::Float(int id, float fallback) {
  const NcnnParam* param = Find(id);
  if (param == nullptr) return fallback;
  Check(param->kind == NcnnParam::Kind::kNumber, "parameter ", id, " has to be one number");
  return static_cast<float>(param->numbers[0]);
}

std::vector<int> NcnnLayerContext::Ints(int id) {
  const NcnnParam* param = Find(id);
  if (param == nullptr) return {};
  Check(param->kind != NcnnParam::Kind::kText, "parameter ", id, " has to be a list of integers");
  std::vector<int> values;
  for (double v : param->numbers) values.push_back(ToInt(id, v));
  return values;
}

std::vector<float> NcnnLayerContext::Floats(int id) {
  const NcnnParam* param = Find(id);
  if (param == nullptr) return {};
  Check(param->kind != NcnnParam::Kind::kText, "parameter ", id, " has to be a list of numbers");
  return {param->numbers.begin(), param->numbers.end()};
}

std::string NcnnLayerContext::Text(int id) {
  const NcnnParam* param = Find(id);
  if (param == nullptr) return {};
  Check(param->kind == NcnnParam::Kind::kText, "parameter ", id, " has to be a string");
  return param->text;
}

void NcnnLayerContext::CheckAllParamsUsed() const {
  // Of every layer: hints about its outputs' shapes, and which of ncnn's speed-ups it must not use.
  constexpr int kShapeHints = 30, kFeatureMask = 31;
  for (const auto& [id, param] : layer_.params) {
    if (id == kShapeHints || id == kFeatureMask || used_params_.contains(id)) continue;
    const bool nothing =
        param.text.empty() && std::ranges::all_of(param.numbers, [](double v) { return v == 0; });
    Check(nothing, "parameter ", id, " is not known");
  }
}

Tensor NcnnLayerContext::Weights(const Shape& shape) { return weights_.Tagged(shape); }

std::vector<float> NcnnLayerContext::FloatWeights(std::int64_t n) {
  Check(n > 0, "has a list of ", n, " weights");
  return ToFloats(weights_.Floats({n}).view());
}

void NcnnLayerContext::Out(std::size_t i, NcnnBlob blob) {
  // So that a layer may add and multiply two lengths.
  for (const std::int64_t dim : blob.dims) {
    Check(dim <= std::numeric_limits<std::int32_t>::max(), "makes an axis of ", dim, " numbers");
  }
  const std::string& name = layer_.tops[i];
  // A value that was made here takes the blob's name; one that is passed on keeps the name it has.
  if (const auto it = made_.find(blob.value); it != made_.end()) {
    graph_.value(blob.value).name = name;
    made_.erase(it);
  }
  blobs_[name] = std::move(blob);
}

int NcnnLayerContext::Axis(int axis, int rank) const {
  Check(axis >= -rank && axis < rank, "axis ", axis, " of a blob of rank ", rank);
  return axis < 0 ? axis + rank : axis;
}

std::vector<ValueId> NcnnLayerContext::MultiNode(std::string_view op,
                                                 const std::vector<ValueId>& inputs,
                                                 std::size_t outputs,
                                                 const std::vector<Attribute>& attributes) {
  tessera::Node node;
  node.op.name = layer_.name;
  for (int i = 0; !node_names_.insert(node.op.name).second; ++i) {
    node.op.name = i == 0 ? StrCat(layer_.name, "/", op) : StrCat(layer_.name, "/", op, "_", i);
  }
  node.op.type = op;
  node.op.opset = kNcnnOpset;
  node.def = FindOp(op);
  Check(node.def != nullptr, "needs the operator ", op, ", which is not supported");
  for (const auto& [name, value] : attributes) node.op.attributes.Set(name, value);
  node.inputs = inputs;
  for (std::size_t i = 0; i < outputs; ++i) {
    const ValueId value = graph_.AddValue(StrCat(node.op.name, "_output_", i));
    node.outputs.push_back(value);
    made_[value] = graph_.nodes.size();
  }
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.back().outputs;
}

NcnnBlob NcnnLayerContext::Node(std::string_view op, const std::vector<ValueId>& inputs,
                                std::vector<std::int64_t> dims,
                                const std::vector<Attribute>& attributes, DType dtype) {
  return {MultiNode(op, inputs, 1, attributes)[0], std::move(dims), dtype};
}

ValueId NcnnLayerContext::Constant(Tensor tensor) {
  return graph_.AddConstant(StrCat(layer_.name, "/constant_", graph_.values.size()),
                            std::move(tensor));
}

ValueId NcnnLayerContext::Scalar(float value) {
  return Constant(Tensor::FromVector<float>({}, {value}));
}

ValueId NcnnLayerContext::Int64s(const std::vector<std::int64_t>& values) {
  return Constant(Tensor::FromVector({static_cast<std::int64_t>(values.size())}, values));
}

ValueId NcnnLayerContext::PerChannel(const std::vector<float>& values, int rank) {
  Shape shape{static_cast<std::int64_t>(values.size())};
  for (int i = 1; i < rank; ++i) shape.PushBack(1);
  return Constant(Tensor::FromVector(shape, values));
}

NcnnBlob NcnnLayerContext::Unary(std::string_view op, const NcnnBlob& x,
                                 const std::vector<Attribute>& attributes) {
  return Node(op, {x.value}, x.dims, attributes, x.dtype);
}

NcnnBlob NcnnLayerContext::Binary(std::string_view op, const NcnnBlob& a, const NcnnBlob& b,
                                  const std::vector<Attribute>& attributes) {
  Check(a.rank() == b.rank(), "blobs of ", a.rank(), " and ", b.rank(), " axes");
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < a.dims.size(); ++i) {
    const std::int64_t p = a.dims[i], q = b.dims[i];
    Check(p < 0 || q < 0 || p == q || p == 1 || q == 1, "axis ", i, " of its inputs is ", p,
          " and ", q);
    // A length above 1 decides; one that is not known may be 1.
    dims.push_back(p > 1 ? p : q > 1 ? q : std::min(p, q));
  }
  return Node(op, {a.value, b.value}, dims, attributes, a.dtype);
}

NcnnBlob NcnnLayerContext::WithConstant(std::string_view op, const NcnnBlob& a, ValueId constant) {
  return Node(op, {a.value, constant}, a.dims, {}, a.dtype);
}

NcnnBlob NcnnLayerContext::Cast(const NcnnBlob& x, DType to) {
  if (x.dtype == to) return x;
  return Node("Cast", {x.value}, x.dims, {{"to", DTypeToOnnx(to)}}, to);
}

NcnnBlob NcnnLayerContext::Unsqueeze(const NcnnBlob& x, const std::vector<int>& axes) {
  NcnnBlob out = x;
  std::vector<std::int64_t> tensor_axes;
  for (int axis : axes) {  // in rising order
    out.dims.insert(out.dims.begin() + axis, 1);
    tensor_axes.push_back(axis + 1);
  }
  return Node("Unsqueeze", {x.value, Int64s(tensor_axes)}, out.dims, {}, x.dtype);
}

NcnnBlob NcnnLayerContext::Squeeze(const NcnnBlob& x, const std::vector<int>& axes) {
  if (axes.empty()) return x;
  std::vector<std::int64_t> dims, tensor_axes;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (std::ranges::find(axes, axis) == axes.end()) {
      dims.push_back(x.dims[static_cast<std::size_t>(axis)]);
    } else {
      tensor_axes.push_back(axis + 1);
    }
  }
  return Node("Squeeze", {x.value, Int64s(tensor_axes)}, dims, {}, x.dtype);
}

NcnnBlob NcnnLayerContext::Flatten(const NcnnBlob& x) {
  if (x.rank() == 1) return x;
  return Node("Flatten", {x.value}, {NcnnProduct(x.dims)}, {{"axis", std::int64_t{1}}}, x.dtype);
}

NcnnBlob NcnnLayerContext::Slice(const NcnnBlob& x, int axis, std::int64_t start,
                                 std::int64_t end) {
  NcnnBlob out = x;
  std::int64_t& dim = out.dims[static_cast<std::size_t>(axis)];
  if (dim >= 0) {
    const std::int64_t from = std::clamp(start < 0 ? start + dim : start, std::int64_t{0}, dim);
    const std::int64_t to = std::clamp(end < 0 ? end + dim : end, from, dim);
    dim = to - from;
    Check(dim > 0, "nothing is left of axis ", axis);
  } else if (start >= 0 && end >= 0 && end < std::numeric_limits<std::int32_t>::max()) {
    dim = end - start;
  }
  return Node("Slice", {x.value, Int64s({start}), Int64s({end}), Int64s({axis + 1})}, out.dims, {},
              x.dtype);
}

NcnnBlob NcnnLayerContext::Reshape(const NcnnBlob& x, std::vector<std::int64_t> shape,
                                   std::vector<std::int64_t> dims) {
  shape.insert(shape.begin(), 0);
  return Node("Reshape", {x.value, Int64s(shape)}, std::move(dims), {}, x.dtype);
}

NcnnBlob NcnnLayerContext::Transpose(const NcnnBlob& x, const std::vector<int>& blob_axes) {
  std::vector<std::int64_t> perm = {0}, dims;
  for (int axis : blob_axes) {
    perm.push_back(axis + 1);
    dims.push_back(x.dims[static_cast<std::size_t>(axis)]);
  }
  return Node("Transpose", {x.value}, dims, {{"perm", perm}}, x.dtype);
}

NcnnBlob NcnnLayerContext::Concat(const std::vector<NcnnBlob>& parts, int axis) {
  NcnnBlob out = parts[0];
  std::vector<ValueId> values;
  for (const NcnnBlob& part : parts) {
    Check(part.rank() == out.rank(), "joins blobs of ", out.rank(), " and ", part.rank(), " axes");
    for (std::size_t i = 0; i < out.dims.size(); ++i) {
      std::int64_t& dim = out.dims[i];
      if (static_cast<int>(i) != axis) {
        dim = std::max(dim, part.dims[i]);
      } else if (!values.empty()) {
        dim = dim < 0 || part.dims[i] < 0 ? -1 : dim + part.dims[i];
      }
    }
    values.push_back(part.value);
  }
  if (values.size() == 1) return out;
  return Node("Concat", values, out.dims, {{"axis", std::int64_t{axis + 1}}}, out.dtype);
}

ValueId NcnnLayerContext::DimOf(const NcnnBlob& x, int axis) {
  const std::int64_t dim = x.dims[static_cast<std::size_t>(axis)];
  if (dim >= 0) return Int64s({dim});
  return MultiNode("Shape", {x.value}, 1,
                   {{"start", std::int64_t{axis + 1}}, {"end", std::int64_t{axis + 2}}})[0];
}

NcnnBlob NcnnLayerContext::Pad(const NcnnBlob& x, const std::vector<std::int64_t>& before,
                               const std::vector<std::int64_t>& after, const std::string& mode,
                               float value) {
  std::vector<std::int64_t> pads = {0}, dims = x.dims;
  pads.insert(pads.end(), before.begin(), before.end());
  pads.push_back(0);
  pads.insert(pads.end(), after.begin(), after.end());
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) continue;
    dims[i] += before[i] + after[i];
    Check(dims[i] > 0, "nothing is left of axis ", i);
  }
  std::vector<ValueId> inputs = {x.value, Int64s(pads)};
  if (value != 0) inputs.push_back(Scalar(value));
  return Node("Pad", inputs, dims, {{"mode", mode}}, x.dtype);
}

NcnnBlob NcnnLayerContext::HardSwish(const NcnnBlob& x, float alpha, float beta) {
  // Decimals of a file may be a rounding step away.
  if (std::abs(alpha - 1.0f / 6) < 1e-6f && beta == 0.5f) return Unary("HardSwish", x);
  return Binary("Mul", x, Unary("HardSigmoid", x, {{"alpha", alpha}, {"beta", beta}}));
}

NcnnBlob NcnnLayerContext::Mish(const NcnnBlob& x) {
  return Binary("Mul", x, Unary("Tanh", Unary("Softplus", x)));
}

NcnnBlob NcnnLayerContext::Activation(const NcnnBlob& x, int type,
                                      const std::vector<float>& params) {
  const auto need = [&](std::size_t n) {
    Check(params.size() >= n, "its activation needs ", n, " parameters, it has ", params.size());
  };
  switch (type) {
    case 0:
      return x;
    case 1:
      return Unary("Relu", x);
    case 2:
      need(1);
      return Unary("LeakyRelu", x, {{"alpha", params[0]}});
    case 3:
      need(2);
      return Node("Clip", {x.value, Scalar(params[0]), Scalar(params[1])}, x.dims);
    case 4:
      return Unary("Sigmoid", x);
    case 5:
      return Mish(x);
    case 6:
      need(2);
      return HardSwish(x, params[0], params[1]);
    default:
      Fail("activation ", type, " is not known");
  }
}

}  // namespace tessera
