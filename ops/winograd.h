// Inside of the Winograd convolution: what its planning half (winograd.cc, compiled once) and its
// vector half (winograd*-inl.h, compiled per target) have to agree on.
//
// F(m x m, 3x3) makes a tile of m x m outputs from n x n inputs, n = m + 2, in three steps (Lavin
// and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015):
//   V = B^T x B for every tile and input channel,
//   M = U V, a product over the input channels for each of the n x n positions,
//   y = A^T M A for every tile and output channel,
// with the weights U = G w G^T. Instead of 9 m^2 multiplications a tile and
// pair of channels takes n^2: 4 times fewer for m = 4, 5.06 times for m = 6.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/epilogue.h"
#include "ops/tensor.h"

namespace tessera {

// The transforms evaluate polynomials at 0, at the pairs +p and -p given here, and at infinity.
// These points give the smallest rounding errors of those we tried: relative to the output's rms,
// with 64 channels of normally distributed values, 8e-7 for m = 4 and 3.3e-6 for m = 6, where a
// direct kernel in float32 has 4e-7.
template <int kM>
inline constexpr std::array<double, 0> kWinogradPoints{};
template <>
inline constexpr std::array<double, 2> kWinogradPoints<4>{0.70710678118654752, 1.4142135623730951};
template <>
inline constexpr std::array<double, 3> kWinogradPoints<6>{0.5, 1.0, 2.0};

// Output channels whose sums one call of the product kernel keeps in registers.
struct WinogradGroup {
  int first_vector;  // in blocks of FloatLanes() channels
  int vectors;
};

// Everything about a layer but its data. Tiles are numbered image by image, in bands of two tile
// rows, down then across: consecutive tiles share as many input rows and columns as they can.
struct WinogradPlan {
  int m;  // 4 or 6
  BlockedLayout in, out;
  std::int64_t pad_top, pad_left;
  std::int64_t tiles_down, tiles_across;
  std::vector<WinogradGroup> groups;

  // A block of tiles goes through all three steps at once, so that V and M stay in the L2 cache.
  std::int64_t block_tiles;
  // V is [position][input vector][tile][lane], M [position][output vector][tile][lane]. They share
  // their memory: M of a position lies where V of the position before it was.
  std::int64_t position_stride;  // floats from one position of V and M to the next
  // U is [position][group][input channel][vector of group][lane].
  std::int64_t u_stride;

  // Rows of pixels, or of V if it is given, that are fetched into the cache during the products of
  // a block; 0 if the layer is so small that it lies there already.
  std::int64_t max_runs;

  std::int64_t NumPositions() const { return (m + 2) * (m + 2); }
  std::int64_t NumTiles() const { return in.images * tiles_down * tiles_across; }
  std::int64_t WeightFloats() const { return NumPositions() * u_stride; }
  // Two for each whole block of input channels.
  std::int64_t RunsPerProduct() const { return in.channels / in.lanes * 2; }
  // Of V, M and the addresses of the runs.
  std::int64_t BlockBytes() const {
    return (NumPositions() + 1) * position_stride * static_cast<std::int64_t>(sizeof(float)) +
           max_runs * static_cast<std::int64_t>(sizeof(const float*));
  }
};

// V of a block of tiles, where channel c of a tile at a position is at
//   position * position_stride + c / lanes * vector_stride + tile * lanes + c % lanes.
struct TransformedTiles {
  float* data;
  std::ptrdiff_t position_stride, vector_stride;
};

// One layer's data.
struct WinogradData {
  const float* weights;  // U as [position][group][input channel][vector of group][lane]
  const float* bias;     // of EpilogueOperands
  const float* slope;
  Epilogue epilogue;
  const float* input;            // null if V is given
  TransformedTiles transformed;  // V of all tiles, or null
  const float* addend;           // null unless the epilogue has one
  float* output;
};

}  // namespace tessera
