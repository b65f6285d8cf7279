// Parts of pictures as inputs of a network, to calibrate it with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "engine/quantization/quantizer.h"
#include "engine/session.h"
#include "pipeline/picture_input.h"

namespace tessera {

// Side of the tiles, and how many are taken of pictures together unless somebody wants others, or
// while somebody waits.
inline constexpr std::int64_t kSampleSide = 128;
inline constexpr int kSampleTiles = 16, kQuickSampleTiles = 6;

// The input of a network for pictures, [1, 3 or 1, height, width]: of the size that it declares, or
// the first square from `side` on that it accepts. Throws Error, which names the network, if it has
// another kind of input or accepts none.
Shape FindTileShape(Session& network, std::int64_t side = kSampleSide);

// `count` tiles of the picture, spread evenly over it (the first is its middle), each as one input
// of `tile` shape with values from 0 to 1: RGB, or one colour plane in turn. Tiles that are larger
// than the picture show it reflected at its border. Reads the picture row by row: it must not have
// been used before. Throws Error, which names the file, if it cannot be read.
std::vector<Sample> SampleTiles(PictureInput& input, const Shape& tile, int count);

// The same of a picture that is there.
std::vector<Sample> SampleTiles(const Picture& picture, const Shape& tile, int count);

// A tile of such a shape that stands for other pictures: rectangles of all sizes, colours and
// brightnesses over each other. Always the same for the same shape.
Sample DrawnTile(const Shape& tile);

// Of the first of the files that can be read, or none if none can: that they cannot is for others
// to say. "-" is standard input, which can be read again afterwards.
struct FileSamples {
  std::filesystem::path file;
  std::vector<Sample> samples;
};
std::optional<FileSamples> SampleFirst(std::span<const std::filesystem::path> files,
                                       const Shape& tile, int count, const ReadOptions& options);

}  // namespace tessera
