// What tiles change in a network's result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "engine/session.h"
#include "pipeline/session_model.h"
#include "pipeline/upscaler.h"
#include "tests/pipeline/test_pictures.h"

namespace tessera {

inline constexpr int kUntiled = 1 << 20;

// At the model's own size.
inline Picture Upscale(const std::shared_ptr<Session>& session, const Picture& in,
                       const TileOptions& options, const PictureOptions& picture_options = {}) {
  const Upscaler upscaler(MakeSessionModel(session, "model"), options, picture_options);
  PictureFormat out = in.format();
  const Upscaler::Size size = upscaler.OwnSize(in.width(), in.height());
  out.width = size.width;
  out.height = size.height;
  return upscaler.Upscale(in, out);
}

struct Difference {
  int max = 0;
  double share = 0;  // of the samples that differ
};

inline Difference Compare(const Picture& a, const Picture& b) {
  Difference difference;
  std::int64_t differing = 0, all = 0;
  for (std::int64_t y = 0; y < a.height(); ++y) {
    for (std::int64_t x = 0; x < a.width(); ++x) {
      for (int c = 0; c < a.format().channels; ++c, ++all) {
        const int d =
            std::abs(static_cast<int>(Sample(a, x, y, c)) - static_cast<int>(Sample(b, x, y, c)));
        difference.max = std::max(difference.max, d);
        differing += d != 0;
      }
    }
  }
  difference.share = static_cast<double>(differing) / static_cast<double>(all);
  return difference;
}

}  // namespace tessera
