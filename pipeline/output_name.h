// Names of outputs in a folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "pipeline/file_list.h"

namespace tessera {

class OutputName {
 public:
  // Throws Error if `name`, `suffix` and `format` of the options make no sense together.
  explicit OutputName(const ListOptions& options);

  // The file that the input becomes in a folder. Throws Error if the name gets too long.
  ListedFile For(const std::filesystem::path& input, const std::filesystem::path& folder) const;

 private:
  std::string Expand(const std::string& stem, const std::string& extension) const;

  std::string pattern_, suffix_, scale_;
  std::optional<ImageFormat> format_;
};

}  // namespace tessera
