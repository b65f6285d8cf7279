// The folder of published networks, goldens and pictures that lies beside the repository where
// the project is developed and checked. Tests that need it skip, saying so, where it is missing.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>

namespace tessera {

inline std::optional<std::filesystem::path> SharedFolder() {
  const char* set = std::getenv("TESSERA_SHARED");
  const std::filesystem::path folder =
      set != nullptr ? std::filesystem::path(set)
                     : std::filesystem::path(TESSERA_SOURCE_DIR) / ".." / "shared";
  if (!std::filesystem::exists(folder / "golden" / "manifest.json")) return std::nullopt;
  return folder;
}

}  // namespace tessera
