// DepthToSpace (both orders) and SpaceToDepth. FusedDepthToSpace is a DepthToSpace plus an image
// [N, C, H, W] whose pixels are repeated blocksize x blocksize times: how networks end that learn
// what enlarging by repetition lacks. https://onnx.ai/onnx/operators/onnx__DepthToSpace.html
// https://onnx.ai/onnx/operators/onnx__SpaceToDepth.html
#include "ops/depth_to_space.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "ops/strided_copy.h"

namespace tessera {
namespace {

void InferDepthToSpace(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  context.SetOutput(0, in.dtype, DepthToSpaceShape(context.node, in.shape));
}

constexpr std::size_t kImage = 1;

void InferFusedDepthToSpace(const InferContext& context) {
  InferDepthToSpace(context);
  const TensorInfo &in = context.Input(0), &image = context.Input(kImage);
  const Shape wanted{in.shape[0], context.outputs[0].shape[1], in.shape[2], in.shape[3]};
  Require(in.dtype == DType::kFloat32 && image.dtype == DType::kFloat32 && image.shape == wanted,
          "image of ", image.dtype, " ", image.shape, " for ", in.dtype, " ", in.shape);
}

void InferSpaceToDepth(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  const std::int64_t b = DepthToSpaceBlock(context.node);
  Require(in.shape.rank() == 4 && in.shape[2] % b == 0 && in.shape[3] % b == 0, "shape ", in.shape,
          " cannot be folded by a block of ", b);
  context.SetOutput(0, in.dtype,
                    Shape{in.shape[0], in.shape[1] * b * b, in.shape[2] / b, in.shape[3] / b});
}

std::unique_ptr<Kernel> PrepareRowMajorDepthToSpace(const PrepareContext& context) {
  const Shape& in = context.inputs[0].shape;
  const Shape& out = context.outputs[0].shape;
  const ChannelOrder order(context.node, out[1]);
  const std::int64_t b = order.block, plane = in[2] * in[3];
  const std::array<std::int64_t, 6> dims{in[0], out[1], in[2], b, in[3], b};
  const std::array<std::int64_t, 6> strides{
      in[1] * plane,           order.per_channel * plane, in[3], b * order.per_column * plane, 1,
      order.per_column * plane};
  return MakeStridedCopyKernel("depth_to_space",
                               StridedCopy(context.inputs[0].dtype, dims, strides));
}

// Row-major DepthToSpace plus the repeated image, element by element.
class ReferenceFusedDepthToSpace final : public Kernel {
 public:
  explicit ReferenceFusedDepthToSpace(const PrepareContext& context)
      : out_(context.outputs[0].shape), order_(context.node, out_[1]) {}

  std::string_view name() const override { return "depth_to_space_add_reference"; }
  void Run(const RunContext& context) const override {
    const float* in = context.inputs[0].data<const float>();
    const float* image = context.inputs[kImage].data<const float>();
    float* out = context.outputs[0].data<float>();
    const std::int64_t b = order_.block, height = out_[2] / b, width = out_[3] / b;
    context.parallel.For(out_[0] * out_[1], [&](std::int64_t plane, int) {
      const std::int64_t n = plane / out_[1], c = plane % out_[1];
      for (std::int64_t y = 0; y < out_[2]; ++y) {
        for (std::int64_t x = 0; x < out_[3]; ++x) {
          const std::int64_t channel = n * out_[1] * b * b + order_.Source(c, y % b, x % b);
          out[(plane * out_[2] + y) * out_[3] + x] =
              in[(channel * height + y / b) * width + x / b] +
              image[(plane * height + y / b) * width + x / b];
        }
      }
    });
  }

 private:
  Shape out_;
  ChannelOrder order_;
};

// NCHWc to row-major: the usual last step of a super-resolution network. One input row of pixels
// gives `block` rows of each output channel. With an image to be added, if there is a second input.
class BlockedDepthToSpaceKernel final : public Kernel {
 public:
  explicit BlockedDepthToSpaceKernel(const PrepareContext& context)
      : in_(context.inputs[0].shape),
        out_channels_(context.outputs[0].shape[1]),
        block_(DepthToSpaceBlock(context.node)),
        add_(context.HasInput(kImage)) {
    const ChannelOrder order(context.node, out_channels_);
    for (std::int64_t c = 0; c < out_channels_; ++c) {
      for (std::int64_t y = 0; y < block_; ++y) {
        for (std::int64_t x = 0; x < block_; ++x) {
          const std::int64_t source = order.Source(c, y, x);
          offsets_.push_back(source / in_.lanes * in_.plane_stride + source % in_.lanes);
          if (x > 0) runs_ = runs_ && offsets_.back() == *(offsets_.end() - 2) + 1;
        }
      }
    }
  }

  std::string_view name() const override {
    if (add_) return runs_ ? "depth_to_space_add_runs" : "depth_to_space_add";
    return runs_ ? "depth_to_space_blocked_runs" : "depth_to_space_blocked";
  }
  void Run(const RunContext& context) const override {
    const float* in = context.inputs[0].data<const float>();
    const float* image = add_ ? context.inputs[kImage].data<const float>() : nullptr;
    float* out = context.outputs[0].data<float>();
    context.parallel.For(in_.images * in_.height, [&](std::int64_t row, int) {
      const std::int64_t n = row / in_.height, y = row % in_.height;
      const std::int64_t first = (n * out_channels_ * in_.height + y) * in_.width;
      RunRow(in + n * in_.image_stride + y * in_.row_stride, add_ ? image + first : nullptr,
             out + first * block_ * block_);
    });
  }

 private:
  void RunRow(const float* in, const float* image, float* out) const {
    switch (block_) {
      case 2:
        return RunRowOf<2>(in, image, out);
      case 3:
        return RunRowOf<3>(in, image, out);
      case 4:
        return RunRowOf<4>(in, image, out);
      default:
        return RunRowOf<0>(in, image, out);
    }
  }

  // kBlock 0: any.
  template <int kBlock>
  void RunRowOf(const float* in, const float* image, float* out) const {
    const std::int64_t b = kBlock == 0 ? block_ : kBlock;
    const std::int64_t out_row = in_.width * b, lanes = in_.lanes;
    const std::int64_t* offsets = offsets_.data();
    for (std::int64_t c = 0; c < out_channels_; ++c) {
      float* to = out + c * in_.height * b * out_row;
      const float* add = add_ ? image + c * in_.height * in_.width : nullptr;
      for (std::int64_t y = 0; y < b; ++y, to += out_row, offsets += b) {
        if (runs_ && kBlock > 0) {  // the whole row of the block lies side by side
          const float* from = in + offsets[0];
          for (std::int64_t x = 0; x < in_.width; ++x) {
            std::array<float, std::max(kBlock, 1)> run;
            std::memcpy(run.data(), from + x * lanes, sizeof(run));
            if (add_) {
              for (float& value : run) value += add[x];
            }
            std::memcpy(to + x * b, run.data(), sizeof(run));
          }
        } else {
          for (std::int64_t x = 0; x < in_.width; ++x) {
            for (std::int64_t i = 0; i < b; ++i) {
              to[x * b + i] = in[offsets[i] + x * lanes] + (add_ ? add[x] : 0);
            }
          }
        }
      }
    }
  }

  BlockedLayout in_;
  std::int64_t out_channels_, block_;
  std::vector<std::int64_t> offsets_;  // [out channel][y][x of the block], within a blocked row
  bool runs_ = true;
  bool add_;
};

std::unique_ptr<Kernel> PrepareDepthToSpace(const PrepareContext& context) {
  if (context.inputs[0].layout == Layout::kBlocked) {
    return std::make_unique<BlockedDepthToSpaceKernel>(context);
  }
  if (context.inputs[0].layout == Layout::kChannelsLast) {
    return MakePixelDepthToSpace(context.node, context.inputs[0].shape, context.outputs[0].shape);
  }
  if (context.HasInput(kImage)) return std::make_unique<ReferenceFusedDepthToSpace>(context);
  return PrepareRowMajorDepthToSpace(context);
}

LayoutChoice DepthToSpaceLayouts(const LayoutContext& context) {
  const Layout in = context.inputs[0].layout;
  return {{in}, {in == Layout::kChannelsLast ? in : Layout::kRowMajor}};
}

LayoutChoice FusedDepthToSpaceLayouts(const LayoutContext&) {
  return {{Layout::kBlocked, Layout::kRowMajor}, {Layout::kRowMajor}};
}

std::unique_ptr<Kernel> PrepareSpaceToDepth(const PrepareContext& context) {
  const Shape& in = context.inputs[0].shape;
  const std::int64_t b = DepthToSpaceBlock(context.node), plane = in[2] * in[3];
  const std::array<std::int64_t, 6> dims{in[0], b, b, in[1], in[2] / b, in[3] / b};
  const std::array<std::int64_t, 6> strides{in[1] * plane, in[3], 1, plane, b * in[3], b};
  return MakeStridedCopyKernel("space_to_depth",
                               StridedCopy(context.inputs[0].dtype, dims, strides));
}

std::optional<SpatialField> SpaceToDepthField(const FieldContext& context, std::size_t) {
  const std::int64_t b = DepthToSpaceBlock(context.node);
  const AxisField axis{1, b, 0, static_cast<double>(b - 1)};
  return SpatialField{axis, axis};
}

}  // namespace

std::int64_t DepthToSpaceBlock(const OpNode& node) {
  const std::int64_t block = node.attributes.Int("blocksize", 0);
  Require(block >= 1 && block <= 1024, "blocksize ", block, " is not in [1, 1024]");
  return block;
}

Shape DepthToSpaceShape(const OpNode& node, const Shape& in) {
  const std::int64_t b = DepthToSpaceBlock(node);
  const std::string mode = node.attributes.String("mode", "DCR");
  Require(mode == "DCR" || mode == "CRD", "unknown mode '", mode, "'");
  Require(in.rank() == 4 && in[1] % (b * b) == 0, "shape ", in,
          " cannot be unfolded by a block of ", b);
  return {in[0], in[1] / (b * b), in[2] * b, in[3] * b};
}

// The image's pixels spread as those of the other input do.
std::optional<SpatialField> DepthToSpaceField(const FieldContext& context, std::size_t) {
  const std::int64_t b = DepthToSpaceBlock(context.node);
  const AxisField axis{b, 1, -static_cast<double>(b - 1) / static_cast<double>(b), 0};
  return SpatialField{axis, axis};
}

extern const OpDef kDepthToSpaceOp, kFusedDepthToSpaceOp, kSpaceToDepthOp;
const OpDef kDepthToSpaceOp = {
    .type = "DepthToSpace",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferDepthToSpace,
    .prepare = PrepareDepthToSpace,
    .layouts = DepthToSpaceLayouts,
    .field = DepthToSpaceField,
};
const OpDef kFusedDepthToSpaceOp = {
    .type = "FusedDepthToSpace",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = InferFusedDepthToSpace,
    .prepare = PrepareDepthToSpace,
    .layouts = FusedDepthToSpaceLayouts,
    .field = DepthToSpaceField,
    .internal = true,
};
const OpDef kSpaceToDepthOp = {
    .type = "SpaceToDepth",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferSpaceToDepth,
    .prepare = PrepareSpaceToDepth,
    .field = SpaceToDepthField,
};

}  // namespace tessera
