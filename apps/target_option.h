// The options --target and --version of the programs for users.
#pragma once

#include <CLI/CLI.hpp>

namespace tessera {

// --target NAME, in upper or lower case: the instruction set that kernels use. Parsing throws Error
// if this CPU or build lacks it.
CLI::Option* AddTargetOption(CLI::App& app);

// --version: prints program, version and the instruction set in use. CLI11 looks at options in the
// order that they were added in: to be added after --target.
CLI::Option* AddVersionOption(CLI::App& app);

}  // namespace tessera
