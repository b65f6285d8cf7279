#include "simd/cpu_target.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/cpu_target.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"

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

// Kernels are dispatched from static initialisers on, so the environment is read there too.
const std::string missing_target = [] {
  const char* name = std::getenv("TESSERA_TARGET");
  return name == nullptr || ForceCpuTarget(name) ? "" : name;
}();

}  // namespace

std::string CpuTargetName() { return hwy::TargetName(HWY_DYNAMIC_DISPATCH(ThisTarget)()); }

const std::string& MissingCpuTarget() { return missing_target; }

std::vector<std::string> AvailableCpuTargets() {
  std::vector<std::string> names;
  const std::int64_t runnable = RunnableTargets();
  for (int bit = 0; bit < 63; ++bit) {  // Highway orders targets best first
    const std::int64_t target = std::int64_t{1} << bit;
    if (runnable & target) names.emplace_back(hwy::TargetName(target));
  }
  return names;
}

bool ForceCpuTarget(std::string_view name) {
  std::string wanted = Lower(name);
  if (wanted == "avx512") wanted = "avx3";
  // Highway has its baseline in two forms, of which a build holds one (a GCC bug breaks the other).
  if (wanted == "scalar" || wanted == "emu128") wanted = Lower(hwy::TargetName(HWY_STATIC_TARGET));
  if (wanted == "sse4.2") wanted = "sse4";
  const std::int64_t runnable = RunnableTargets();
  for (int bit = 0; bit < 63; ++bit) {
    const std::int64_t target = std::int64_t{1} << bit;
    if (!(runnable & target) || Lower(hwy::TargetName(target)) != wanted) continue;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    return true;
  }
  return false;
}

int FloatLanes() { return HWY_DYNAMIC_DISPATCH(FloatLanesOfTarget)(); }

}  // namespace tessera
#endif  // HWY_ONCE
