#include "models/model_search.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "engine/model_file.h"
#include "ops/error.h"
#include "pipeline/display_name.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// Of two files of one name the first kind counts.
constexpr std::string_view kExtensions[] = {".onnx", ".param"};

// A model, as far as names tell: ncnn's need their weights beside them.
bool IsModel(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return false;
  if (file.extension() == ".param") return fs::is_regular_file(NcnnWeightsFile(file), error);
  return file.extension() == ".onnx";
}

std::optional<fs::path> DataFolder() {
  // The specification wants relative paths ignored.
  const char* data = std::getenv("XDG_DATA_HOME");
  if (data != nullptr && fs::path(data).is_absolute()) return fs::path(data);
  const char* home = std::getenv("HOME");
  if (home != nullptr && fs::path(home).is_absolute()) return fs::path(home) / ".local/share";
  return std::nullopt;
}

// Integers are shapes, axes and indices, or weights of 8 bits.
bool HoldsWeights(const onnx::TensorProto& tensor) {
  using Proto = onnx::TensorProto;
  switch (tensor.data_type()) {
    case Proto::INT16:
    case Proto::INT32:
    case Proto::INT64:
    case Proto::BOOL:
    case Proto::STRING:
      return false;
    default:
      return true;
  }
}

}  // namespace

std::vector<fs::path> ModelFolders(std::vector<fs::path> asked) {
  std::error_code error;
  for (const fs::path& folder : asked) {
    Require(fs::is_directory(folder, error), DisplayName(folder), ": is no folder");
  }
  if (const std::optional<fs::path> data = DataFolder()) {
    const fs::path models = *data / "tessera" / "models";
    if (fs::is_directory(models, error)) asked.push_back(models);
  }
  return asked;
}

std::vector<NamedModel> NamedModels(const std::vector<fs::path>& folders) {
  std::vector<NamedModel> models;
  const auto add = [&models](NamedModel model) {
    if (std::ranges::find(models, model.name, &NamedModel::name) == models.end()) {
      models.push_back(std::move(model));
    }
  };
  for (const fs::path& folder : folders) {
    std::vector<fs::path> files;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
      if (IsModel(entry.path())) files.push_back(entry.path());
    }
    Require(!error, DisplayName(folder), ": ", error.message());
    std::ranges::sort(files);
    for (const fs::path& file : files) add({.name = file.stem().string(), .file = file});
  }
  for (const BuiltinModel& model : BuiltinModels()) {
    add({.name = std::string(model.name), .file = {}, .builtin = &model});
  }
  return models;
}

std::optional<NamedModel> FindNamedModel(std::string_view name,
                                         const std::vector<fs::path>& folders) {
  if (fs::path(name).filename() != name) return std::nullopt;  // a path, no name
  for (const fs::path& folder : folders) {
    for (const std::string_view extension : kExtensions) {
      if (const fs::path file = folder / StrCat(name, extension); IsModel(file)) {
        return NamedModel{.name = std::string(name), .file = file};
      }
    }
  }
  const BuiltinModel* builtin = FindBuiltinModel(name);
  if (builtin == nullptr) return std::nullopt;
  return NamedModel{.name = std::string(name), .file = {}, .builtin = builtin};
}

ModelFacts ReadModelFacts(const fs::path& file) {
  if (file.extension() == ".param") {
    ModelFacts facts;
    for (const Value& value : ImportModel(file).values) {
      const Tensor* constant = value.info.constant.get();
      if (constant != nullptr && constant->dtype() == DType::kFloat32) {
        facts.parameters += constant->size();
      }
    }
    return facts;
  }
  return NamingFile(file, [&file] {
    std::ifstream stream(file, std::ios::binary);
    Require(stream.is_open(), std::strerror(errno));
    onnx::ModelProto model;
    Require(model.ParseFromIstream(&stream), "is no ONNX model");
    ModelFacts facts;
    for (const onnx::TensorProto& tensor : model.graph().initializer()) {
      if (!HoldsWeights(tensor)) continue;
      std::int64_t size = 1;
      for (const std::int64_t dim : tensor.dims()) size *= dim;
      facts.parameters += size;
    }
    for (const auto& entry : model.metadata_props()) {
      if (entry.key() == "license" || entry.key() == "licence") facts.licence = entry.value();
    }
    return facts;
  });
}

}  // namespace tessera
