// The model that the user of `upscale` wants.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/tile_model.h"

namespace tessera {

struct ModelChoice {
  std::string model;                        // a file, a name, or a folder where `name` is
  std::string name;                         // if `model` is none
  std::vector<std::filesystem::path> path;  // folders to look in first
  struct Blend {
    std::string model;  // a file or a name
    double weight;      // of it, 0 to 1
  };
  std::optional<Blend> blend;
  // Of realesr-general-x4v3; the rest is realesr-general-wdn-x4v3, which is beside it.
  std::optional<double> denoise;
  bool self_ensemble = false;  // the mean over flips and rotations
};

// The model that is chosen; if none is, the built-in one for `scale`. Throws Error if there is no
// such model, it is none for pictures, or models do not fit each other.
std::unique_ptr<TileModel> LoadModel(const ModelChoice& choice, std::optional<double> scale);

// Prints a table of all models that have a name. What is wrong with a file is said on stderr.
void PrintModels(const std::vector<std::filesystem::path>& path);

}  // namespace tessera
