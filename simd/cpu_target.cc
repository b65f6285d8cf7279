#include "simd/cpu_target.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/cpu_target.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "simd/amx.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

int FloatLanesOfTarget() {
  return static_cast<int>(hwy::HWY_NAMESPACE::Lanes(hwy::HWY_NAMESPACE::ScalableTag<float>()));
}
std::int64_t ThisTarget() { return HWY_TARGET; }

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {

HWY_EXPORT(FloatLanesOfTarget);
HWY_EXPORT(ThisTarget);

std::string Lower(std::string_view s) {
  std::string out(s);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// Everything that this build holds and this CPU runs, as bits, whatever was forced.
std::int64_t RunnableTargets() {
  static const std::int64_t runnable = [] {
    hwy::SetSupportedTargetsForTest(0);
    return hwy::SupportedTargets() & HWY_TARGETS;
  }();
  return runnable;
}

// Whether this CPU has AVX-512 VNNI, for AVX2 AVX-VNNI (Intel SDM, CPUID leaf 7), for NEON SDOT.
// That the registers can be used is known from the target.
bool CpuHasVnni(std::int64_t target) {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (target == HWY_AVX3) return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c >> 11 & 1);
  if (target == HWY_AVX2) return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
#elif defined(__aarch64__) && defined(__linux__)
  if (target == HWY_NEON) return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#endif
  static_cast<void>(target);
  return false;
}

// Instructions for integers that come on top of a target of Highway's.
enum class Extension : std::uint8_t { kNone, kVnni, kAmx };

struct CpuTarget {
  std::int64_t bit;
  Extension extension;
  std::string name() const {
    constexpr const char* kSuffixes[] = {"", "_VNNI", "_AMX"};
    const std::string target = hwy::TargetName(bit);
    if (bit == HWY_NEON && extension == Extension::kVnni) return target + "_DOT";
    return target + kSuffixes[static_cast<int>(extension)];
  }
};

std::vector<CpuTarget> RunnableCpuTargets() {
  std::vector<CpuTarget> list;
  const std::int64_t runnable = RunnableTargets();
  for (int i = 0; i < 63; ++i) {  // Highway orders targets best first
    const std::int64_t bit = std::int64_t{1} << i;
    if (!(runnable & bit)) continue;
    if (bit == HWY_AVX3 && CpuHasVnni(bit) && CanUseAmx()) list.push_back({bit, Extension::kAmx});
    if (CpuHasVnni(bit)) list.push_back({bit, Extension::kVnni});
    list.push_back({bit, Extension::kNone});
  }
  return list;
}

// The most that may be used: less if a target without it was asked for.
Extension allowed = Extension::kAmx;

// Kernels are dispatched from static initialisers on, so the environment is read there too.
const std::string missing_target = [] {
  const char* name = std::getenv("TESSERA_TARGET");
  return name == nullptr || ForceCpuTarget(name) ? "" : name;
}();

}  // namespace

bool HasVnni() {
  static const bool avx3 = CpuHasVnni(HWY_AVX3), avx2 = CpuHasVnni(HWY_AVX2),
                    neon = CpuHasVnni(HWY_NEON);
  if (allowed == Extension::kNone) return false;
  const std::int64_t target = HWY_DYNAMIC_DISPATCH(ThisTarget)();
  return (target == HWY_AVX3 && avx3) || (target == HWY_AVX2 && avx2) ||
         (target == HWY_NEON && neon);
}

bool HasAmx() {
  static const bool usable = CpuHasVnni(HWY_AVX3) && CanUseAmx();
  return usable && allowed == Extension::kAmx && HWY_DYNAMIC_DISPATCH(ThisTarget)() == HWY_AVX3;
}

std::string CpuTargetName() {
  const Extension extension = HasAmx()    ? Extension::kAmx
                              : HasVnni() ? Extension::kVnni
                                          : Extension::kNone;
  return CpuTarget{HWY_DYNAMIC_DISPATCH(ThisTarget)(), extension}.name();
}

const std::string& MissingCpuTarget() { return missing_target; }

std::vector<std::string> AvailableCpuTargets() {
  std::vector<std::string> names;
  for (const CpuTarget& target : RunnableCpuTargets()) names.push_back(target.name());
  return names;
}

bool ForceCpuTarget(std::string_view name) {
  std::string wanted = Lower(name);
  if (wanted.starts_with("avx512")) wanted.replace(0, 6, "avx3");
  // Highway has plain code in two forms, of which a build holds one (a GCC bug breaks the other),
  // or none where every CPU has vectors.
  if (wanted == "scalar" || wanted == "emu128") {
    wanted = Lower(hwy::TargetName(HWY_BASELINE_SCALAR));
  }
  if (wanted == "sse4.2") wanted = "sse4";
  for (const CpuTarget& target : RunnableCpuTargets()) {
    if (Lower(target.name()) != wanted) continue;
    hwy::SetSupportedTargetsForTest(target.bit);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    allowed = target.extension;
    return true;
  }
  return false;
}

int FloatLanes() { return HWY_DYNAMIC_DISPATCH(FloatLanesOfTarget)(); }

}  // namespace tessera
#endif  // HWY_ONCE
