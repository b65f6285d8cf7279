#include "pipeline/fill_transparent.h"

#include <gtest/gtest.h>

#include <limits>

#include "pipeline/image_writer.h"
#include "pipeline/picture_input.h"
#include "tests/pipeline/test_pictures.h"

namespace tessera {
namespace {

// The definition, pixel by pixel, on a whole picture.
Picture Filled(const Picture& in, const FillOptions& options) {
  const int colours = in.format().ColourChannels();
  const std::int64_t w = in.width(), h = in.height(), reach = options.reach;
  Picture out(in.format());
  for (std::int64_t y = 0; y < h; ++y) {
    for (std::int64_t x = 0; x < w; ++x) {
      for (int c = 0; c <= colours; ++c) SetSample(out, x, y, c, Sample(in, x, y, c));
      if (Sample(in, x, y, colours) != 0) continue;
      std::int64_t least = std::numeric_limits<std::int64_t>::max(), from_x = -1, from_y = -1;
      // In the order in which one of equal distance is preferred.
      for (std::int64_t distance = 0; distance <= reach; ++distance) {
        for (const std::int64_t dy : {-distance, distance}) {
          if (!options.wrap_y && (y + dy < 0 || y + dy >= h)) continue;
          const std::int64_t row = ((y + dy) % h + h) % h;
          for (std::int64_t i = options.wrap_x ? x - w : 0; i < (options.wrap_x ? x + w : w); ++i) {
            const std::int64_t column = (i % w + w) % w;
            if (Sample(in, column, row, colours) == 0) continue;
            const std::int64_t d = dy * dy + (i - x) * (i - x);
            if (d >= least) continue;
            least = d;
            from_x = column;
            from_y = row;
          }
        }
      }
      for (int c = 0; c < colours; ++c) {
        if (from_x >= 0) {
          SetSample(out, x, y, c, Sample(in, from_x, from_y, c));
        } else if (y > 0) {
          SetSample(out, x, y, c, Sample(out, x, y - 1, c));
        }
      }
    }
  }
  return out;
}

// Noise of which islands are visible, one pixel of a few hundred.
Picture Islands(const PictureFormat& format, std::uint32_t one_of) {
  Picture picture = NoisePicture(format);
  const Picture choice = NoisePicture(
      {.width = format.width, .height = format.height, .channels = 1, .bit_depth = 16}, 7);
  for (std::int64_t y = 0; y < format.height; ++y) {
    for (std::int64_t x = 0; x < format.width; ++x) {
      const bool visible = Sample(choice, x, y, 0) % one_of == 0;
      SetSample(picture, x, y, format.channels - 1,
                visible ? 1 + Sample(choice, x, y, 0) % 255 : 0);
    }
  }
  return picture;
}

TEST(TransparentFill, TakesTheNearestColour) {
  const TemporaryFolder folder;
  for (const int channels : {2, 4}) {
    for (const int bits : {8, 16}) {
      for (const std::uint32_t one_of : {1u, 3u, 200u, 5000u, 65536u}) {
        for (const auto& [w, h] : {std::pair{1, 1}, {40, 90}, {3, 200}, {120, 7}}) {
          const Picture picture =
              Islands({.width = w, .height = h, .channels = channels, .bit_depth = bits}, one_of);
          WritePicture(folder / "in.png", ImageFormat::kPng, picture);
          for (const FillOptions& options : {FillOptions{},
                                             {.reach = 40},
                                             {.wrap_x = true},
                                             {.reach = 5, .wrap_y = true},
                                             {.reach = 9, .wrap_x = true, .wrap_y = true}}) {
            SCOPED_TRACE(testing::Message() << channels << " channels, " << w << "x" << h
                                            << ", one of " << one_of << ", reach " << options.reach
                                            << ", wrapped " << options.wrap_x << options.wrap_y);
            const Picture expected = Filled(picture, options);
            // In a window.
            PictureInput input(folder / "in.png");
            input.HoldRows(1, options);
            for (std::int64_t y = 0; y < h; ++y) {
              input.NeedRows(y, y + 1);
              ASSERT_EQ(
                  std::memcmp(input.picture().Row(y), expected.Row(y), picture.format().RowBytes()),
                  0)
                  << y;
            }
          }
          PictureInput whole(folder / "in.png");
          whole.NeedRows(0, h);
          EXPECT_TRUE(SamePixels(whole.picture(), Filled(picture, {})));
        }
      }
    }
  }
}

}  // namespace
}  // namespace tessera
