#include "apps/upscale_model.h"

#include <filesystem>
#include <iomanip>
#include <iostream>
#include <string_view>
#include <system_error>
#include <utility>

#include "apps/message.h"
#include "engine/blend.h"
#include "engine/model_file.h"
#include "engine/onnx_import.h"
#include "engine/session.h"
#include "models/builtin_models.h"
#include "models/model_search.h"
#include "ops/error.h"
#include "pipeline/display_name.h"
#include "pipeline/quantization/int8_pictures.h"
#include "pipeline/quantization/picture_samples.h"
#include "pipeline/self_ensemble.h"
#include "pipeline/session_model.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// The largest of the built-in models.
constexpr double kDefaultScale = 4;

// Published as a pair, to be blended by how much noise is to go.
constexpr char kDenoising[] = "realesr-general-x4v3", kKeepingNoise[] = "realesr-general-wdn-x4v3";

ModelSource SourceOf(const NamedModel& model) {
  if (model.builtin == nullptr) return model.file;
  return ModelBytes{model.builtin->onnx, model.name};
}

// For messages.
std::string ShownName(const NamedModel& model) {
  return model.builtin == nullptr ? DisplayName(model.file) : model.name;
}

std::unique_ptr<TileModel> Load(const NamedModel& model) {
  return MakeSessionModel(model.builtin == nullptr
                              ? Session::Load(model.file)
                              : Session::LoadFromMemory(model.builtin->onnx, model.name),
                          ShownName(model));
}

Graph Import(const ModelSource& source) {
  if (const auto* path = std::get_if<fs::path>(&source)) return ImportModel(*path);
  const ModelBytes& bytes = std::get<ModelBytes>(source);
  return ImportOnnx(bytes.onnx, bytes.name, {});
}

// By name or, if it may be one, by file.
NamedModel Find(const std::string& name, const std::vector<fs::path>& folders, bool file = true) {
  if (const auto found = FindNamedModel(name, folders)) return *found;
  Require(file && ModelExists(name), DisplayName(name),
          ": no such file, nor a model of that name (see --list-models)");
  return {.name = fs::path(name).stem().string(), .file = name};
}

// "a, b, c".
std::string NamesIn(const fs::path& folder) {
  std::string names;
  for (const NamedModel& model : NamedModels({folder})) {
    if (model.builtin == nullptr) names += (names.empty() ? "" : ", ") + model.name;
  }
  return names;
}

void PrintRow(const std::string& name, const std::string& scale, const std::string& parameters,
              const std::string& licence, const std::string& found) {
  std::cout << std::left << std::setw(23) << name << ' ' << std::setw(6) << scale << ' '
            << std::setw(11) << parameters << ' ' << std::setw(13) << licence << ' ' << found
            << "\n";
}

}  // namespace

ChosenModel::ChosenModel(const ModelChoice& choice, std::optional<double> scale, bool int8)
    : self_ensemble_(choice.self_ensemble) {
  std::vector<fs::path> folders = ModelFolders(choice.path);
  std::string name = choice.model;
  std::error_code error;
  const bool folder =
      !name.empty() && !FindNamedModel(name, folders) && fs::is_directory(name, error);
  if (folder) {
    folders.insert(folders.begin(), name);
    Require(!choice.name.empty() || choice.denoise, DisplayName(name),
            ": is a folder; --model-name says which of its models (", OneLine(NamesIn(name)), ")");
    name.clear();
  }
  Require(name.empty() || choice.name.empty(), "--model and --model-name name two models");
  const bool may_be_file = choice.name.empty();
  if (!choice.name.empty()) name = choice.name;
  if (name.empty() && choice.denoise) name = kDenoising;
  if (name.empty()) name = DefaultModel(scale.value_or(kDefaultScale)).name;

  const NamedModel found = Find(name, folders, may_be_file);
  source_ = SourceOf(found);
  shown_name_ = ShownName(found);
  std::optional<NamedModel> other;
  if (choice.denoise) {
    Require(found.name == kDenoising, "--denoise is for ", kDenoising, " with ", kKeepingNoise,
            " beside it, not for ", ShownName(found));
    folders.insert(folders.begin(), found.file.parent_path());
    other = Find(kKeepingNoise, folders, false);
    weight_ = static_cast<float>(1 - *choice.denoise);
  } else if (choice.blend) {
    other = Find(choice.blend->model, folders);
    weight_ = static_cast<float>(choice.blend->weight);
  }
  if (other) {
    other_ = SourceOf(*other);
    shown_name_ = StrCat(shown_name_, " with ", ShownName(*other));
  }
  if (!int8) return;
  Graph graph = Import(source_);
  if (other_) graph = BlendWeights(std::move(graph), Import(*other_), weight_);
  network_.emplace(std::move(graph), ModelCache::OfUser());
  int8_ = network_->Find();
}

std::unique_ptr<TileModel> ChosenModel::Make(std::shared_ptr<Session> session) const {
  auto model = MakeSessionModel(std::move(session), shown_name_);
  return self_ensemble_ ? MakeSelfEnsemble(std::move(model)) : std::move(model);
}

std::unique_ptr<TileModel> ChosenModel::Load() {
  if (network_) return Make(int8_ != nullptr ? int8_ : network_->LoadFloat());
  if (other_) return Make(Session::LoadBlend(source_, *other_, weight_));
  if (const auto* path = std::get_if<fs::path>(&source_)) return Make(Session::Load(*path));
  const ModelBytes& bytes = std::get<ModelBytes>(source_);
  return Make(Session::LoadFromMemory(bytes.onnx, bytes.name));
}

Shape ChosenModel::CalibrationShape() const { return FindTileShape(*network_->LoadFloat()); }

std::unique_ptr<TileModel> ChosenModel::Quantize(std::vector<Sample> samples,
                                                 const Int8Note& note) {
  int8_ = QuantizeForPictures(*network_, std::move(samples), note);
  return Make(int8_);
}

void PrintModels(const std::vector<fs::path>& path) {
  const std::vector<NamedModel> models = NamedModels(ModelFolders(path));
  PrintRow("name", "scale", "parameters", "licence", "found");
  for (const NamedModel& model : models) {
    try {
      const ModelFacts facts =
          model.builtin != nullptr
              ? ModelFacts{model.builtin->parameters, std::string(model.builtin->licence)}
              : ReadModelFacts(model.file);
      const ReceptiveField::Axis& scale = Load(model)->traits().field.width;
      PrintRow(
          DisplayName(model.name),
          StrCat("x", scale.scale_num, scale.scale_den == 1 ? "" : StrCat("/", scale.scale_den)),
          std::to_string(facts.parameters),
          facts.licence.empty() ? "unknown" : OneLine(facts.licence),
          model.builtin != nullptr ? "built in" : DisplayName(model.file));
    } catch (const Error& error) {
      Say(error.what());
    }
  }
}

}  // namespace tessera
