// Denormal numbers cost a hundred times as much as others on many CPUs and mean nothing to a
// network: while this object lives, its thread takes and gives zero instead of them.
#pragma once

#include <cstdint>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace tessera {

class FlushDenormals {
 public:
  FlushDenormals() : saved_(Get()) { Set(saved_ | kFlush); }
  ~FlushDenormals() { Set(saved_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#if defined(__SSE__)
  static constexpr std::uint64_t kFlush = 0x8040;  // MXCSR: flush to zero, denormals are zero
  static std::uint64_t Get() { return _mm_getcsr(); }
  static void Set(std::uint64_t v) { _mm_setcsr(static_cast<unsigned>(v)); }
#elif defined(__aarch64__)
  static constexpr std::uint64_t kFlush = std::uint64_t{1} << 24;  // FPCR.FZ
  static std::uint64_t Get() {
    std::uint64_t v;
    __asm__ volatile("mrs %0, fpcr" : "=r"(v));
    return v;
  }
  static void Set(std::uint64_t v) { __asm__ volatile("msr fpcr, %0" : : "r"(v)); }
#else
  static constexpr std::uint64_t kFlush = 0;
  static std::uint64_t Get() { return 0; }
  static void Set(std::uint64_t) {}
#endif

  std::uint64_t saved_;
};

}  // namespace tessera
