// The alpha of a result.
#pragma once

#include <vector>

#include "pipeline/picture.h"
#include "pipeline/planes.h"
#include "pipeline/resample.h"
#include "pipeline/upscale_plan.h"

namespace tessera {

// Bicubic interpolation of the input's alpha, straight to the size of the result: what is 0 or the
// maximum as far as that looks stays so. Thread-safe.
class ResultAlpha {
 public:
  // Both are to outlive this. The input has alpha.
  ResultAlpha(const Picture& in, const UpscalePlan& plan);

  // Makes the alpha of `rect` of the result, in `buffer`, that of the planes. What a network made
  // of it, if planes.alpha is that, is taken where the interpolation gives neither 0 nor 1: a
  // network makes 0.998 of 1.
  void Apply(const Rect& rect, std::vector<float>& buffer, PlanesView& planes) const;

 private:
  const Picture& in_;
  const UpscalePlan& plan_;
  Resampler resampler_;  // from the extended picture
};

}  // namespace tessera
