// Convolution as the specification writes it: plain loops, double precision, row-major.
#include <array>
#include <utility>

#include "ops/conv.h"

namespace tessera {
namespace {

double ToDouble(float x) { return x; }
double ToDouble(double x) { return x; }
double ToDouble(std::uint16_t half) { return HalfToFloat(half); }

void Store(double value, float* out) { *out = static_cast<float>(value); }
void Store(double value, double* out) { *out = value; }
void Store(double value, std::uint16_t* out) { *out = FloatToHalf(static_cast<float>(value)); }

// Calls f(T{}) with the C++ type that holds elements of `type`.
template <typename F>
void WithFloatType(DType type, F&& f) {
  switch (type) {
    case DType::kFloat32:
      return f(float{});
    case DType::kFloat64:
      return f(double{});
    case DType::kFloat16:
      return f(std::uint16_t{});
    default:
      throw Error(StrCat("wanted a float tensor, got ", type));
  }
}

// Bias, slope or addend: few accesses, so the type is looked at each time.
double ElementOr(double fallback, std::span<const TensorView> inputs, std::size_t input,
                 std::int64_t i) {
  if (input >= inputs.size() || !inputs[input].present()) return fallback;
  const TensorView& t = inputs[input];
  double value = 0;
  WithFloatType(t.dtype, [&](auto type) { value = ToDouble(t.data<decltype(type)>()[i]); });
  return value;
}

class ReferenceConv final : public Kernel {
 public:
  explicit ReferenceConv(const ConvParams& params) : p_(params) {}

  std::string_view name() const override { return "conv_reference"; }
  double Flops() const override { return p_.Flops(); }

  void Run(const RunContext& context) const override {
    context.parallel.For(p_.batch * p_.out_channels, [&](std::int64_t i, int) {
      WithFloatType(context.inputs[0].dtype, [&](auto x) {
        WithFloatType(context.inputs[1].dtype, [&](auto w) {
          RunPlane<decltype(x), decltype(w)>(context, i / p_.out_channels, i % p_.out_channels);
        });
      });
    });
  }

 private:
  template <typename X, typename W>
  void RunPlane(const RunContext& context, std::int64_t n, std::int64_t m) const {
    const std::int64_t group_in = p_.in_channels / p_.groups;
    const std::int64_t group = m / (p_.out_channels / p_.groups);
    const std::int64_t taps = p_.kernel_h * p_.kernel_w;
    const std::int64_t in_plane = p_.in_height * p_.in_width;
    const X* x = context.inputs[0].data<X>() + (n * p_.in_channels + group * group_in) * in_plane;
    const W* w = context.inputs[1].data<W>() + m * group_in * taps;
    X* out = context.outputs[0].data<X>();

    const bool one_slope = context.inputs.size() > kConvSlope &&
                           context.inputs[kConvSlope].present() &&
                           context.inputs[kConvSlope].size() == 1;
    const double bias = ElementOr(0, context.inputs, kConvBias, m);
    const double slope = ElementOr(1, context.inputs, kConvSlope, one_slope ? 0 : m);

    std::int64_t o = (n * p_.out_channels + m) * p_.out_height * p_.out_width;
    for (std::int64_t oy = 0; oy < p_.out_height; ++oy) {
      for (std::int64_t ox = 0; ox < p_.out_width; ++ox, ++o) {
        double sum = bias;
        for (std::int64_t c = 0; c < group_in; ++c) {
          for (std::int64_t kh = 0; kh < p_.kernel_h; ++kh) {
            const std::int64_t y = oy * p_.stride_h - p_.pad_top + kh * p_.dilation_h;
            if (y < 0 || y >= p_.in_height) continue;
            for (std::int64_t kw = 0; kw < p_.kernel_w; ++kw) {
              const std::int64_t xx = ox * p_.stride_w - p_.pad_left + kw * p_.dilation_w;
              if (xx < 0 || xx >= p_.in_width) continue;
              sum += ToDouble(x[c * in_plane + y * p_.in_width + xx]) *
                     ToDouble(w[c * taps + kh * p_.kernel_w + kw]);
            }
          }
        }
        const double addend = ElementOr(0, context.inputs, kConvAddend, o);
        Store(ApplyEpilogue(p_.epilogue, sum, slope, addend), out + o);
      }
    }
  }

  ConvParams p_;
};

}  // namespace

std::unique_ptr<Kernel> MakeReferenceConv(const ConvParams& params) {
  return std::make_unique<ReferenceConv>(params);
}

}  // namespace tessera
