// Inside of the int8 convolution for few output channels: dot products along the input. The bytes
// that a kernel's row covers are multiplied a vector at a time, several pixels and all channels
// together; the lanes are added up at the end. (Vectors of output channels would be mostly empty.)
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ops/quantized/quantized_gemm.h"

namespace tessera {

inline constexpr std::int64_t kMaxDotChannels = 4;

// One layer.
struct QuantizedDots {
  QuantizedDots(const QuantizedConvParams& params, const QuantizedConvConstants& constants,
                QuantizedStore store, const QuantizedSegments& segments, PackCache& packs);

  // kFewBytes or kPlanes, on a target with vectors, where a segment fills one.
  static bool Applies(const QuantizedConvParams& params, QuantizedStore store,
                      const QuantizedSegments& segments);

  std::int64_t channels;
  int lanes;
  bool vnni;
  QuantizedStore store;
  QuantizedEpilogue epilogue;
  // Where the vectors of a segment begin, from its start. The last one ends with the segment: it
  // may share bytes with the one before it, for which it has no weights.
  std::vector<std::int64_t> places;
  std::int64_t num_places;                       // of all segments
  std::shared_ptr<const AlignedBuffer> weights;  // [segment][place][channel][4 * lanes]
};

// `pixels.segments` are all places of all segments.
void RunQuantizedPixels(const QuantizedDots& dots, const QuantizedPixels& pixels);

}  // namespace tessera
