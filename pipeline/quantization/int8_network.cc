#include "pipeline/quantization/int8_network.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "engine/onnx_export.h"
#include "ops/error.h"
#include "pipeline/display_name.h"
#include "pipeline/quantization/sha256.h"

namespace tessera {
namespace {

// To be raised whenever the quantiser, or how it is used here, makes another network of the same
// one: what earlier versions left in the cache is not found any more then.
constexpr std::string_view kVersion = "3";

std::shared_ptr<Session> Load(const std::string& onnx, const std::string& name) {
  return Session::LoadFromMemory(std::as_bytes(std::span(onnx)), name);
}

}  // namespace

bool IsQuantized(const Graph& network) {
  constexpr std::array<std::string_view, 6> kTypes = {"QuantizeLinear", "DynamicQuantizeLinear",
                                                      "QLinearConv",    "QLinearMatMul",
                                                      "ConvInteger",    "MatMulInteger"};
  return std::ranges::any_of(network.nodes, [&](const Node& node) {
    return std::ranges::find(kTypes, node.op.type) != kTypes.end();
  });
}

void RequireFiniteWeights(const Graph& network) {
  for (const Value& value : network.values) {
    const auto& constant = value.info.constant;
    if (constant == nullptr) continue;
    if (constant->dtype() != DType::kFloat32 && constant->dtype() != DType::kFloat16) continue;
    const std::vector<float> values = ToFloats(constant->view());
    // Infinities are bounds of a Clip, or weights that cannot be quantised: then its ranges tell.
    Require(std::ranges::none_of(values, [](float v) { return std::isnan(v); }), network.file,
            ": weight '", value.name, "' holds a value that is no number");
  }
}

Int8Network::Int8Network(Graph graph, std::optional<ModelCache> cache, std::string_view made_for)
    : graph_(std::move(graph)),
      onnx_(ExportOnnx(graph_)),
      cache_(std::move(cache)),
      quantized_(IsQuantized(graph_)) {
  key_ = StrCat("tessera int8 ", kVersion, "\n", made_for, "\n", Sha256Hex(onnx_));
}

std::shared_ptr<Session> Int8Network::LoadFloat() const { return Load(onnx_, name()); }

std::shared_ptr<Session> Int8Network::Find() const {
  if (quantized_) return LoadFloat();
  if (!cache_) return nullptr;
  const std::optional<std::string> kept = cache_->Find(key_);
  if (!kept) return nullptr;
  try {
    return Load(*kept, name());
  } catch (const Error&) {  // it is made again
    return nullptr;
  }
}

std::shared_ptr<Session> Int8Network::Keep(const Graph& quantized, const Int8Note& note) const {
  const std::string onnx = ExportOnnx(quantized);
  if (!cache_) {
    note("the int8 network is not kept: neither HOME nor XDG_CACHE_HOME names a folder");
    return Load(onnx, name());
  }
  try {
    cache_->Put(key_, onnx);
    note(StrCat("the int8 network is kept as ", DisplayName(cache_->File(key_))));
  } catch (const Error& error) {
    note(StrCat("the int8 network is not kept: ", error.what()));
  }
  return Load(onnx, name());
}

std::string CountText(const QuantizedModel& model) {
  const auto count = std::ranges::count(model.layers, true, &LayerReport::quantized);
  return StrCat(count, " of ", model.layers.size(), " convolutions with 8-bit integers");
}

}  // namespace tessera
