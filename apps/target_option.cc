#include "apps/target_option.h"

#include "ops/error.h"
#include "simd/cpu_target.h"

namespace tessera {

CLI::Option* AddTargetOption(CLI::App& app) {
  const auto take = [](const std::string& name) {
    if (ForceCpuTarget(name)) return;
    std::string available;
    for (const std::string& target : AvailableCpuTargets()) available += " " + target;
    throw Error(StrCat("--target ", name, ": no such instruction set here; there are", available));
  };
  return app
      .add_option_function<std::string>("--target", take,
                                        "Instruction set, like avx2 (default: the CPU's best)")
      ->type_name("NAME");
}

CLI::Option* AddVersionOption(CLI::App& app) {
  const auto version = [&app] {
    return StrCat(app.get_name(), " ", TESSERA_VERSION, " (", CpuTargetName(), ")");
  };
  return app.set_version_flag("--version", version, "Show it, and the instruction set in use");
}

}  // namespace tessera
