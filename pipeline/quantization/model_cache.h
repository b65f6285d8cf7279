// Quantised networks that are kept from run to run.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

// A folder of ONNX files, each under the name that its key gives it. Several processes may use one
// at a time: files are complete or not there, and what two of them write under one key is the same.
class ModelCache {
 public:
  explicit ModelCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // tessera/int8 in the user's folder for what can be made again: $XDG_CACHE_HOME, by default
  // ~/.cache (XDG Base Directory Specification). nullopt if there is neither.
  static std::optional<ModelCache> OfUser();

  // The file of a key, there or not.
  std::filesystem::path File(std::string_view key) const;
  // The model; nullopt if it is not there, or not as it was written.
  std::optional<std::string> Find(std::string_view key) const;
  // Keeps a model, in place of what is there; makes the folder. Throws Error, which names the file.
  void Put(std::string_view key, const std::string& onnx) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace tessera
