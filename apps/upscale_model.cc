#include "apps/upscale_model.h"

#include <filesystem>
#include <iomanip>
#include <iostream>
#include <string_view>
#include <system_error>
#include <utility>

#include "apps/message.h"
#include "engine/model_file.h"
#include "engine/session.h"
#include "models/builtin_models.h"
#include "models/model_search.h"
#include "ops/error.h"
#include "pipeline/display_name.h"
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

std::unique_ptr<TileModel> LoadBlend(const NamedModel& a, const NamedModel& b, double weight) {
  return MakeSessionModel(Session::LoadBlend(SourceOf(a), SourceOf(b), static_cast<float>(weight)),
                          StrCat(ShownName(a), " with ", ShownName(b)));
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

std::unique_ptr<TileModel> LoadModel(const ModelChoice& choice, std::optional<double> scale) {
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
  std::unique_ptr<TileModel> model;
  if (choice.denoise) {
    Require(found.name == kDenoising, "--denoise is for ", kDenoising, " with ", kKeepingNoise,
            " beside it, not for ", ShownName(found));
    folders.insert(folders.begin(), found.file.parent_path());
    model = LoadBlend(found, Find(kKeepingNoise, folders, false), 1 - *choice.denoise);
  } else if (choice.blend) {
    model = LoadBlend(found, Find(choice.blend->model, folders), choice.blend->weight);
  } else {
    model = Load(found);
  }
  return choice.self_ensemble ? MakeSelfEnsemble(std::move(model)) : std::move(model);
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
