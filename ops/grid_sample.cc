// GridSample: elements of a picture at places that a grid names.
// https://onnx.ai/onnx/operators/onnx__GridSample.html
//
//   X [N, C, spatial...], grid [N, out..., r] of r = X's spatial axes, last axis first, in [-1, 1]
//   Y [N, C, out...]
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <type_traits>

#include "ops/elements.h"
#include "ops/op.h"

namespace tessera {
namespace {

enum class Interpolation : std::uint8_t { kNearest, kLinear, kCubic };
enum class Padding : std::uint8_t { kZeros, kBorder, kReflection };

constexpr int kMaxAxes = 3;
// Taps of one axis, and of all axes together.
constexpr int kMaxTaps = 4, kMaxPoints = 64;

struct SampleRule {
  Interpolation interpolation;
  Padding padding;
  bool align_corners;
};

SampleRule ReadSampleRule(const OpNode& node) {
  const Attributes& a = node.attributes;
  SampleRule rule{};
  // Opset 20 renamed the modes.
  const std::string mode = a.String("mode", node.opset < 20 ? "bilinear" : "linear");
  if (mode == "nearest") {
    rule.interpolation = Interpolation::kNearest;
  } else if (mode == (node.opset < 20 ? "bilinear" : "linear")) {
    rule.interpolation = Interpolation::kLinear;
  } else {
    Require(mode == (node.opset < 20 ? "bicubic" : "cubic"), "unknown mode '", mode, "'");
    rule.interpolation = Interpolation::kCubic;
  }
  const std::string padding = a.String("padding_mode", "zeros");
  Require(padding == "zeros" || padding == "border" || padding == "reflection",
          "unknown padding_mode '", padding, "'");
  rule.padding = padding == "zeros"    ? Padding::kZeros
                 : padding == "border" ? Padding::kBorder
                                       : Padding::kReflection;
  rule.align_corners = a.Int("align_corners", 0) != 0;
  return rule;
}

void InferGridSample(const InferContext& context) {
  const TensorInfo &x = context.Input(0), &grid = context.Input(1);
  RequireType(x.dtype, AllTypes());
  RequireType(grid.dtype, FloatTypes());
  ReadSampleRule(context.node);
  const int rank = x.shape.rank();
  if (context.node.opset < 20) {
    Require(rank == 4, "X has shape ", x.shape, " instead of [N, C, H, W]");
  } else {
    Require(rank >= 3 && rank - 2 <= kMaxAxes, "sampling over ", rank - 2,
            " spatial axes is not supported (X ", x.shape, ")");
  }
  Require(
      grid.shape.rank() == rank && grid.shape[0] == x.shape[0] && grid.shape[rank - 1] == rank - 2,
      "X ", x.shape, " and grid ", grid.shape, " do not fit together");
  Shape out{x.shape[0], x.shape[1]};
  for (int d = 1; d + 1 < rank; ++d) out.PushBack(grid.shape[d]);
  Require(out.NumElements() == 0 || x.shape.NumElements() > 0, "nothing to sample in X ", x.shape);
  context.SetOutput(0, x.dtype, out);
}

// Mirrors x at the borders of [low, high] until it is inside.
template <typename F>
F Reflect(F x, F low, F high) {
  const F length = high - low;
  if (x >= low && x <= high) return x;
  if (!(length > 0)) return low;
  const F distance = std::fmod(x < low ? low - x : x - high, 2 * length);
  const F back = distance <= length ? distance : 2 * length - distance;
  return x < low ? low + back : high - back;
}

// The taps of one axis for one output element.
template <typename F>
struct AxisTaps {
  int count = 0;
  std::array<std::int64_t, kMaxTaps> at;  // -1: outside of the picture, a zero
  std::array<F, kMaxTaps> weight;
};

template <typename F>
AxisTaps<F> TapsAt(const SampleRule& rule, F coordinate, std::int64_t size) {
  const F length = static_cast<F>(size);
  const F low = rule.align_corners ? F{0} : F{-0.5f};
  const F high = rule.align_corners ? length - 1 : length - F{0.5f};
  F x = rule.align_corners ? (coordinate + 1) / 2 * (length - 1)
                           : ((coordinate + 1) * length - 1) / 2;
  if (rule.interpolation == Interpolation::kNearest) x = std::nearbyint(x);
  if (!(x >= low && x <= high)) {
    // A cubic kernel's own taps are clamped instead: its weights change beyond the border.
    const bool clamps = rule.interpolation != Interpolation::kCubic;
    if (rule.padding == Padding::kBorder && clamps) x = std::clamp(x, F{0}, length - 1);
    if (rule.padding == Padding::kReflection) x = Reflect(x, low, high);
  }
  // Further away, and for no number at all, nothing but zeros or the edge is read.
  constexpr F kMargin = 4;
  x = std::isnan(x) ? -kMargin : std::clamp(x, -kMargin, length + kMargin);

  const auto floor = static_cast<std::int64_t>(std::floor(x));
  const F ratio = x - static_cast<F>(floor);
  AxisTaps<F> taps;
  std::int64_t first = floor;
  switch (rule.interpolation) {
    case Interpolation::kNearest:
      taps.count = 1;
      taps.weight[0] = 1;
      break;
    case Interpolation::kLinear:
      taps.count = 2;
      taps.weight[0] = 1 - ratio;
      taps.weight[1] = ratio;
      break;
    case Interpolation::kCubic: {  // Keys' kernel
      constexpr F a = F{-0.75f};
      const auto near = [](F d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
      const auto far = [](F d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
      first = floor - 1;
      taps.count = 4;
      taps.weight = {far(ratio + 1), near(ratio), near(1 - ratio), far(2 - ratio)};
      break;
    }
  }
  for (int k = 0; k < taps.count; ++k) {
    std::int64_t at = first + k;
    if (at < 0 || at >= size) {
      if (rule.padding == Padding::kZeros) {
        at = -1;
      } else if (rule.padding == Padding::kBorder) {
        at = std::clamp<std::int64_t>(at, 0, size - 1);
      } else {
        at = std::clamp<std::int64_t>(
            static_cast<std::int64_t>(Reflect(static_cast<F>(at), low, high)), 0, size - 1);
      }
    }
    taps.at[static_cast<std::size_t>(k)] = at;
  }
  return taps;
}

// T: of X. G: of the grid, in whose precision places are computed.
template <typename T, typename G>
class GridSampleKernel final : public Kernel {
 public:
  explicit GridSampleKernel(const PrepareContext& context)
      : rule_(ReadSampleRule(context.node)),
        x_(context.inputs[0].shape),
        axes_(x_.rank() - 2),
        plane_(x_.NumElements(2, x_.rank())),
        out_plane_(context.outputs[0].shape.NumElements(2, x_.rank())) {}

  std::string_view name() const override { return "grid_sample"; }
  void Run(const RunContext& context) const override {
    const T* x = context.inputs[0].data<const T>();
    const G* grid = context.inputs[1].data<const G>();
    T* out = context.outputs[0].data<T>();
    const std::int64_t channels = x_[1];
    const std::int64_t tasks = (out_plane_ + kGrain - 1) / kGrain;
    context.parallel.For(x_[0] * tasks, [&](std::int64_t task, int) {
      const std::int64_t n = task / tasks, begin = task % tasks * kGrain;
      const std::int64_t end = std::min(out_plane_, begin + kGrain);
      for (std::int64_t i = begin; i < end; ++i) {
        const Points points = PointsAt(grid + (n * out_plane_ + i) * axes_);
        for (std::int64_t c = 0; c < channels; ++c) {
          out[(n * channels + c) * out_plane_ + i] =
              Sample(x + (n * channels + c) * plane_, points);
        }
      }
    });
  }

 private:
  static constexpr std::int64_t kGrain = 256;  // places in the grid that are worth a task

  using F = ComputeType<G>;
  // Sums of integers and doubles in double precision.
  using Sum = std::conditional_t<std::is_same_v<ComputeType<T>, float>, float, double>;

  // Elements of a plane that make one element of the output.
  struct Points {
    int count = 0;
    std::array<std::int64_t, kMaxPoints> at;
    std::array<Sum, kMaxPoints> weight;
  };

  Points PointsAt(const G* place) const {
    Points points;
    points.count = 1;
    points.at[0] = 0;
    points.weight[0] = 1;
    // From the innermost axis outwards.
    std::int64_t stride = 1;
    for (int a = 0; a < axes_; ++a) {
      const std::int64_t size = x_[x_.rank() - 1 - a];
      const AxisTaps<F> taps = TapsAt(rule_, static_cast<F>(place[a]), size);
      Points next;
      for (int k = 0; k < taps.count; ++k) {
        const auto tap = static_cast<std::size_t>(k);
        if (taps.at[tap] < 0) continue;
        for (int p = 0; p < points.count; ++p) {
          const auto from = static_cast<std::size_t>(p), to = static_cast<std::size_t>(next.count);
          next.at[to] = points.at[from] + taps.at[tap] * stride;
          next.weight[to] = points.weight[from] * static_cast<Sum>(taps.weight[tap]);
          ++next.count;
        }
      }
      points = next;
      stride *= size;
    }
    return points;
  }

  T Sample(const T* plane, const Points& points) const {
    if (rule_.interpolation == Interpolation::kNearest) {
      return points.count == 0 ? T{} : plane[points.at[0]];
    }
    Sum sum = 0;
    for (int p = 0; p < points.count; ++p) {
      const auto i = static_cast<std::size_t>(p);
      sum += points.weight[i] * static_cast<Sum>(static_cast<ComputeType<T>>(plane[points.at[i]]));
    }
    // Saturates: the cubic kernel overshoots the range of integers.
    return static_cast<T>(ConvertElement<ComputeType<T>>(sum));
  }

  SampleRule rule_;
  Shape x_;
  int axes_;
  std::int64_t plane_, out_plane_;
};

std::unique_ptr<Kernel> PrepareGridSample(const PrepareContext& context) {
  return Dispatch(context.inputs[1].dtype, FloatTypes(), [&](auto grid) {
    return Dispatch(context.inputs[0].dtype, AllTypes(), [&](auto x) -> std::unique_ptr<Kernel> {
      return std::make_unique<
          GridSampleKernel<typename decltype(x)::type, typename decltype(grid)::type>>(context);
    });
  });
}

}  // namespace

extern const OpDef kGridSampleOp;
const OpDef kGridSampleOp = {
    .type = "GridSample",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = InferGridSample,
    .prepare = PrepareGridSample,
    .first_opset = 16,
};

}  // namespace tessera
