// Ends a test program, with the exit code that ctest shows as skipped, if TESSERA_TARGET names an
// instruction set that this machine or build lacks.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "simd/cpu_target.h"

namespace tessera {
namespace {

class SkipMissingTarget : public testing::Environment {
  void SetUp() override {
    if (MissingCpuTarget().empty()) return;
    std::printf("skipped: this machine has no %s\n", MissingCpuTarget().c_str());
    std::exit(77);
  }
};

testing::Environment* const environment = testing::AddGlobalTestEnvironment(new SkipMissingTarget);

}  // namespace
}  // namespace tessera
