#include "engine/passes/quantized/movers.h"

#include <set>
#include <string>
#include <string_view>

namespace tessera {

bool IsMover(const Node& node) {
  static const std::set<std::string_view> kTypes = {
      "Concat",       "DepthToSpace", "Expand",  "Flatten", "Gather",    "Reshape",  "Slice",
      "SpaceToDepth", "Split",        "Squeeze", "Tile",    "Transpose", "Unsqueeze"};
  const Attributes& a = node.op.attributes;
  const std::string& type = node.op.type;
  if (kTypes.contains(type)) return true;
  if (type == "MaxPool") return node.op.opset >= 12 && node.outputs.size() == 1;
  if (type != "Resize" && type != "Upsample") return false;
  // That one writes a value of its own beyond the picture.
  return a.String("mode", "nearest") == "nearest" &&
         a.String("coordinate_transformation_mode", "") != "tf_crop_and_resize";
}

std::size_t NumDataInputs(const Node& mover) {
  return mover.op.type == "Concat" ? mover.inputs.size() : 1;
}

}  // namespace tessera
