#include "tests/pipeline/tracking/synthetic_clip.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <opencv2/imgproc.hpp>

namespace tessera {
namespace {

using Points = std::vector<cv::Point>;

// A picture with transparency. Colours are multiplied by alpha, so that scaling makes no rims.
struct Sprite {
  cv::Mat colours;  // CV_32FC3, 0 to 255
  cv::Mat alpha;    // CV_32FC1, 0 to 1
  Points outline;   // corners of the hull
};

constexpr double kSpriteHeight = 240, kSpriteWidth = 200;
// The toy in it, as DrawToy draws it.
const cv::Rect2d kToy(20, 15, 160, 210);

// Fractions of the toy's rectangle to pixels of its sprite.
cv::Point At(double x, double y) {
  return {cvRound(kToy.x + x * kToy.width), cvRound(kToy.y + y * kToy.height)};
}

struct ToyColours {
  cv::Scalar coat, belly, wing, beak;
};
const ToyColours kToyColours{{40, 90, 225}, {170, 215, 250}, {60, 40, 110}, {30, 190, 250}};
const ToyColours kOtherColours{{190, 120, 60}, {215, 235, 200}, {110, 80, 30}, {120, 130, 240}};

// An owl. Its outline touches all sides of kToy.
Sprite DrawToy(const ToyColours& paint) {
  const auto size = cv::Size(cvRound(kSpriteWidth), cvRound(kSpriteHeight));
  cv::Mat colours(size, CV_8UC3, paint.coat), mask(size, CV_8U, cv::Scalar(0));
  const auto radii = [](double x, double y) {
    return cv::Size(cvRound(x * kToy.width), cvRound(y * kToy.height));
  };
  const auto spot = [&](double x, double y, double rx, double ry, const cv::Scalar& colour) {
    cv::ellipse(colours, At(x, y), radii(rx, ry), 0, 0, 360, colour, cv::FILLED, cv::LINE_AA);
  };
  cv::ellipse(mask, At(0.5, 0.56), radii(0.5, 0.44), 0, 0, 360, 255, cv::FILLED, cv::LINE_AA);
  for (const double ear : {0.14, 0.86}) {
    const Points tip{At(ear, 0), At(0.5 + (ear - 0.5) * 1.3, 0.42), At(0.5, 0.2)};
    cv::fillConvexPoly(mask, tip, 255, cv::LINE_AA);
  }
  spot(0.5, 0.75, 0.3, 0.24, paint.belly);
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 4 - row % 2; ++column) {
      spot(0.32 + 0.12 * column + 0.06 * (row % 2), 0.66 + 0.1 * row, 0.03, 0.025, paint.wing);
    }
  }
  for (const double side : {-1.0, 1.0}) {
    spot(0.5 + side * 0.44, 0.68, 0.13, 0.26, paint.wing);
    spot(0.5 + side * 0.2, 0.38, 0.18, 0.14, {245, 250, 250});
    spot(0.5 + side * 0.17, 0.39, 0.08, 0.065, {30, 25, 20});
    spot(0.5 + side * 0.14, 0.37, 0.025, 0.02, {250, 250, 250});
  }
  cv::fillConvexPoly(colours, Points{At(0.42, 0.46), At(0.58, 0.46), At(0.5, 0.58)}, paint.beak,
                     cv::LINE_AA);
  Sprite sprite;
  mask.convertTo(sprite.alpha, CV_32F, 1.0 / 255);
  colours.convertTo(sprite.colours, CV_32F);
  // Light from the upper left.
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      const double light = 1.12 - 0.16 * x / kSpriteWidth - 0.2 * y / kSpriteHeight;
      sprite.colours.at<cv::Vec3f>(y, x) *=
          static_cast<float>(light) * sprite.alpha.at<float>(y, x);
    }
  }
  cv::Mat opaque;
  cv::findNonZero(mask > 127, opaque);
  cv::convexHull(opaque, sprite.outline);
  return sprite;
}

// A toy's place in a frame.
struct Pose {
  cv::Point2d centre;
  double scale = 1, sine = 0, cosine = 1;

  // From pixels of the sprite, counted from their corners, to pixels of the frame, likewise.
  cv::Point2d Map(double x, double y) const {
    const double dx = scale * (x - kToy.x - kToy.width / 2);
    const double dy = scale * (y - kToy.y - kToy.height / 2);
    return {centre.x + cosine * dx - sine * dy, centre.y + sine * dx + cosine * dy};
  }
};

Pose PoseOf(const ClipKey& key) {
  const double angle = key.degrees * std::numbers::pi / 180;
  return {{key.cx, key.cy}, key.height / kToy.height, std::sin(angle), std::cos(angle)};
}

ClipKey KeyAt(const std::vector<ClipKey>& path, int frame) {
  const auto next =
      std::find_if(path.begin(), path.end(), [&](const ClipKey& key) { return key.frame > frame; });
  if (next == path.begin()) return path.front();
  const ClipKey& a = *(next - 1);
  if (next == path.end()) return a;
  const double t = static_cast<double>(frame - a.frame) / (next->frame - a.frame);
  return {frame, std::lerp(a.cx, next->cx, t), std::lerp(a.cy, next->cy, t),
          std::lerp(a.height, next->height, t), std::lerp(a.degrees, next->degrees, t)};
}

Box BoxOf(const Sprite& sprite, const Pose& pose) {
  cv::Point2d low(1e9, 1e9), high(-1e9, -1e9);
  for (const cv::Point& corner : sprite.outline) {
    const cv::Point2d p = pose.Map(corner.x + 0.5, corner.y + 0.5);
    low = {std::min(low.x, p.x), std::min(low.y, p.y)};
    high = {std::max(high.x, p.x), std::max(high.y, p.y)};
  }
  return {low.x, low.y, high.x - low.x, high.y - low.y};
}

// Lays the sprite over `pixels` (CV_32FC3); returns the share of it that lies there and not in
// `bar`.
double Paste(const Sprite& sprite, const Pose& pose, double light, const cv::Rect& bar,
             cv::Mat& pixels) {
  const Box box = BoxOf(sprite, pose);
  const cv::Rect around(cvFloor(box.x) - 2, cvFloor(box.y) - 2, cvCeil(box.width) + 5,
                        cvCeil(box.height) + 5);
  // Reduced first by averaging: warpAffine looks at four pixels only.
  const double reduction = std::min(1.0, pose.scale);
  cv::Mat colours, alpha;
  cv::resize(sprite.colours, colours, {}, reduction, reduction, cv::INTER_AREA);
  cv::resize(sprite.alpha, alpha, {}, reduction, reduction, cv::INTER_AREA);
  // warpAffine counts from the middles of pixels.
  const double step_x = kSpriteWidth / alpha.cols, step_y = kSpriteHeight / alpha.rows;
  const cv::Point2d origin =
      pose.Map(step_x / 2, step_y / 2) - cv::Point2d(around.x + 0.5, around.y + 0.5);
  const double a = pose.scale * pose.cosine, b = pose.scale * pose.sine;
  const cv::Matx23d map(a * step_x, -b * step_y, origin.x, b * step_x, a * step_y, origin.y);
  cv::warpAffine(colours, colours, map, around.size());
  cv::warpAffine(alpha, alpha, map, around.size());

  double all = 0, seen = 0;
  for (int y = 0; y < around.height; ++y) {
    for (int x = 0; x < around.width; ++x) {
      const float cover = alpha.at<float>(y, x);
      const cv::Point at = around.tl() + cv::Point(x, y);
      all += cover;
      if (!cv::Rect({}, pixels.size()).contains(at)) continue;
      if (!bar.contains(at)) seen += cover;
      cv::Vec3f& pixel = pixels.at<cv::Vec3f>(at);
      pixel = pixel * (1 - cover) + colours.at<cv::Vec3f>(y, x) * static_cast<float>(light);
    }
  }
  return seen / all;
}

// Noise of several scales, about -1 to 1; halving the scale divides the height by `roughness`.
cv::Mat Clouds(cv::Size size, double roughness, cv::RNG& random) {
  cv::Mat sum(size, CV_32F, cv::Scalar(0));
  double height = 0.7;
  for (int cell = 96; cell >= 2; cell /= 2, height /= roughness) {
    cv::Mat grid(size.height / cell + 2, size.width / cell + 2, CV_32F), smooth;
    random.fill(grid, cv::RNG::UNIFORM, -height, height);
    cv::resize(grid, smooth, size, 0, 0, cv::INTER_CUBIC);
    sum += smooth;
  }
  return sum;
}

// A meadow with earth, stones (half as many twigs) lying about.
cv::Mat DrawGround(cv::Size size, int stones, cv::RNG& random) {
  const cv::Mat earth = Clouds(size, 1.6, random), light = Clouds(size, 1.2, random);
  cv::Mat ground(size, CV_8UC3);
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      const float share = std::clamp(0.5F + 1.5F * earth.at<float>(y, x), 0.0F, 1.0F);
      const cv::Vec3f colour =
          cv::Vec3f(58, 128, 108) * (1 - share) + cv::Vec3f(105, 138, 158) * share;
      const float gain = 1 + 0.22F * light.at<float>(y, x);
      for (int c = 0; c < 3; ++c) {
        ground.at<cv::Vec3b>(y, x)[c] = cv::saturate_cast<std::uint8_t>(colour[c] * gain);
      }
    }
  }
  const auto somewhere = [&] {
    return cv::Point(random.uniform(0, size.width), random.uniform(0, size.height));
  };
  for (int i = 0; i < stones; ++i) {
    const cv::Point at = somewhere();
    const cv::Size radii(random.uniform(3, 12), random.uniform(3, 9));
    const double turn = random.uniform(0, 180), grey = random.uniform(90, 190);
    const cv::Scalar colour(grey * 1.02, grey, grey * random.uniform(0.9, 1.0));
    cv::ellipse(ground, at + cv::Point(2, 2), radii, turn, 0, 360, colour * 0.35, cv::FILLED,
                cv::LINE_AA);
    cv::ellipse(ground, at, radii, turn, 0, 360, colour, cv::FILLED, cv::LINE_AA);
    cv::ellipse(ground, at - cv::Point(1, 1), radii / 2, turn, 0, 360, colour * 1.15, cv::FILLED,
                cv::LINE_AA);
  }
  for (int i = 0; i < stones / 2; ++i) {
    const cv::Point at = somewhere();
    const cv::Point end = at + cv::Point(random.uniform(-35, 35), random.uniform(-25, 25));
    cv::line(ground, at, end, {35, 55, 75}, random.uniform(1, 4), cv::LINE_AA);
  }
  cv::Mat result;
  ground.convertTo(result, CV_32F);
  return result;
}

// Planks.
void DrawBar(const cv::Rect& bar, cv::Mat& pixels) {
  const cv::Rect inside = bar & cv::Rect({}, pixels.size());
  for (int y = inside.y; y < inside.br().y; ++y) {
    for (int x = inside.x; x < inside.br().x; ++x) {
      const int plank = (y - bar.y) % 24;
      const double grain = 6 * std::sin(0.35 * plank + 0.08 * x) + 4 * std::sin(1.7 * plank);
      const double gain = plank == 0 ? 0.5 : 1 + grain / 100;
      pixels.at<cv::Vec3f>(y, x) = cv::Vec3f(86, 122, 158) * static_cast<float>(gain);
    }
  }
}

const Sprite& Toy() {
  static const Sprite toy = DrawToy(kToyColours);
  return toy;
}

}  // namespace

SyntheticClip::SyntheticClip(const ClipOptions& options) : options_(options) {
  cv::RNG random(options.seed);
  ground_ = DrawGround({options.width, options.height}, options.stones, random);
  const Sprite other = DrawToy(kOtherColours);
  const cv::Point2d places[] = {{0.15, 0.25}, {0.85, 0.3}, {0.8, 0.8}};
  for (int i = 0; i < options.distractors; ++i) {
    const cv::Point2d& place = places[i % std::size(places)];
    Paste(other, PoseOf({0, place.x * options.width, place.y * options.height, 55, 10.0 * i}), 1,
          {}, ground_);
  }
}

cv::Mat SyntheticClip::Finish(cv::Mat pixels, int frame) const {
  DrawBar(options_.bar, pixels);
  if (options_.noise > 0) {
    cv::RNG random(options_.seed * 7919ULL + static_cast<std::uint64_t>(frame) + 1);
    cv::Mat noise(pixels.size(), CV_32FC3);
    random.fill(noise, cv::RNG::NORMAL, 0, options_.noise);
    pixels += noise;
  }
  cv::Mat result;
  pixels.convertTo(result, CV_8U);
  if (options_.grey) {
    cv::Mat grey;
    cv::cvtColor(result, grey, cv::COLOR_BGR2GRAY);
    cv::cvtColor(grey, result, cv::COLOR_GRAY2BGR);
  }
  return result;
}

cv::Mat SyntheticClip::RenderGround(int frame) const { return Finish(ground_.clone(), frame); }

ClipFrame SyntheticClip::Render(int frame) const {
  const Pose pose = PoseOf(KeyAt(options_.path, frame));
  cv::Mat pixels = ground_.clone();
  ClipFrame result;
  const double light = 1 + options_.lighting * std::sin(0.1 * frame);
  result.visible = Paste(Toy(), pose, light, options_.bar, pixels);
  result.box = BoxOf(Toy(), pose);
  result.pixels = Finish(pixels, frame);
  return result;
}

}  // namespace tessera
