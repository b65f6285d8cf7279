#include "pipeline/quantization/frame_samples.h"

#include <algorithm>
#include <opencv2/imgproc.hpp>

#include "pipeline/picture.h"
#include "pipeline/quantization/picture_samples.h"
#include "pipeline/video/frame_source.h"

namespace tessera {

std::vector<Sample> SampleFrames(const std::string& input, const Shape& tile, int count) {
  constexpr std::int64_t kFrames = 8, kFramesApart = 25;
  const auto frames = std::min<std::int64_t>(kFrames, count);
  std::int64_t apart = kFramesApart;
  if (const auto all = OpenFrameSource(input, {})->info().frames) apart = *all / frames;
  const auto source = OpenFrameSource(input, {.every = std::max<std::int64_t>(1, apart)});
  std::vector<Sample> samples;
  Frame frame;
  for (std::int64_t i = 0; i < frames && source->Read(frame); ++i) {
    const Picture picture({.width = frame.pixels.cols, .height = frame.pixels.rows});
    cv::Mat rgb(frame.pixels.rows, frame.pixels.cols, CV_8UC3, picture.Row(0));
    cv::cvtColor(frame.pixels, rgb, cv::COLOR_BGR2RGB);
    const auto share = static_cast<int>(count / frames + (i < count % frames ? 1 : 0));
    for (Sample& sample : SampleTiles(picture, tile, share)) samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace tessera
