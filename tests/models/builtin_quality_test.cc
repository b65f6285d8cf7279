// The built-in models come nearer to the original than bicubic interpolation, by about what their
// cards say, on photographs that served no training; default-x4-restore when these are damaged.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/session.h"
#include "models/builtin_models.h"
#include "pipeline/image_reader.h"
#include "pipeline/image_writer.h"
#include "pipeline/planes.h"
#include "pipeline/resample.h"
#include "pipeline/session_model.h"
#include "pipeline/upscaler.h"
#include "tests/pipeline/test_pictures.h"

namespace tessera {
namespace {

// Bicubic, antialiased where the size shrinks, rounded to 8 bits.
Picture Resized(const Picture& in, std::int64_t width, std::int64_t height) {
  const Rect from{0, 0, in.width(), in.height()}, to{0, 0, width, height};
  const Resampler resampler({in.width(), width, ResampleKernel::kCatmullRom},
                            {in.height(), height, ResampleKernel::kCatmullRom});
  std::vector<float> plane(static_cast<std::size_t>(in.width() * in.height()));
  std::vector<float> planes[3];
  PlanesView view{.colours = 3, .stride = width};
  for (int c = 0; c < 3; ++c) {
    planes[c].resize(static_cast<std::size_t>(width * height));
    ReadChannel(in, c, from, plane.data());
    resampler.Run(plane.data(), in.width(), to, planes[c].data(), width);
    view.colour[c] = planes[c].data();
  }
  Picture out({.width = width, .height = height});
  EXPECT_FALSE(WritePlanes(view, to, out));
  return out;
}

Picture Crop(const Picture& in, const Rect& rect) {
  Picture out({.width = rect.width, .height = rect.height});
  for (std::int64_t y = 0; y < rect.height; ++y) {
    const auto* row = in.Row<std::uint8_t>(rect.y + y) + 3 * rect.x;
    std::copy(row, row + 3 * rect.width, out.Row<std::uint8_t>(y));
  }
  return out;
}

// A little blurred (sigma 0.5), then stored as JPEG of quality 75.
Picture Damaged(const Picture& in) {
  Picture out(in.format());
  for (std::int64_t y = 0; y < in.height(); ++y) {
    for (std::int64_t i = 0; i < 3 * in.width(); ++i) {
      double sum = 0;
      for (const int dy : {-1, 0, 1}) {
        const auto* row =
            in.Row<std::uint8_t>(std::clamp<std::int64_t>(y + dy, 0, in.height() - 1));
        const double side = i < 3 ? row[i] : row[i - 3];
        const double other = i + 3 < 3 * in.width() ? row[i + 3] : row[i];
        sum += (dy == 0 ? 0.787 : 0.1065) * (0.787 * row[i] + 0.1065 * (side + other));
      }
      out.Row<std::uint8_t>(y)[i] = static_cast<std::uint8_t>(std::min(std::lround(sum), 255L));
    }
  }
  const TemporaryFolder folder;
  WritePicture(folder.path() / "damaged.jpg", ImageFormat::kJpeg, out, {.quality = 75});
  return ReadPicture(folder.path() / "damaged.jpg").picture;
}

// In dB, of luma (BT.601), without a border of `border` pixels.
double Psnr(const Picture& a, const Picture& b, std::int64_t border) {
  double squares = 0;
  for (std::int64_t y = border; y < a.height() - border; ++y) {
    for (std::int64_t x = border; x < a.width() - border; ++x) {
      double luma = 0;
      const double weights[] = {65.481 / 255, 128.553 / 255, 24.966 / 255};
      for (int c = 0; c < 3; ++c) {
        luma +=
            weights[c] * (a.Row<std::uint8_t>(y)[3 * x + c] - b.Row<std::uint8_t>(y)[3 * x + c]);
      }
      squares += luma * luma;
    }
  }
  const auto pixels = static_cast<double>((a.width() - 2 * border) * (a.height() - 2 * border));
  return 10 * std::log10(255.0 * 255.0 * pixels / squares);
}

TEST(BuiltinModels, ComeNearerToTheOriginalThanBicubic) {
  const struct {
    const char* file;
    Rect rect;
    double least_gain[3];  // in dB, of the models in their order: a little under what they reach
  } cases[] = {
      {"mountain.png", {36, 11, 128, 128}, {1.35, 0.33, 0.3}},
      {"brushes.jpg", {0, 32, 128, 128}, {1.03, 0.33, 0.18}},
      {"brushes.jpg", {116, 32, 128, 128}, {2.2, 2.4, 1.55}},
  };
  for (const auto& c : cases) {
    const std::filesystem::path file =
        std::filesystem::path(TESSERA_SOURCE_DIR) / "samples" / c.file;
    const Picture original = Crop(ReadPicture(file).picture, c.rect);
    const double* least_gain = c.least_gain;
    for (const BuiltinModel& model : BuiltinModels()) {
      const std::string name(model.name);
      const Upscaler upscaler(MakeSessionModel(Session::LoadFromMemory(model.onnx, name), name),
                              {});
      Picture low = Resized(original, c.rect.width / model.scale, c.rect.height / model.scale);
      if (name == "default-x4-restore") low = Damaged(low);
      const double gain = Psnr(upscaler.Upscale(low, original.format()), original, model.scale) -
                          Psnr(Resized(low, c.rect.width, c.rect.height), original, model.scale);
      EXPECT_GE(gain, *least_gain++) << c.file << " " << name;
    }
  }
}

}  // namespace
}  // namespace tessera
