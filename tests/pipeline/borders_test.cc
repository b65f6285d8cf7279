// What a picture looks like at its border, to a network and in the result.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "pipeline/border.h"
#include "pipeline/upscaler.h"
#include "tests/pipeline/fake_models.h"
#include "tests/pipeline/test_pictures.h"

namespace tessera {
namespace {

TEST(Border, ReflectsAsFarAsItGoesThenRepeats) {
  const std::int64_t expected[] = {2, 2, 2, 1, 0, 1, 2, 1, 0, 0, 0};
  for (std::int64_t i = -4; i < 7; ++i) {
    EXPECT_EQ(BorderSource(i, 3, BorderMode::kReflect), expected[i + 4]) << i;
    EXPECT_EQ(BorderSource(i, 1, BorderMode::kReflect), 0);
    EXPECT_EQ(BorderSource(i, 3, BorderMode::kWrap), (i + 6) % 3) << i;
  }
}

TEST(Border, SourcesOfASpanHoldThoseOfEachPixel) {
  for (const BorderMode mode : {BorderMode::kReflect, BorderMode::kWrap}) {
    for (const std::int64_t length : {1, 2, 3, 10, 30}) {
      for (std::int64_t begin = -25; begin < length + 25; ++begin) {
        Span least{length, 0};
        for (std::int64_t end = begin + 1; end < length + 27; ++end) {
          const std::int64_t source = BorderSource(end - 1, length, mode);
          least = {std::min(least.begin, source), std::max(least.end, source + 1)};
          const Span span = BorderSources({begin, end}, length, mode);
          ASSERT_LE(span.begin, least.begin);
          ASSERT_GE(span.end, least.end);
          ASSERT_GE(span.begin, 0);
          ASSERT_LE(span.end, length);
          if (mode == BorderMode::kReflect) {
            ASSERT_EQ(span.begin, least.begin) << begin << " to " << end << " of " << length;
            ASSERT_EQ(span.end, least.end) << begin << " to " << end << " of " << length;
          }
        }
      }
    }
  }
}

// The picture with `border` pixels more on each side.
Picture Extended(const Picture& in, std::int64_t x_border, std::int64_t y_border,
                 const Border& border) {
  PictureFormat format = in.format();
  format.width += 2 * x_border;
  format.height += 2 * y_border;
  Picture out(format);
  for (std::int64_t y = 0; y < format.height; ++y)
    for (std::int64_t x = 0; x < format.width; ++x)
      for (int c = 0; c < format.channels; ++c)
        SetSample(out, x, y, c,
                  Sample(in, BorderSource(x - x_border, in.width(), border.x),
                         BorderSource(y - y_border, in.height(), border.y), c));
  return out;
}

Picture Upscaled(const FakeConvOptions& model, const Picture& in, const PictureOptions& options,
                 int tile = 1 << 20) {
  const Upscaler upscaler(std::make_unique<FakeConv>(model), {.tile = tile, .threads = 2}, options);
  PictureFormat out = in.format();
  out.width *= model.scale;
  out.height *= model.scale;
  return upscaler.Upscale(in, out);
}

// Samples that differ within `part` of a, which begins at (dx, dy) of b.
std::int64_t Differing(const Picture& a, const Picture& b, std::int64_t dx, std::int64_t dy) {
  std::int64_t differing = 0;
  for (std::int64_t y = 0; y < a.height(); ++y)
    for (std::int64_t x = 0; x < a.width(); ++x)
      for (int c = 0; c < a.format().channels; ++c)
        differing += Sample(a, x, y, c) != Sample(b, x + dx, y + dy, c);
  return differing;
}

TEST(Borders, NetworksSeeTenReflectedPixels) {
  const FakeConvOptions model{.scale = 3, .radius = 4};
  for (const auto& [w, h] : {std::pair{40, 33}, {5, 60}, {1, 1}}) {
    const Picture in = NoisePicture({.width = w, .height = h});
    const Picture expected =
        Upscaled(model, Extended(in, 10, 10, {}), PictureOptions{.zero_edges = true});
    for (const int tile : {12, 1 << 20}) {
      const Picture out = Upscaled(model, in, {}, tile);
      EXPECT_EQ(Differing(out, expected, 30, 30), 0) << w << "x" << h << ", tiles of " << tile;
    }
  }
}

TEST(Borders, ZeroEdgesGiveTheBareNetwork) {
  const FakeConvOptions options{.scale = 2, .radius = 3};
  const Picture in = NoisePicture({.width = 31, .height = 20});
  const Picture out = Upscaled(options, in, {.zero_edges = true});
  FakeConv model(options);
  const Tensor input(DType::kFloat32, {1, 3, 20, 31});
  for (int c = 0; c < 3; ++c)
    for (std::int64_t y = 0; y < 20; ++y)
      for (std::int64_t x = 0; x < 31; ++x)
        input.data<float>()[(c * 20 + y) * 31 + x] = static_cast<float>(Sample(in, x, y, c)) / 255;
  std::vector<Tensor> outputs;
  SerialParallel serial;
  model.Run(input.view(), outputs, serial);
  for (int c = 0; c < 3; ++c)
    for (std::int64_t y = 0; y < 40; ++y)
      for (std::int64_t x = 0; x < 62; ++x)
        ASSERT_EQ(Sample(out, x, y, c),
                  std::nearbyint(
                      255 * std::clamp(outputs[0].data<float>()[(c * 40 + y) * 62 + x], 0.f, 1.f)));
}

// Zero padding darkens a flat picture at its border; that is not to be seen.
TEST(Borders, AFlatPictureStaysFlat) {
  Picture in({.width = 20, .height = 20});
  for (std::int64_t y = 0; y < 20; ++y)
    for (std::int64_t x = 0; x < 20; ++x)
      for (int c = 0; c < 3; ++c) SetSample(in, x, y, c, 200);
  const auto range = [](const Picture& picture) {
    std::uint32_t low = 255, high = 0;
    for (std::int64_t y = 0; y < picture.height(); ++y)
      for (std::int64_t x = 0; x < picture.width(); ++x) {
        low = std::min(low, Sample(picture, x, y, 0));
        high = std::max(high, Sample(picture, x, y, 0));
      }
    return high - low;
  };
  const FakeConvOptions model{.scale = 1, .radius = 3};
  EXPECT_EQ(range(Upscaled(model, in, {})), 0u);
  EXPECT_GT(range(Upscaled(model, in, {.zero_edges = true})), 20u);
}

// A fixed input that the picture fills is not cut into four for the sake of its border.
TEST(Borders, FixedInputsAreFilledInOneRun) {
  const FakeConvOptions options{.scale = 2, .radius = 3, .fixed_input = ModelTraits::Size{64, 48}};
  for (const auto& [w, h, tiles] : {std::tuple{64, 48, 1}, {40, 20, 1}, {65, 48, 2}}) {
    auto model = std::make_unique<FakeConv>(options);
    const FakeConv& observed = *model;
    const Upscaler upscaler(std::move(model), {.threads = 1});
    const Picture in = NoisePicture({.width = w, .height = h});
    upscaler.Upscale(in, PictureFormat{.width = 2 * w, .height = 2 * h});
    EXPECT_EQ(observed.runs, tiles) << w << "x" << h;
  }
}

// What tiles seamlessly can be laid out two by two: the result is that of the layout.
TEST(Borders, WrappedResultsTileSeamlessly) {
  for (const auto& [wrap_x, wrap_y] : {std::pair{true, true}, {true, false}, {false, true}}) {
    for (const auto& [w, h] : {std::pair{48, 36}, {24, 60}, {12, 12}}) {
      for (const int channels : {3, 4}) {
        for (const AlphaMode alpha : {AlphaMode::kBicubic, AlphaMode::kModel}) {
          for (const double size : {1.0, 0.5, 1.25}) {
            SCOPED_TRACE(testing::Message() << w << "x" << h << ", " << wrap_x << wrap_y << ", by "
                                            << size << ", channels " << channels);
            const Picture in = NoisePicture({.width = w, .height = h, .channels = channels});
            const Border border{wrap_x ? BorderMode::kWrap : BorderMode::kReflect,
                                wrap_y ? BorderMode::kWrap : BorderMode::kReflect};
            // Whole numbers of periods before and behind it.
            const std::int64_t x_more = wrap_x ? 4 * w : 0, y_more = wrap_y ? 4 * h : 0;
            const Picture layout = Extended(in, x_more, y_more, border);
            const auto scaled = [&](std::int64_t length) {
              return std::lround(2 * size * static_cast<double>(length));
            };
            const auto upscale = [&](const Picture& picture, const PictureOptions& options,
                                     int tile) {
              const Upscaler upscaler(std::make_unique<FakeConv>(FakeConvOptions{.radius = 4}),
                                      {.tile = tile, .threads = 2}, options);
              PictureFormat out = picture.format();
              out.width = scaled(out.width);
              out.height = scaled(out.height);
              return upscaler.Upscale(picture, out);
            };
            const Picture expected = upscale(layout, {.alpha = alpha}, 1 << 20);
            for (const int tile : {12, 1 << 20}) {
              const Picture out =
                  upscale(in, {.wrap_x = wrap_x, .wrap_y = wrap_y, .alpha = alpha}, tile);
              const std::int64_t differing =
                  Differing(out, expected, scaled(x_more), scaled(y_more));
              // Weights of resampling are rounded by their place.
              const std::int64_t samples = out.width() * out.height() * channels;
              EXPECT_LE(differing, size == 1.0 ? 0 : samples / 200) << "tiles of " << tile;
            }
            // The test would see it if nothing were wrapped.
            EXPECT_GT(Differing(upscale(in, {.alpha = alpha}, 1 << 20), expected, scaled(x_more),
                                scaled(y_more)),
                      0);
          }
        }
      }
    }
  }
}

// Everything at once, with pictures that hold no more rows than the plan says: the same bytes as
// from whole pictures. (A wait that nobody ends would end the test by its time limit.)
TEST(Borders, WindowsOfRowsAreEnoughForEveryOption) {
  std::mt19937 random(1);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int i = 0; i < 400; ++i) {
    const int channels = pick(1, 4);
    const PictureFormat in_format{
        .width = pick(1, 60), .height = pick(1, 250), .channels = channels};
    const int scale = pick(1, 3);
    const double resized = pick(0, 1) ? 1 : std::exp(pick(-20, 10) / 10.0);
    const auto scaled = [&](std::int64_t length) {
      return std::max<std::int64_t>(1, std::lround(resized * static_cast<double>(scale * length)));
    };
    const PictureFormat out_format{.width = scaled(in_format.width),
                                   .height = scaled(in_format.height),
                                   .channels = pick(0, 3) ? channels : 3};
    TileOptions tiles{.tile = pick(1, 60), .threads = pick(1, 4), .workers = pick(0, 4)};
    if (pick(0, 2) == 0) tiles.overlap = pick(0, 8);
    const PictureOptions options{
        .wrap_x = pick(0, 4) == 0,
        .wrap_y = pick(0, 4) == 0,
        .zero_edges = pick(0, 2) == 0,
        .alpha = pick(0, 2) == 0 ? AlphaMode::kModel : AlphaMode::kBicubic};
    FakeConvOptions model{.scale = scale, .radius = pick(0, 4)};
    if (pick(0, 4) == 0) model.fixed_input = ModelTraits::Size{48, 36};
    if (pick(0, 4) == 0) model.channels = 1;
    const std::int64_t late = pick(0, 20);
    SCOPED_TRACE(testing::Message()
                 << "case " << i << ": " << in_format.width << "x" << in_format.height << "x"
                 << channels << " to " << out_format.width << "x" << out_format.height
                 << ", tiles of " << tiles.tile << ", " << tiles.threads << " threads");

    const Picture in = NoisePicture(in_format, static_cast<std::uint32_t>(i));
    const Upscaler upscaler(std::make_unique<FakeConv>(model), tiles, options);
    const Picture expected = upscaler.Upscale(in, out_format);

    const Upscaler::Plan plan = upscaler.MakePlan(in_format, out_format);
    const Picture arrived(in_format, plan.input_rows), seen(out_format);
    const Picture out(out_format, plan.result_rows + late);
    std::mutex mutex;
    std::int64_t rows = 0, taken = 0;
    const auto need = [&](std::int64_t begin, std::int64_t end) {
      const std::lock_guard lock(mutex);
      ASSERT_LE(end - begin, arrived.held_rows());
      for (; rows < end; ++rows) std::memcpy(arrived.Row(rows), in.Row(rows), in_format.RowBytes());
    };
    const auto done = [&](std::int64_t end, Parallel&) {
      const std::lock_guard lock(mutex);
      const std::int64_t until = end == out_format.height ? end : end - late;
      for (; taken < until; ++taken)
        std::memcpy(seen.Row(taken), out.Row(taken), out_format.RowBytes());
      return taken;
    };
    upscaler.Upscale(arrived, out, {.need = need, .done = done});
    ASSERT_TRUE(SamePixels(seen, expected));
  }
}

}  // namespace
}  // namespace tessera
