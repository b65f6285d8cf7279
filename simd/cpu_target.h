// Which instruction set the vector kernels run on. Every kernel is compiled for several
// targets (Highway's foreach_target) and the best one that the CPU has is taken at run time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// Name of the target in use, e.g. "AVX3" (AVX-512), "AVX2", "SSE4", "EMU128" or, built by
// GCC 12, "SCALAR" (plain code; one lane). "AVX3_VNNI", "AVX2_VNNI" and "NEON_DOT" are the
// same with instructions for dot products of bytes, "AVX3_AMX" has products of tiles of bytes
// besides.
std::string CpuTargetName();

// Whether the target in use has them (simd/dot-inl.h, simd/amx.h).
bool HasVnni();
bool HasAmx();

// Names that ForceCpuTarget accepts on this machine, best first.
std::vector<std::string> AvailableCpuTargets();

// Makes every later kernel call use `name` (case-insensitive; "avx512" and "scalar" are
// understood too). Returns false, changing nothing, if this CPU or build lacks it. Call before
// any model is loaded: packed weights depend on the vector width. The environment variable
// TESSERA_TARGET does the same at start-up.
bool ForceCpuTarget(std::string_view name);

// What TESSERA_TARGET asked for in vain, or empty. No session is loaded then: whoever asks for a
// target would take results of another one for its results.
const std::string& MissingCpuTarget();

// Floats in one vector of the target in use: the channel block of the NCHWc layout.
int FloatLanes();

}  // namespace tessera
