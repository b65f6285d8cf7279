// Convolution, transposed or not, as the specification writes it: plain loops, double precision,
// row-major.
#include <algorithm>
#include <array>
#include <utility>

#include "ops/conv.h"
#include "ops/elements.h"

namespace tessera {
namespace {

template <typename T>
double ToDouble(T value) {
  return static_cast<double>(static_cast<ComputeType<T>>(value));
}

// Bias, slope or addend: few accesses, so the type is looked at each time.
double ElementOr(double fallback, std::span<const TensorView> inputs, std::size_t input,
                 std::int64_t i) {
  if (input >= inputs.size() || !inputs[input].present()) return fallback;
  const TensorView& t = inputs[input];
  return Dispatch(t.dtype, FloatTypes(),
                  [&](auto tag) { return ToDouble(t.data<typename decltype(tag)::type>()[i]); });
}

class ReferenceConv final : public Kernel {
 public:
  explicit ReferenceConv(ConvNd conv) : conv_(std::move(conv)) {
    for (std::size_t a = conv_.axes.size(); a-- > 0;) {
      in_strides_[a] = in_plane_;
      kernel_strides_[a] = taps_;
      in_plane_ *= conv_.axes[a].in;
      taps_ *= conv_.axes[a].kernel;
      out_plane_ *= conv_.axes[a].out;
    }
  }

  std::string_view name() const override {
    return conv_.transposed ? "conv_transpose_reference" : "conv_reference";
  }
  double Flops() const override { return conv_.Flops(); }

  void Run(const RunContext& context) const override {
    context.parallel.For(conv_.batch * conv_.out_channels, [&](std::int64_t i, int) {
      Dispatch(context.inputs[0].dtype, FloatTypes(), [&](auto x) {
        Dispatch(context.inputs[1].dtype, FloatTypes(), [&](auto w) {
          RunPlane<typename decltype(x)::type, typename decltype(w)::type>(
              context, i / conv_.out_channels, i % conv_.out_channels);
        });
      });
    });
  }

 private:
  // Output pixels that are summed up together: neighbours in a row.
  static constexpr std::int64_t kPixels = 64;
  struct Pixels {
    std::array<std::int64_t, Shape::kMaxRank> at;  // the first of them
    std::int64_t count;
    std::array<double, kPixels> sums;
  };

  template <typename X, typename W>
  void RunPlane(const RunContext& context, std::int64_t n, std::int64_t m) const {
    const std::int64_t group_in = conv_.in_channels / conv_.groups;
    const std::int64_t group_out = conv_.out_channels / conv_.groups, group = m / group_out;
    const X* x =
        context.inputs[0].data<const X>() + (n * conv_.in_channels + group * group_in) * in_plane_;
    // From one input channel to the next.
    const std::int64_t w_stride = conv_.transposed ? group_out * taps_ : taps_;
    const W* w =
        context.inputs[1].data<const W>() +
        (conv_.transposed ? group * group_in * group_out + m % group_out : m * group_in) * taps_;
    X* out = context.outputs[0].data<X>();

    const bool one_slope = context.inputs.size() > kConvSlope &&
                           context.inputs[kConvSlope].present() &&
                           context.inputs[kConvSlope].size() == 1;
    const double bias = ElementOr(0, context.inputs, kConvBias, m);
    const double slope = ElementOr(1, context.inputs, kConvSlope, one_slope ? 0 : m);

    const std::int64_t width = conv_.axes.back().out;
    const std::int64_t plane = (n * conv_.out_channels + m) * out_plane_;
    Pixels pixels{};
    for (std::int64_t first = 0; first < out_plane_; first += width) {
      std::int64_t rest = first / width;
      for (std::size_t a = conv_.axes.size() - 1; a-- > 0;) {
        pixels.at[a] = rest % conv_.axes[a].out;
        rest /= conv_.axes[a].out;
      }
      for (std::int64_t ox = 0; ox < width; ox += kPixels) {
        pixels.at[conv_.axes.size() - 1] = ox;
        pixels.count = std::min(kPixels, width - ox);
        std::fill_n(pixels.sums.begin(), pixels.count, bias);
        for (std::int64_t c = 0; c < group_in; ++c) {
          Add(x + c * in_plane_, w + c * w_stride, 0, pixels);
        }
        for (std::int64_t i = 0; i < pixels.count; ++i) {
          const std::int64_t o = plane + first + ox + i;
          const double addend = ElementOr(0, context.inputs, kConvAddend, o);
          const double value = ApplyEpilogue(
              conv_.epilogue, pixels.sums[static_cast<std::size_t>(i)], slope, addend);
          out[o] = static_cast<X>(static_cast<ComputeType<X>>(value));
        }
      }
    }
  }

  // All taps of axes from `a` on, with x and w at those of the axes before.
  template <typename X, typename W>
  void Add(const X* x, const W* w, std::size_t a, Pixels& pixels) const {
    const WindowAxis& axis = conv_.axes[a];
    const std::int64_t at = pixels.at[a];
    if (a + 1 == conv_.axes.size()) {
      return conv_.transposed ? AddTransposedRow(x, w, axis, at, pixels)
                              : AddRow(x, w, axis, at, pixels);
    }
    const auto next = [&](std::int64_t i, std::int64_t k) {
      Add(x + i * in_strides_[a], w + k * kernel_strides_[a], a + 1, pixels);
    };
    if (conv_.transposed) {
      for (std::int64_t k = 0; k < axis.kernel; ++k) {
        const std::int64_t distance = at + axis.pad_begin - k * axis.dilation;
        if (distance < 0) break;
        if (distance % axis.stride == 0 && distance / axis.stride < axis.in) {
          next(distance / axis.stride, k);
        }
      }
    } else {
      const std::int64_t first = axis.First(at), end = TapsBefore(axis.in, first, axis);
      for (std::int64_t k = TapsBefore(0, first, axis); k < end; ++k) {
        next(first + k * axis.dilation, k);
      }
    }
  }

  // Steps of the stride from 0 that stay below `distance`.
  static std::int64_t StepsBelow(std::int64_t distance, const WindowAxis& axis) {
    return distance <= 0 ? 0 : (distance + axis.stride - 1) / axis.stride;
  }

  template <typename X, typename W>
  static void AddRow(const X* x, const W* w, const WindowAxis& axis, std::int64_t at,
                     Pixels& pixels) {
    for (std::int64_t k = 0; k < axis.kernel; ++k) {
      const double weight = ToDouble(w[k]);
      const std::int64_t first = axis.First(at) + k * axis.dilation;  // of the input
      const std::int64_t end = std::min(pixels.count, StepsBelow(axis.in - first, axis));
      for (std::int64_t i = StepsBelow(-first, axis); i < end; ++i) {
        pixels.sums[static_cast<std::size_t>(i)] += ToDouble(x[first + i * axis.stride]) * weight;
      }
    }
  }

  template <typename X, typename W>
  static void AddTransposedRow(const X* x, const W* w, const WindowAxis& axis, std::int64_t at,
                               Pixels& pixels) {
    for (std::int64_t k = 0; k < axis.kernel; ++k) {
      const double weight = ToDouble(w[k]);
      const std::int64_t first = k * axis.dilation - axis.pad_begin - at;  // of the sums
      const std::int64_t end = std::min(axis.in, StepsBelow(pixels.count - first, axis));
      for (std::int64_t i = StepsBelow(-first, axis); i < end; ++i) {
        pixels.sums[static_cast<std::size_t>(first + i * axis.stride)] += ToDouble(x[i]) * weight;
      }
    }
  }

  ConvNd conv_;
  std::int64_t in_plane_ = 1, out_plane_ = 1, taps_ = 1;
  std::array<std::int64_t, Shape::kMaxRank> in_strides_{}, kernel_strides_{};
};

}  // namespace

std::unique_ptr<Kernel> MakeReferenceConv(const ConvNd& conv) {
  return std::make_unique<ReferenceConv>(conv);
}

std::unique_ptr<Kernel> MakeReferenceConv(const ConvParams& params) {
  return MakeReferenceConv(params.ToNd());
}

}  // namespace tessera
