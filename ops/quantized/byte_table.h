// ByteTable: any function of one byte. Passes make it of DequantizeLinear -> function ->
// QuantizeLinear.
//
//   inputs: X uint8 of any shape, in any layout; table uint8 [256]
//   output: Y uint8, Y[i] = table[X[i]]
#pragma once

#include <cstdint>

namespace tessera {

// out[i] = table[in[i]] for i < n. `out` may be `in`.
void LookUpBytes(const std::uint8_t* table, const std::uint8_t* in, std::uint8_t* out,
                 std::int64_t n);

}  // namespace tessera
