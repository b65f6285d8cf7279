// Intel AMX: products of tiles of bytes. Intel SDM volume 1, chapter 18.
//
// A tile register holds 16 rows of 64 bytes. With A of 16 rows of 64 uint8 and B of 16 rows of 16
// groups of four int8, tdpbusd adds to the int32 C [16][16]
//   C[m][n] += sum over r < 16, i < 4 of A[m][4 * r + i] * B[r][4 * n + i].
// Functions name tile registers by template arguments, 0 to 7. They are statements in assembly, as
// intrinsics would need the whole caller compiled for AMX.
#pragma once

#include <cstdint>

namespace tessera {

// Whether CPU and kernel have AMX with products of bytes; asks the kernel for the permission that
// the process needs.
bool CanUseAmx();

#if defined(__x86_64__)

// The shapes of the eight tile registers, at first 16 rows of 64 bytes; as LDTILECFG reads it.
struct alignas(64) AmxConfiguration {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Between BeginAmx and EndAmx, on one thread, tiles can be used.
inline void BeginAmx(const AmxConfiguration& shapes) { asm volatile("ldtilecfg %0" ::"m"(shapes)); }
// With rows of so many bytes, 4 to 64, in tiles 4 and 5, and of a fourth as many rows in 6 and 7.
void BeginAmx(std::int64_t depth_bytes);
inline void EndAmx() { asm volatile("tilerelease"); }

// 16 rows of 64 bytes, `stride` bytes apart.
template <int kTile>
inline void LoadTile(const void* rows, std::int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(rows), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
inline void StoreTile(void* rows, std::int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(rows), "r"(stride), "i"(kTile) : "memory");
}
// C += A * B.
template <int kC, int kA, int kB>
inline void MultiplyTiles() {
  asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
}

#endif

}  // namespace tessera
