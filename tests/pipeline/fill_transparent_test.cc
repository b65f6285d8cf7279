#include "pipeline/fill_transparent.h"

#include <gtest/gtest.h>

#include <limits>

#include "pipeline/image_writer.h"
#include "pipeline/picture_input.h"
#include "tests/pipeline/test_pictures.h"

namespace tessera {
namespace {

// The definition, pixel by pixel, on a whole picture.
Picture Filled(const Picture& in) {
  const int colours = in.format().ColourChannels();
  const std::int64_t w = in.width(), h = in.height(), reach = TransparentFill::kReach;
  Picture out(in.format());
  for (std::int64_t y = 0; y < h; ++y) {
    for (std::int64_t x = 0; x < w; ++x) {
      for (int c = 0; c <= colours; ++c) SetSample(out, x, y, c, Sample(in, x, y, c));
      if (Sample(in, x, y, colours) != 0) continue;
      std::int64_t least = std::numeric_limits<std::int64_t>::max(), from_x = -1, from_y = -1;
      // In the order in which one of equal distance is preferred.
      for (std::int64_t distance = 0; distance <= reach; ++distance) {
        for (const std::int64_t dy : {-distance, distance}) {
          if (y + dy < 0 || y + dy >= h) continue;
          for (std::int64_t i = 0; i < w; ++i) {
            if (Sample(in, i, y + dy, colours) == 0) continue;
            const std::int64_t d = dy * dy + (i - x) * (i - x);
            if (d >= least) continue;
            least = d;
            from_x = i;
            from_y = y + dy;
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
          PictureInput input(folder / "in.png");
          input.NeedRows(0, h);
          EXPECT_TRUE(SamePixels(input.picture(), Filled(picture)))
              << channels << " channels, " << w << "x" << h << ", one of " << one_of;
          // In a window.
          PictureInput narrow(folder / "in.png");
          narrow.HoldRows(1);
          const Picture expected = Filled(picture);
          for (std::int64_t y = 0; y < h; ++y) {
            narrow.NeedRows(y, y + 1);
            ASSERT_EQ(
                std::memcmp(narrow.picture().Row(y), expected.Row(y), picture.format().RowBytes()),
                0)
                << y;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tessera
