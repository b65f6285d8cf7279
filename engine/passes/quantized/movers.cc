#include "engine/passes/quantized/movers.h"

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace tessera {

std::size_t NumDataInputs(const Node& mover) {
  return mover.op.type == "Concat" ? mover.inputs.size()
                                   : std::min<std::size_t>(1, mover.inputs.size());
}

bool IsMover(const Node& node) {
  static const std::set<std::string_view> kTypes = {
      "Concat",       "DepthToSpace", "Expand",  "Flatten", "Gather",    "Reshape",  "Slice",
      "SpaceToDepth", "Split",        "Squeeze", "Tile",    "Transpose", "Unsqueeze"};
  const Attributes& a = node.op.attributes;
  const std::string& type = node.op.type;
  const auto data = std::span(node.inputs).first(NumDataInputs(node));
  if (std::ranges::find(data, kNoValue) != data.end()) return false;  // an error
  if (kTypes.contains(type)) return true;
  if (type == "MaxPool") return node.op.opset >= 12 && node.outputs.size() == 1;
  if (type != "Resize" && type != "Upsample") return false;
  // That one writes a value of its own beyond the picture.
  return a.String("mode", "nearest") == "nearest" &&
         a.String("coordinate_transformation_mode", "") != "tf_crop_and_resize";
}

}  // namespace tessera
