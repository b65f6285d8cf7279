#include "engine/open_file.h"

#include <cerrno>
#include <cstring>

#include "ops/error.h"

namespace tessera {

std::ifstream OpenModelFile(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  Require(std::filesystem::exists(status), path.string(), ": no such file");
  Require(!std::filesystem::is_directory(status), path.string(), ": is a folder, not a model");
  // Opening a pipe that nobody writes to would wait for ever.
  Require(std::filesystem::is_regular_file(status), path.string(), ": is not a file");
  std::ifstream in(path, std::ios::binary);
  Require(in.good(), path.string(), ": cannot be opened: ", std::strerror(errno));
  return in;
}

}  // namespace tessera
