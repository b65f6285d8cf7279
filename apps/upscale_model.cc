#include "apps/upscale_model.h"

#include <iomanip>
#include <iostream>
#include <string_view>
#include <system_error>

#include "apps/message.h"
#include "engine/model_file.h"
#include "engine/session.h"
#include "models/builtin_models.h"
#include "models/model_search.h"
#include "ops/error.h"
#include "pipeline/display_name.h"
#include "pipeline/session_model.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// The largest of the built-in models.
constexpr double kDefaultScale = 4;

std::unique_ptr<TileModel> Load(const NamedModel& model) {
  if (model.builtin == nullptr) {
    return MakeSessionModel(Session::Load(model.file), DisplayName(model.file));
  }
  return MakeSessionModel(Session::LoadFromMemory(model.builtin->onnx, model.name), model.name);
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
  std::vector<fs::path> path = choice.path;
  std::string name = choice.model;
  std::error_code error;
  const bool folder = !name.empty() && !FindNamedModel(name, ModelFolders(path)) &&
                      fs::is_directory(name, error);
  if (folder) {
    Require(!choice.name.empty(), DisplayName(name),
            ": is a folder; --model-name says which of its models (", OneLine(NamesIn(name)), ")");
    path.insert(path.begin(), name);
  }
  if (!choice.name.empty()) {
    Require(name.empty() || folder, "--model and --model-name name two models");
    name = choice.name;
  }
  if (name.empty()) name = DefaultModel(scale.value_or(kDefaultScale)).name;
  if (const auto found = FindNamedModel(name, ModelFolders(path))) return Load(*found);
  Require(choice.name.empty() && ModelExists(name), DisplayName(name), ": no such file, nor a model",
          " of that name (see --list-models)");
  return Load({.name = name, .file = name});
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
