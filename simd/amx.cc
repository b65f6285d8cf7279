#include "simd/amx.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tessera {

bool CanUseAmx() {
#if defined(__x86_64__) && defined(__linux__)
  static const bool can = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned kTile = 1u << 24, kInt8 = 1u << 25;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & kTile) || !(d & kInt8)) return false;
    // Linux saves the registers of processes that have asked for them alone (from 5.16 on).
    constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return can;
#else
  return false;
#endif
}

#if defined(__x86_64__)
void BeginAmx(std::int64_t depth_bytes) {
  AmxConfiguration c;
  c.row_bytes[4] = c.row_bytes[5] = static_cast<std::uint16_t>(depth_bytes);
  c.rows[6] = c.rows[7] = static_cast<std::uint8_t>(depth_bytes / 4);
  BeginAmx(c);
}
#endif

}  // namespace tessera
