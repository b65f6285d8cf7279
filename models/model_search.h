// Where the models are that have a name: in folders of the user, and inside the program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/builtin_models.h"

namespace tessera {

struct NamedModel {
  std::string name;
  std::filesystem::path file;             // NAME.onnx or NAME.param
  const BuiltinModel* builtin = nullptr;  // instead of a file
};

// `asked` and, after them, tessera/models in the user's folder for data ($XDG_DATA_HOME, by default
// ~/.local/share; XDG Base Directory Specification), if there is one. Throws Error if one of
// `asked` is no folder.
std::vector<std::filesystem::path> ModelFolders(std::vector<std::filesystem::path> asked);

// Models in `folders` (ONNX files, and ncnn's pairs .param and .bin), each folder by name, and the
// built-in ones. Of several of one name the first counts, the others are left out.
std::vector<NamedModel> NamedModels(const std::vector<std::filesystem::path>& folders);

// The one of that name, without a look at the others; nullopt if there is none.
std::optional<NamedModel> FindNamedModel(std::string_view name,
                                         const std::vector<std::filesystem::path>& folders);

struct ModelFacts {
  std::int64_t parameters = 0;
  std::string licence;  // empty if the model does not say
};

// Reads what a file tells of itself: the sizes of its weights, and the licence under `license` (or
// `licence`) in its metadata; ncnn's files have none. Throws Error, which names the file, if it is
// no model.
ModelFacts ReadModelFacts(const std::filesystem::path& file);

}  // namespace tessera
