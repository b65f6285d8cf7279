// Tests that hold on every instruction set.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "simd/cpu_target.h"

namespace tessera {

// Calls test() with each target that this CPU runs in use, then restores the one that was.
template <typename Test>
void OnEveryTarget(const Test& test) {
  const std::string before = CpuTargetName();
  for (const std::string& target : AvailableCpuTargets()) {
    SCOPED_TRACE(target);
    EXPECT_TRUE(ForceCpuTarget(target));
    test();
  }
  ForceCpuTarget(before);
}

}  // namespace tessera
