#include "engine/ncnn_import.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>
#include <unordered_set>

#include "engine/ncnn/layers.h"
#include "engine/ncnn/param_file.h"
#include "engine/ncnn/weights_file.h"
#include "engine/open_file.h"

namespace tessera {
namespace {

// Layers through which channels pass as they are.
constexpr std::array<std::string_view, 15> kKeepChannels = {
    "BatchNorm", "BinaryOp", "Cast",    "Clip",  "Crop",  "DeepCopy", "Dropout", "Interp",
    "Noop",      "Padding",  "Pooling", "PReLU", "Scale", "Split",    "UnaryOp"};

double Number(const NcnnLayer& layer, int id, double fallback) {
  const auto it = layer.params.find(id);
  return it == layer.params.end() || it->second.numbers.empty() ? fallback : it->second.numbers[0];
}

// Channels that a convolution reads; -1 if its parameters do not tell.
std::int64_t ChannelsRead(const NcnnLayer& layer) {
  const double outputs = Number(layer, 0, 0), width = Number(layer, 1, 0);
  const double kernel = outputs * width * Number(layer, 11, width);
  const double groups = layer.type.ends_with("DepthWise") ? Number(layer, 7, 1) : 1;
  const double channels = kernel > 0 ? Number(layer, 6, 0) / kernel * groups : 0;
  return channels >= 1 && channels <= 1 << 20 ? static_cast<std::int64_t>(channels) : -1;
}

class Importer {
 public:
  Importer(NcnnNetwork network, NcnnWeights weights)
      : network_(std::move(network)), weights_(std::move(weights)) {}

  Graph Import() {
    graph_.file = network_.file;
    graph_.opset = kNcnnOpset;
    CheckLayerTypes();
    for (std::size_t i = 0; i < network_.layers.size(); ++i) {
      const NcnnLayer& layer = network_.layers[i];
      if (layer.type == "Input") {
        AddInput(i);
      } else {
        Convert(layer);
      }
    }
    Require(weights_.remaining() == 0, weights_.file(), ": ", weights_.remaining(),
            " bytes are left over; it belongs to another network than ", network_.file);
    AddOutputs();
    return std::move(graph_);
  }

 private:
  // All that are unknown: a person wants to know at once.
  void CheckLayerTypes() const {
    std::map<std::string, const NcnnLayer*> unsupported;
    for (const NcnnLayer& layer : network_.layers) {
      if (layer.type != "Input" && FindNcnnLayer(layer.type) == nullptr) {
        unsupported.try_emplace(layer.type, &layer);
      }
    }
    std::string list;
    for (const auto& [type, layer] : unsupported) {
      list +=
          StrCat(list.empty() ? "" : ", ", type, " ('", layer->name, "', line ", layer->line, ")");
    }
    Require(list.empty(), network_.file, ": layers that are not supported: ", list);
  }

  NcnnLayerContext Context(const NcnnLayer& layer) {
    return {layer, network_.file, graph_, weights_, blobs_, node_names_};
  }

  void Convert(const NcnnLayer& layer) {
    const NcnnLayerDef& def = *FindNcnnLayer(layer.type);
    NcnnLayerContext context = Context(layer);
    const auto fits = [](std::size_t n, int min, int max) {
      return n >= static_cast<std::size_t>(min) && (max < 0 || n <= static_cast<std::size_t>(max));
    };
    context.Check(fits(layer.bottoms.size(), def.min_bottoms, def.max_bottoms), "has ",
                  layer.bottoms.size(), " inputs");
    context.Check(fits(layer.tops.size(), def.min_tops, def.max_tops), "has ", layer.tops.size(),
                  " outputs");
    try {
      def.convert(context);
    } catch (const NcnnLayerError&) {
      throw;
    } catch (const Error& e) {
      context.Fail(e.what());
    }
    context.CheckAllParamsUsed();
  }

  // What the layers that read input `name`, made by layer `index`, tell of it: its number of axes
  // and of channels, -1 where they do not.
  std::pair<int, std::int64_t> GuessFromReaders(std::size_t index, const std::string& name) const {
    std::unordered_set<std::string> same = {name};
    int rank = -1;
    for (std::size_t i = index + 1; i < network_.layers.size(); ++i) {
      const NcnnLayer& layer = network_.layers[i];
      if (layer.bottoms.empty() || !same.contains(layer.bottoms[0])) continue;
      if (layer.type.starts_with("Convolution") || layer.type.starts_with("Deconvolution")) {
        return {3, ChannelsRead(layer)};
      }
      if (layer.type == "LSTM") return {2, -1};
      if (layer.type == "Pooling") rank = 3;
      if (std::ranges::find(kKeepChannels, layer.type) != kKeepChannels.end()) {
        same.insert(layer.tops.begin(), layer.tops.end());
      }
    }
    return {rank, -1};
  }

  void AddInput(std::size_t index) {
    const NcnnLayer& layer = network_.layers[index];
    NcnnLayerContext context = Context(layer);
    context.Check(layer.bottoms.empty() && layer.tops.size() == 1, "has to have one output");
    const int w = context.Int(0, 0), h = context.Int(1, 0), d = context.Int(11, 0),
              c = context.Int(2, 0);
    context.CheckAllParamsUsed();
    std::vector<std::int64_t> dims;
    if (d != 0) {
      dims = {c, d, h, w};
    } else if (c != 0) {
      dims = {c, h, w};
    } else if (h != 0) {
      dims = {h, w};
    } else if (w != 0) {
      dims = {w};
    }
    const auto [rank, channels] = GuessFromReaders(index, layer.tops[0]);
    if (dims.empty()) dims.assign(static_cast<std::size_t>(rank < 0 ? 3 : rank), -1);
    for (std::int64_t& dim : dims) {
      if (dim <= 0) dim = -1;
    }
    if (dims.size() == 3 && dims[0] < 0) dims[0] = channels;

    const ValueId value = graph_.AddValue(layer.tops[0]);
    graph_.inputs.push_back(value);
    graph_.input_decls.push_back(Declare(layer.tops[0], {value, dims}));
    blobs_[layer.tops[0]] = {value, std::move(dims)};
  }

  static ValueDecl Declare(const std::string& name, const NcnnBlob& blob) {
    ValueDecl decl;
    decl.name = name;
    decl.dtype = blob.dtype;
    decl.dims = blob.dims;
    decl.dims.insert(decl.dims.begin(), 1);
    decl.has_shape = true;
    return decl;
  }

  void AddOutputs() {
    std::unordered_set<std::string> read;
    for (const NcnnLayer& layer : network_.layers) {
      read.insert(layer.bottoms.begin(), layer.bottoms.end());
    }
    // A copy that nobody reads is no result, unless there is nothing else.
    for (const bool copies : {false, true}) {
      for (const NcnnLayer& layer : network_.layers) {
        if ((layer.type == "Split") != copies) continue;
        for (const std::string& top : layer.tops) {
          if (!read.contains(top)) AddOutput(layer, top);
        }
      }
      if (!graph_.outputs.empty()) return;
    }
    throw Error(StrCat(network_.file, ": the network has no output"));
  }

  void AddOutput(const NcnnLayer& layer, const std::string& name) {
    NcnnBlob blob = blobs_.at(name);
    if (graph_.value(blob.value).name != name || graph_.Constant(blob.value) != nullptr ||
        std::ranges::find(graph_.inputs, blob.value) != graph_.inputs.end()) {
      // Another name for a value that has one: outputs are known by theirs.
      blob = Context(layer).Unary("Identity", blob);
      graph_.value(blob.value).name = name;
    }
    graph_.outputs.push_back(blob.value);
    graph_.output_decls.push_back(Declare(name, blob));
  }

  NcnnNetwork network_;
  NcnnWeights weights_;
  Graph graph_;
  std::map<std::string, NcnnBlob> blobs_;
  std::set<std::string> node_names_;
};

}  // namespace

Graph ImportNcnn(const std::filesystem::path& param, const std::filesystem::path& bin) {
  std::ifstream text_file = OpenModelFile(param);
  // Text of any network is far smaller.
  constexpr std::uintmax_t kMaxText = std::uintmax_t{1} << 28;
  const std::uintmax_t size = std::filesystem::file_size(param);
  Require(size <= kMaxText, param.string(), ": is too large for the text of a network");
  std::string text(size, '\0');
  text_file.read(text.data(), static_cast<std::streamsize>(size));
  Require(text_file.gcount() == static_cast<std::streamsize>(size), param.string(),
          ": cannot be read");
  NcnnNetwork network = ParseNcnnParam(text, param.string());
  std::ifstream weights = OpenModelFile(bin);
  return Importer(std::move(network),
                  NcnnWeights(weights, std::filesystem::file_size(bin), bin.string()))
      .Import();
}

Graph ImportNcnn(std::string_view param, std::span<const std::byte> bin, const std::string& name) {
  std::istringstream weights(std::string(reinterpret_cast<const char*>(bin.data()), bin.size()));
  return Importer(ParseNcnnParam(param, name),
                  NcnnWeights(weights, bin.size(), StrCat(name, " (weights)")))
      .Import();
}

}  // namespace tessera
