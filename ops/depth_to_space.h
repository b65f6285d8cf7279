// What the operators of the DepthToSpace family share.
// https://onnx.ai/onnx/operators/onnx__DepthToSpace.html
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "ops/op.h"

namespace tessera {

// Attribute "blocksize". Throws Error if it is out of range.
std::int64_t DepthToSpaceBlock(const OpNode& node);

// The output's shape for input 0. Throws Error if that cannot be unfolded.
Shape DepthToSpaceShape(const OpNode& node, const Shape& in);

std::optional<SpatialField> DepthToSpaceField(const FieldContext& context, std::size_t i);

// Input channel of output channel c at (y, x) of the block, by attribute "mode".
struct ChannelOrder {
  ChannelOrder(const OpNode& node, std::int64_t out_channels)
      : block(DepthToSpaceBlock(node)),
        per_channel(node.attributes.String("mode", "DCR") == "CRD" ? block * block : 1),
        per_column(per_channel == 1 ? out_channels : 1) {}
  std::int64_t Source(std::int64_t c, std::int64_t y, std::int64_t x) const {
    return c * per_channel + (y * block + x) * per_column;
  }
  std::int64_t block, per_channel, per_column;
};

// DepthToSpace of elements of one byte, both sides in Layout::kChannelsLast.
std::unique_ptr<Kernel> MakePixelDepthToSpace(const OpNode& node, const Shape& in,
                                              const Shape& out);

}  // namespace tessera
