#include "pipeline/result_alpha.h"

#include <cmath>
#include <cstdint>

namespace tessera {

ResultAlpha::ResultAlpha(const Picture& in, const UpscalePlan& plan)
    : in_(in), plan_(plan), resampler_(plan.x.AlphaAxis(), plan.y.AlphaAxis()) {}

void ResultAlpha::Apply(const Rect& rect, std::vector<float>& buffer, PlanesView& planes) const {
  const Rect from = resampler_.Inputs(rect);
  std::vector<float> in(static_cast<std::size_t>(from.width * from.height));
  buffer.resize(static_cast<std::size_t>(rect.width * rect.height));
  const Rect shown{from.x - plan_.x.border, from.y - plan_.y.border, from.width, from.height};
  ReadChannel(in_, in_.format().channels - 1, shown, in.data(), plan_.border);
  resampler_.Run(in.data(), from.width, rect, buffer.data(), rect.width);
  if (planes.alpha != nullptr) {
    for (std::int64_t y = 0; y < rect.height; ++y) {
      float* alpha = buffer.data() + y * rect.width;
      const float* made = planes.alpha + y * planes.alpha_stride;
      for (std::int64_t x = 0; x < rect.width; ++x) {
        constexpr float kRounding = 1e-6f;
        if (std::abs(alpha[x]) > kRounding && std::abs(alpha[x] - 1) > kRounding)
          alpha[x] = made[x];
      }
    }
  }
  planes.alpha = buffer.data();
  planes.alpha_stride = rect.width;
}

}  // namespace tessera
