// InterleavePhases: what remains of a ConvTranspose once a convolution has computed the output
// pixels of all phases (places modulo the stride) as channels of their own. Engine-internal.
//
//   X [N, C, H, W], C = phases of the rows * phases of the columns * channels (and more, unused)
//   Y [N, M, H * rows - cropped, W * columns - cropped]
//   Y[n, m, y, x] = X[n, channel, (y + top) / rows, (x + left) / columns], where channel is
//     phase_stride * phase + channel_stride * m, phase = (y + top) % rows * columns +
//     (x + left) % columns
//
// Attributes: "channels" M, "phases" [rows, columns], "crop" [top, left, bottom, right],
// "phase_stride" and "channel_stride".
#include <algorithm>
#include <array>
#include <vector>

#include "ops/op.h"

namespace tessera {
namespace {

struct Phases {
  explicit Phases(const OpNode& node)
      : channels(node.attributes.Int("channels", 0)),
        phase_stride(node.attributes.Int("phase_stride", 0)),
        channel_stride(node.attributes.Int("channel_stride", 0)) {
    const std::vector<std::int64_t> counts = node.attributes.Ints("phases");
    const std::vector<std::int64_t> crop = node.attributes.Ints("crop");
    Require(counts.size() == 2 && crop.size() == 4 && channels > 0, "attributes are missing");
    for (std::size_t a = 0; a < 2; ++a) {
      count[a] = counts[a];
      crop_begin[a] = crop[a];
      crop_end[a] = crop[a + 2];
    }
  }
  std::int64_t Out(std::size_t axis, std::int64_t in) const {
    return in * count[axis] - crop_begin[axis] - crop_end[axis];
  }
  // Input channel of output channel m.
  std::int64_t Channel(std::int64_t m, std::int64_t row_phase, std::int64_t column_phase) const {
    return (row_phase * count[1] + column_phase) * phase_stride + m * channel_stride;
  }

  std::int64_t channels, phase_stride, channel_stride;
  std::array<std::int64_t, 2> count{}, crop_begin{}, crop_end{};  // rows, columns
};

void InferInterleavePhases(const InferContext& context) {
  const TensorInfo& x = context.Input(0);
  const Phases p(context.node);
  Require(x.dtype == DType::kFloat32 && x.shape.rank() == 4, "X is ", x.dtype, " ", x.shape);
  Require(p.Channel(p.channels - 1, p.count[0] - 1, p.count[1] - 1) < x.shape[1], "X ", x.shape,
          " has too few channels");
  const std::int64_t height = p.Out(0, x.shape[2]), width = p.Out(1, x.shape[3]);
  Require(height >= 1 && width >= 1, "nothing is left of X ", x.shape);
  context.SetOutput(0, x.dtype, {x.shape[0], p.channels, height, width});
}

// One output channel at a time, from any layout to row-major.
class PlanarInterleave final : public Kernel {
 public:
  explicit PlanarInterleave(const PrepareContext& context)
      : p_(context.node),
        in_(context.inputs[0].shape),
        out_(context.outputs[0].shape),
        blocked_(in_),
        from_blocked_(context.inputs[0].layout == Layout::kBlocked) {}

  std::string_view name() const override {
    return from_blocked_ ? "interleave_phases_blocked_in" : "interleave_phases";
  }
  void Run(const RunContext& context) const override {
    const float* in = context.inputs[0].data<const float>();
    float* out = context.outputs[0].data<float>();
    const std::int64_t tasks = (out_[2] + kRows - 1) / kRows;
    context.parallel.For(out_[0] * out_[1] * tasks, [&](std::int64_t task, int) {
      const std::int64_t plane = task / tasks, first = task % tasks * kRows;
      for (std::int64_t y = first; y < std::min(out_[2], first + kRows); ++y) {
        RunRow(in, plane / out_[1], plane % out_[1], y, out + (plane * out_[2] + y) * out_[3]);
      }
    });
  }

 private:
  static constexpr std::int64_t kRows = 16;  // of the output that are worth a task

  void RunRow(const float* in, std::int64_t n, std::int64_t m, std::int64_t y, float* out) const {
    const std::int64_t row = y + p_.crop_begin[0], phases = p_.count[1];
    for (std::int64_t x = 0; x < std::min(phases, out_[3]); ++x) {
      const std::int64_t column = x + p_.crop_begin[1];
      const std::int64_t c = p_.Channel(m, row % p_.count[0], column % phases);
      const std::int64_t source_row = row / p_.count[0], source_column = column / phases;
      if (from_blocked_) {
        Spread(in + n * blocked_.image_stride + c / blocked_.lanes * blocked_.plane_stride +
                   source_row * blocked_.row_stride + source_column * blocked_.lanes +
                   c % blocked_.lanes,
               blocked_.lanes, x, out);
      } else {
        Spread(in + ((n * in_[1] + c) * in_[2] + source_row) * in_[3] + source_column, 1, x, out);
      }
    }
  }

  void Spread(const float* in, std::int64_t step, std::int64_t x, float* out) const {
    for (; x < out_[3]; x += p_.count[1], in += step) out[x] = *in;
  }

  Phases p_;
  Shape in_, out_;
  BlockedLayout blocked_;
  bool from_blocked_;
};

// Whole pixels of channel blocks, NCHWc to NCHWc.
template <int kLanes>
class BlockedInterleave final : public Kernel {
 public:
  explicit BlockedInterleave(const PrepareContext& context)
      : p_(context.node), in_(context.inputs[0].shape), out_(context.outputs[0].shape) {}

  std::string_view name() const override { return "interleave_phases_blocked"; }
  void Run(const RunContext& context) const override {
    const float* in = context.inputs[0].data<const float>();
    float* out = context.outputs[0].data<float>();
    context.parallel.For(out_.images * out_.blocks * out_.height, [&](std::int64_t task, int) {
      const std::int64_t y = task % out_.height, plane = task / out_.height;
      const std::int64_t n = plane / out_.blocks, block = plane % out_.blocks;
      RunRow(in + n * in_.image_stride, block, y + p_.crop_begin[0],
             out + n * out_.image_stride + block * out_.plane_stride + y * out_.row_stride);
    });
  }

 private:
  struct Pixel {
    float values[kLanes];
  };

  void RunRow(const float* in, std::int64_t block, std::int64_t row, float* out) const {
    auto* to = reinterpret_cast<Pixel*>(out);
    const std::int64_t phases = p_.count[1];
    for (std::int64_t x = 0; x < std::min(phases, out_.width); ++x) {
      const std::int64_t column = x + p_.crop_begin[1];
      const std::int64_t c = p_.Channel(block * kLanes, row % p_.count[0], column % phases);
      const auto* from = reinterpret_cast<const Pixel*>(in + c / kLanes * in_.plane_stride +
                                                        row / p_.count[0] * in_.row_stride) +
                         column / phases;
      for (std::int64_t i = x; i < out_.width; i += phases) to[i] = *from++;
    }
  }

  Phases p_;
  BlockedLayout in_, out_;
};

bool KeepsBlocks(const Phases& p, int lanes) {
  return p.channel_stride == 1 && p.phase_stride % lanes == 0;
}

LayoutChoice InterleavePhasesLayouts(const LayoutContext& context) {
  const Layout in = context.inputs[0].layout;
  if (in != Layout::kBlocked) return {};
  const int lanes = BlockedLayout(context.inputs[0].shape).lanes;
  return {{in}, {KeepsBlocks(Phases(context.node), lanes) ? in : Layout::kRowMajor}};
}

std::unique_ptr<Kernel> PrepareInterleavePhases(const PrepareContext& context) {
  if (context.outputs[0].layout == Layout::kRowMajor) {
    return std::make_unique<PlanarInterleave>(context);
  }
  switch (BlockedLayout(context.inputs[0].shape).lanes) {
    case 1:
      return std::make_unique<BlockedInterleave<1>>(context);
    case 4:
      return std::make_unique<BlockedInterleave<4>>(context);
    case 8:
      return std::make_unique<BlockedInterleave<8>>(context);
    default:
      return std::make_unique<BlockedInterleave<16>>(context);
  }
}

std::optional<SpatialField> InterleavePhasesField(const FieldContext& context, std::size_t) {
  const Phases p(context.node);
  SpatialField field;
  for (std::size_t a = 0; a < 2; ++a) {
    const auto count = static_cast<double>(p.count[a]), crop = static_cast<double>(p.crop_begin[a]);
    field[a] = {p.count[a], 1, (crop - count + 1) / count, crop / count};
  }
  return field;
}

}  // namespace

extern const OpDef kInterleavePhasesOp;
const OpDef kInterleavePhasesOp = {
    .type = "InterleavePhases",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferInterleavePhases,
    .prepare = PrepareInterleavePhases,
    .layouts = InterleavePhasesLayouts,
    .field = InterleavePhasesField,
    .internal = true,
};

}  // namespace tessera
