// A picture of a video.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera {

// 8-bit samples, interleaved B, G, R, as OpenCV decodes them. The pixels belong to somebody else.
struct FrameView {
  const std::uint8_t* data = nullptr;
  std::int64_t width = 0, height = 0;
  std::ptrdiff_t row_bytes = 0;

  const std::uint8_t* Row(std::int64_t y) const { return data + y * row_bytes; }
};

}  // namespace tessera
