// Files of models.
#pragma once

#include <filesystem>
#include <fstream>

namespace tessera {

// The file, to be read in binary. Throws Error, which names it, if it is not there, is a folder or
// another thing that is no file, or cannot be read.
std::ifstream OpenModelFile(const std::filesystem::path& path);

}  // namespace tessera
