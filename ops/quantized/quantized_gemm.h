// Inside of the int8 convolution: products of pixels, whose channels lie side by side in memory,
// with packed weights. What the planning half (quantized_gemm.cc, compiled once) and the vector
// half (quantized_gemm-inl.h, compiled per target) have to agree on.
//
// For an output pixel the kernel's taps are a few segments of memory, each of the same number of
// quads (four bytes, one lane of a dot product); pixels that follow each other in a row lie at a
// constant distance. A group of up to four vectors of output channels times a few pixels is summed
// in registers (a tile), then goes through the epilogue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ops/quantized/quantized_conv.h"

namespace tessera {

// Output channels, a multiple of 16, are computed in groups of at most four vectors. Channels have
// quad order (QuadOrder) in groups of four that are stored as kBytes, the natural one in all
// others.
struct QuantizedGroup {
  int vectors;                 // 1 to 4
  std::int64_t first_channel;  // of bias, positive, negative and output
  std::int64_t weights;        // bytes from the first weight
};

// How results are stored.
enum class QuantizedStore {
  kBytes,     // uint8, the group's channels of a pixel side by side, pads included
  kFewBytes,  // uint8, four bytes a pixel
  kFloats,    // float32 in vectors (Layout::kBlocked)
  kPlanes,    // float32 in planes (Layout::kRowMajor)
};

// The bytes of the input that an output pixel depends on.
struct QuantizedSegments {
  std::int64_t count;
  std::int64_t quads;       // of each; four bytes
  std::int64_t taps;        // of each
  std::int64_t tap_stride;  // bytes from a tap's channels to those of the next
  // Of the taps that follow each other, those of a kernel's column, so many, come first.
  std::int64_t stacked_rows = 1;

  // Weight of byte `byte` of a segment; `weights` is [M, C, KH, KW]. 0 where there is none.
  std::int8_t Weight(const Tensor& weights, std::int64_t out_channel, std::int64_t segment,
                     std::int64_t byte) const;
};

// One layer.
struct QuantizedGemm {
  QuantizedGemm(const QuantizedConvParams& params, const QuantizedConvConstants& constants,
                QuantizedStore store, const QuantizedSegments& segments, PackCache& packs);

  std::int64_t out_channels, padded_channels;
  QuantizedSegments segments;
  int lanes;
  bool vnni, amx;
  QuantizedStore store;
  QuantizedEpilogue epilogue;  // its vectors in the order of the groups' channels
  std::vector<QuantizedGroup> groups;
  // [group][segment][quad][vector][lane][4]; without VNNI on x86 as int16, the even bytes of all
  // lanes before the odd ones.
  std::shared_ptr<const AlignedBuffer> weights;
};

// Rows of output pixels.
struct QuantizedPixels {
  const std::uint8_t* in;          // of the first pixel
  std::int64_t in_stride;          // bytes from a pixel to the next
  const std::ptrdiff_t* segments;  // places of the segments, from the pixel's
  std::int64_t count;
  const std::uint8_t* addend;  // null if there is none
  std::int64_t addend_stride;
  void* out;
  // From a pixel to the next, bytes (uint8) or floats; floats from a block (kFloats) or channel
  // (kPlanes) to the next.
  std::int64_t out_stride, plane_stride;
  std::int64_t rows = 1;
  std::int64_t in_row = 0, addend_row = 0, out_row = 0;  // bytes from a row to the next
};

// Calls run(layer, pixels of a row) for each row.
template <class Layer>
void ForRows(void (*run)(const Layer&, const QuantizedPixels&), const Layer& layer,
             QuantizedPixels pixels) {
  for (; pixels.rows > 0; --pixels.rows) {
    run(layer, pixels);
    pixels.in += pixels.in_row;
    if (pixels.addend != nullptr) pixels.addend += pixels.addend_row;
    pixels.out = static_cast<std::uint8_t*>(pixels.out) + pixels.out_row;
  }
}

void RunQuantizedPixels(const QuantizedGemm& gemm, const QuantizedPixels& pixels);

}  // namespace tessera
