#include "pipeline/quantization/picture_samples.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "ops/error.h"
#include "pipeline/input_stream.h"
#include "pipeline/planes.h"

namespace tessera {
namespace {

// Sizes that are tried: of so many in a row one is a multiple of whatever a network needs.
constexpr std::int64_t kMaxMultiple = 256;

// Where `count` windows of width x height lie in a picture, from top to bottom: points of an even
// sequence (M. Roberts, The unreasonable effectiveness of quasirandom sequences, 2018).
std::vector<Rect> PlaceTiles(const PictureFormat& format, std::int64_t width, std::int64_t height,
                             int count) {
  constexpr double kStepX = 0.7548776662466927, kStepY = 0.5698402909980532;
  const auto place = [](double where, std::int64_t length, std::int64_t window) {
    where -= std::floor(where);
    return length > window ? static_cast<std::int64_t>(
                                 std::lround(where * static_cast<double>(length - window)))
                           : (length - window) / 2;
  };
  std::vector<Rect> tiles;
  for (int i = 0; i < count; ++i) {
    tiles.push_back({place(0.5 + i * kStepX, format.width, width),
                     place(0.5 + i * kStepY, format.height, height), width, height});
  }
  std::ranges::stable_sort(tiles, {}, &Rect::y);
  return tiles;
}

Sample CutTile(const Picture& picture, const Rect& rect, const Shape& shape, int index) {
  Tensor tensor(DType::kFloat32, shape);
  const int colours = picture.format().ColourChannels();
  const std::int64_t channels = shape[1];
  for (std::int64_t n = 0; n < shape[0] * channels; ++n) {
    const auto plane = static_cast<int>(channels == 1 ? index : n % channels);
    ReadChannel(picture, plane % colours, rect,
                tensor.data<float>() + n * rect.width * rect.height);
  }
  Sample sample;
  sample.push_back(std::move(tensor));
  return sample;
}

template <typename Need>
std::vector<Sample> CutTiles(const Picture& picture, const Shape& tile, int count, Need&& need) {
  std::vector<Sample> samples;
  for (const Rect& rect : PlaceTiles(picture.format(), tile[3], tile[2], count)) {
    need(std::max<std::int64_t>(0, rect.y), std::min(picture.height(), rect.bottom()));
    samples.push_back(CutTile(picture, rect, tile, static_cast<int>(samples.size())));
  }
  return samples;
}

}  // namespace

Shape FindTileShape(Session& network, std::int64_t side) {
  Require(network.inputs().size() == 1, network.name(), ": has ", network.inputs().size(),
          " inputs; pictures are for networks with one");
  const ValueDecl& input = network.inputs()[0];
  const bool is_float = input.dtype == DType::kFloat32 || input.dtype == DType::kFloat16;
  const auto dim = [&input](std::size_t axis) { return input.has_shape ? input.dims[axis] : -1; };
  Require(is_float && (!input.has_shape || input.dims.size() == 4) &&
              (dim(1) == 3 || dim(1) == 1 || dim(1) == -1),
          network.name(), ": input '", input.name,
          "' takes no pictures: float [1, 3 or 1, height, width] is needed");
  std::string refusal;
  for (const std::int64_t channels : {3, 1}) {
    if (dim(1) != -1 && dim(1) != channels) continue;
    for (std::int64_t more = 0; more < kMaxMultiple; ++more) {
      const Shape shape{std::max<std::int64_t>(1, dim(0)), channels,
                        dim(2) > 0 ? dim(2) : side + more, dim(3) > 0 ? dim(3) : side + more};
      try {
        network.InferOutputs(std::array{shape});
        return shape;
      } catch (const Error& error) {
        if (refusal.empty()) refusal = error.what();
      }
      if (dim(2) > 0 && dim(3) > 0) break;
    }
  }
  throw Error(refusal);
}

std::vector<Sample> SampleTiles(PictureInput& input, const Shape& tile, int count) {
  input.HoldRows(tile[2]);
  return CutTiles(input.picture(), tile, count,
                  [&input](std::int64_t begin, std::int64_t end) { input.NeedRows(begin, end); });
}

std::vector<Sample> SampleTiles(const Picture& picture, const Shape& tile, int count) {
  return CutTiles(picture, tile, count, [](std::int64_t, std::int64_t) {});
}

Sample DrawnTile(const Shape& tile) {
  constexpr int kRectangles = 300;
  constexpr unsigned kMostBrightness = 255;
  std::minstd_rand random(1);
  const std::int64_t height = tile[2], width = tile[3], planes = tile[0] * tile[1];
  const auto below = [&random](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  // Small ones are many.
  const auto size = [&](std::int64_t most) {
    return 1 + below(1 + below(std::max<std::int64_t>(1, most)));
  };
  Tensor tensor(DType::kFloat32, tile);
  std::ranges::fill(tensor.values<float>(), 0.5f);
  for (int i = 0; i < kRectangles; ++i) {
    const std::int64_t top = below(height), left = below(width);
    const std::int64_t bottom = std::min(height, top + size(height / 2));
    const std::int64_t right = std::min(width, left + size(width / 2));
    for (std::int64_t plane = 0; plane < planes; ++plane) {
      const auto value = static_cast<float>(random() % (kMostBrightness + 1)) / kMostBrightness;
      for (std::int64_t y = top; y < bottom; ++y) {
        float* row = tensor.data<float>() + (plane * height + y) * width;
        std::fill(row + left, row + right, value);
      }
    }
  }
  Sample sample;
  sample.push_back(std::move(tensor));
  return sample;
}

std::optional<FileSamples> SampleFirst(std::span<const std::filesystem::path> files,
                                       const Shape& tile, int count, const ReadOptions& options) {
  for (const std::filesystem::path& file : files) {
    try {
      std::optional<RepeatableStandardInput> standard_input;
      if (file == "-") standard_input.emplace();
      try {
        PictureInput input(file, options);
        FileSamples samples{file, SampleTiles(input, tile, count)};
        if (standard_input) standard_input->Rewind();
        return samples;
      } catch (const Error&) {
        if (standard_input) standard_input->Rewind();
      }
    } catch (const Error&) {  // its turn will come
    }
  }
  return std::nullopt;
}

}  // namespace tessera
