// The model that the user of `upscale` wants.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/session.h"
#include "pipeline/quantization/int8_network.h"
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

// The model that is chosen; if none is, the built-in one for `scale`. All throw Error if there is
// no such model, it is none for pictures, or models do not fit each other.
class ChosenModel {
 public:
  // Looks for it. `int8`: it is to compute with 8-bit integers.
  ChosenModel(const ModelChoice& choice, std::optional<double> scale, bool int8);

  // The model; with int8, the float one if there is none with integers yet.
  std::unique_ptr<TileModel> Load();
  // Whether it is the float one and Quantize is to make another.
  bool must_quantize() const { return network_ && int8_ == nullptr; }
  // The input that it is to be calibrated with.
  Shape CalibrationShape() const;
  std::unique_ptr<TileModel> Quantize(std::vector<Sample> samples, const Int8Note& note);

 private:
  std::unique_ptr<TileModel> Make(std::shared_ptr<Session> session) const;

  ModelSource source_;
  std::optional<ModelSource> other_;  // that is mixed in
  float weight_ = 0;                  // of it
  std::string shown_name_;
  bool self_ensemble_ = false;
  std::optional<Int8Network> network_;
  std::shared_ptr<Session> int8_;
};

// Prints a table of all models that have a name. What is wrong with a file is said on stderr.
void PrintModels(const std::vector<std::filesystem::path>& path);

}  // namespace tessera
