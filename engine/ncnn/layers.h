// How the layers of ncnn become nodes of ONNX operators.
//
// ncnn's blobs have up to four axes and no batch: [w], [h, w], [c, h, w] or [c, d, h, w]. Ours have
// a batch axis of 1 in front of them, so that axis a of a blob is axis a + 1 of a tensor.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/graph.h"
#include "engine/ncnn/param_file.h"
#include "engine/ncnn/weights_file.h"
#include "engine/onnx_types.h"

namespace tessera {

// The opset that layers are written in: the newest one whose operators need no sizes that ncnn's
// files do not have, and that every reader of ONNX knows.
inline constexpr int kNcnnOpset = 17;

// Stands for "automatic", "the rest" and the like in many parameters; -234 for SAME_LOWER pads.
inline constexpr int kNcnnAuto = -233, kNcnnAutoLower = -234;

// A blob and what is known of it before any input is there.
struct NcnnBlob {
  ValueId value = kNoValue;
  std::vector<std::int64_t> dims;  // outermost first; -1 is not known yet
  DType dtype = DType::kFloat32;

  int rank() const { return static_cast<int>(dims.size()); }
};

// The axis of a blob of that rank that ncnn calls 'w', 'h', 'd' or 'c'; -1 if it has none.
int NcnnAxis(char name, int rank);

// An Error that names file, line and layer.
class NcnnLayerError : public Error {
 public:
  using Error::Error;
};

// A layer on its way into the graph: what its converter reads and writes.
class NcnnLayerContext {
 public:
  // All outlive the context. `blobs` are those made so far, by name.
  NcnnLayerContext(const NcnnLayer& layer, const std::string& file, Graph& graph,
                   NcnnWeights& weights, std::map<std::string, NcnnBlob>& blobs,
                   std::set<std::string>& node_names)
      : layer_(layer),
        file_(file),
        graph_(graph),
        weights_(weights),
        blobs_(blobs),
        node_names_(node_names) {}

  // Throws NcnnLayerError.
  template <typename... Args>
  [[noreturn]] void Fail(const Args&... args) const {
    throw NcnnLayerError(StrCat(file_, ":", layer_.line, ": layer '", layer_.name, "' (",
                                layer_.type, "): ", args...));
  }
  template <typename... Args>
  void Check(bool condition, const Args&... args) const {
    if (!condition) [[unlikely]]
      Fail(args...);
  }

  // Parameters. Each one that a layer knows has to be asked for; CheckAllParamsUsed refuses others
  // unless they are 0 or empty, which is what they would be if they were absent.
  int Int(int id, int fallback);
  float Float(int id, float fallback);
  std::vector<int> Ints(int id);
  std::vector<float> Floats(int id);
  std::string Text(int id);
  void CheckAllParamsUsed() const;

  // The next weights of the file.
  Tensor Weights(const Shape& shape);
  std::vector<float> FloatWeights(std::int64_t n);

  // Inputs and outputs.
  const NcnnLayer& layer() const { return layer_; }
  std::size_t num_bottoms() const { return layer_.bottoms.size(); }
  std::size_t num_tops() const { return layer_.tops.size(); }
  const NcnnBlob& In(std::size_t i) const { return blobs_.at(layer_.bottoms[i]); }
  void Out(std::size_t i, NcnnBlob blob);
  void Out(NcnnBlob blob) { Out(0, std::move(blob)); }

  // An axis as ncnn gives it, from -rank to rank - 1, in [0, rank). Fails if there is none.
  int Axis(int axis, int rank) const;

  // Adds a node with one output, of the type of its first input unless `dtype` says otherwise.
  using Attribute = std::pair<std::string, Attributes::Value>;
  NcnnBlob Node(std::string_view op, const std::vector<ValueId>& inputs,
                std::vector<std::int64_t> dims, const std::vector<Attribute>& attributes = {},
                DType dtype = DType::kFloat32);
  // The same with `outputs` outputs.
  std::vector<ValueId> MultiNode(std::string_view op, const std::vector<ValueId>& inputs,
                                 std::size_t outputs, const std::vector<Attribute>& attributes);

  // Constants.
  ValueId Constant(Tensor tensor);
  ValueId Scalar(float value);
  ValueId Int64s(const std::vector<std::int64_t>& values);
  // Values of the outermost axis, in a shape that broadcasts over a blob of that rank.
  ValueId PerChannel(const std::vector<float>& values, int rank);

  // Nodes that many layers need.
  NcnnBlob Unary(std::string_view op, const NcnnBlob& x,
                 const std::vector<Attribute>& attributes = {});
  // Blobs of one rank, broadcast.
  NcnnBlob Binary(std::string_view op, const NcnnBlob& a, const NcnnBlob& b,
                  const std::vector<Attribute>& attributes = {});
  // A constant that broadcasts over `a`.
  NcnnBlob WithConstant(std::string_view op, const NcnnBlob& a, ValueId constant);
  NcnnBlob Cast(const NcnnBlob& x, DType to);
  NcnnBlob ToFloat(const NcnnBlob& x) { return Cast(x, DType::kFloat32); }
  // Puts axes of length 1 where the result shall have them (positions in the result's blob axes).
  NcnnBlob Unsqueeze(const NcnnBlob& x, const std::vector<int>& axes);
  NcnnBlob Squeeze(const NcnnBlob& x, const std::vector<int>& axes);
  // Everything in one row.
  NcnnBlob Flatten(const NcnnBlob& x);
  // Elements [start, end) along an axis; numbers below 0 count from the end.
  NcnnBlob Slice(const NcnnBlob& x, int axis, std::int64_t start, std::int64_t end);
  // Shape with -1 and 0 as ONNX's Reshape has them, without the batch axis.
  NcnnBlob Reshape(const NcnnBlob& x, std::vector<std::int64_t> shape,
                   std::vector<std::int64_t> dims);
  NcnnBlob Transpose(const NcnnBlob& x, const std::vector<int>& blob_axes);
  NcnnBlob Concat(const std::vector<NcnnBlob>& parts, int axis);
  // The length of an axis: an int64 tensor of one element.
  ValueId DimOf(const NcnnBlob& x, int axis);
  // Pads blob axes; `before` and `after` have one number each for every axis.
  NcnnBlob Pad(const NcnnBlob& x, const std::vector<std::int64_t>& before,
               const std::vector<std::int64_t>& after, const std::string& mode, float value);
  // The activation that many layers end with, by ncnn's number for it.
  NcnnBlob Activation(const NcnnBlob& x, int type, const std::vector<float>& params);
  NcnnBlob HardSwish(const NcnnBlob& x, float alpha, float beta);
  NcnnBlob Mish(const NcnnBlob& x);

 private:
  const NcnnParam* Find(int id);
  int ToInt(int id, double value) const;

  const NcnnLayer& layer_;
  const std::string& file_;
  Graph& graph_;
  NcnnWeights& weights_;
  std::map<std::string, NcnnBlob>& blobs_;
  std::set<std::string>& node_names_;
  std::set<int> used_params_;
  std::map<ValueId, std::size_t> made_;  // values made here -> node, until a blob takes their names
};

// Exact after all numbers are known, -1 as long as one is not.
std::int64_t NcnnProduct(std::span<const std::int64_t> dims);

struct NcnnLayerDef {
  std::string_view type;
  int min_bottoms, max_bottoms;  // max_bottoms -1: any number
  int min_tops, max_tops;
  void (*convert)(NcnnLayerContext& layer);
};

// Null if there is none of that type. `Input` is no layer in this sense.
const NcnnLayerDef* FindNcnnLayer(std::string_view type);

// The tables that it looks in, a family each.
std::span<const NcnnLayerDef> NcnnActivationLayers();
std::span<const NcnnLayerDef> NcnnArithmeticLayers();
std::span<const NcnnLayerDef> NcnnConvolutionLayers();
std::span<const NcnnLayerDef> NcnnCropLayers();
std::span<const NcnnLayerDef> NcnnLstmLayers();
std::span<const NcnnLayerDef> NcnnNormalizationLayers();
std::span<const NcnnLayerDef> NcnnPoolingLayers();
std::span<const NcnnLayerDef> NcnnQuantizationLayers();
std::span<const NcnnLayerDef> NcnnReductionLayers();
std::span<const NcnnLayerDef> NcnnResizeLayers();
std::span<const NcnnLayerDef> NcnnShapeLayers();

}  // namespace tessera
