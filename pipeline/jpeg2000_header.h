// Headers of JPEG 2000 files (ISO/IEC 15444-1): codestreams (annex A), bare or in JP2 files
// (annex I).
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera {

struct Jpeg2000Header {
  std::int64_t width = 0, height = 0;
  std::int64_t tiles = 0;
  int components = 0;
  int bits = 0;  // of a sample, of the component that has the most
};

bool IsJpeg2000(std::string_view file);

// What the codestream says, which is what decoders go by. Throws Error if it is damaged, or of a
// kind that OpenCV does not decode: with signed or subsampled components, or an origin beside 0.
Jpeg2000Header ParseJpeg2000Header(std::string_view file);

}  // namespace tessera
