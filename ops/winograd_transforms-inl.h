// Winograd's transforms of weights, inputs and outputs (see winograd.h), tile by tile. Included
// once per target.
#if defined(TESSERA_OPS_WINOGRAD_TRANSFORMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_OPS_WINOGRAD_TRANSFORMS_INL_H_
#undef TESSERA_OPS_WINOGRAD_TRANSFORMS_INL_H_
#else
#define TESSERA_OPS_WINOGRAD_TRANSFORMS_INL_H_
#endif

#include <array>
#include <cstddef>

#include "hwy/highway.h"
#include "ops/winograd.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE::winograd {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using VF = hn::Vec<F32>;
inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(F32()));

// ---------------------------------------------------------------------------------------------
// Transforms of one column or row, for kLanes channels at a time.
//
// With z = x^2 and the points p_i, the rows of B^T are the coefficients of
//   prod_j (z - p_j^2)                                    for the point 0,
//   x (x +- p_i) prod_{j != i} (z - p_j^2)                for the points +-p_i,
//   x prod_j (z - p_j^2)                                  for infinity,
// so that even and odd elements are combined apart and shared by +p and -p. Column k of A holds
// the k-th powers of the points.

template <int kM>
struct TransformConstants {
  static constexpr int kPairs = kM / 2;
  float point[kPairs];
  float power[kPairs][kM];
  // Coefficients, lowest first, of the products above; the highest is 1 and left out.
  float all[kPairs];
  float others[kPairs][kPairs - 1];
  // Factors of G's rows: 1 / prod_j (p - p_j) over all finite points p_j but p itself, which +p and
  // -p share, and the same for the point 0.
  float weight[kPairs];
  float weight_zero;
};

template <int kM>
constexpr TransformConstants<kM> MakeTransformConstants() {
  constexpr int kPairs = kM / 2;
  const auto& points = kWinogradPoints<kM>;
  const auto product = [&](int skipped) {
    std::array<double, kPairs + 1> c{1.0};
    for (int j = 0, degree = 0; j < kPairs; ++j) {
      if (j == skipped) continue;
      ++degree;
      for (int k = degree; k >= 0; --k) {
        c[k] = (k > 0 ? c[k - 1] : 0.0) - points[j] * points[j] * (k < degree ? c[k] : 0.0);
      }
    }
    return c;
  };
  TransformConstants<kM> out{};
  for (int k = 0; k < kPairs; ++k) out.all[k] = static_cast<float>(product(-1)[k]);
  for (int i = 0; i < kPairs; ++i) {
    out.point[i] = static_cast<float>(points[i]);
    double power = 1;
    for (int k = 0; k < kM; ++k, power *= points[i]) out.power[i][k] = static_cast<float>(power);
    for (int k = 0; k + 1 < kPairs; ++k) out.others[i][k] = static_cast<float>(product(i)[k]);
    double divisor = 2 * points[i] * points[i];  // (p - 0) (p + p)
    for (int j = 0; j < kPairs; ++j) {
      if (j != i) divisor *= points[i] * points[i] - points[j] * points[j];
    }
    out.weight[i] = static_cast<float>(1 / divisor);
  }
  out.weight_zero = static_cast<float>(1 / product(-1)[0]);
  return out;
}

template <int kM>
inline constexpr TransformConstants<kM> kTransform = MakeTransformConstants<kM>();

// y = G x, where row p of G is (1, p, p^2) times the factor of the point.
template <int kM>
HWY_INLINE void TransformKernel(const VF (&x)[3], VF (&y)[kM + 2]) {
  constexpr const auto& c = kTransform<kM>;
  const F32 d;
  y[0] = hn::Mul(hn::Set(d, c.weight_zero), x[0]);
  y[kM + 1] = x[2];
  HWY_UNROLL(8) for (int i = 0; i < kM / 2; ++i) {
    const VF even = hn::Mul(hn::Set(d, c.weight[i]),
                            hn::MulAdd(hn::Set(d, c.point[i] * c.point[i]), x[2], x[0]));
    const VF odd = hn::Mul(hn::Set(d, c.weight[i] * c.point[i]), x[1]);
    y[1 + 2 * i] = hn::Add(even, odd);
    y[2 + 2 * i] = hn::Sub(even, odd);
  }
}

// y = B^T x.
template <int kM>
HWY_INLINE void TransformInput(const VF (&x)[kM + 2], VF (&y)[kM + 2]) {
  constexpr const auto& c = kTransform<kM>;
  constexpr int kPairs = kM / 2;
  const F32 d;
  VF zero = x[kM], infinity = x[kM + 1];
  HWY_UNROLL(8) for (int k = kPairs - 1; k >= 0; --k) {
    zero = hn::MulAdd(hn::Set(d, c.all[k]), x[2 * k], zero);
    infinity = hn::MulAdd(hn::Set(d, c.all[k]), x[2 * k + 1], infinity);
  }
  y[0] = zero;
  y[kM + 1] = infinity;
  HWY_UNROLL(8) for (int i = 0; i < kPairs; ++i) {
    VF even = x[kM], odd = x[kM - 1];
    HWY_UNROLL(8) for (int k = kPairs - 2; k >= 0; --k) {
      even = hn::MulAdd(hn::Set(d, c.others[i][k]), x[2 * k + 2], even);
      odd = hn::MulAdd(hn::Set(d, c.others[i][k]), x[2 * k + 1], odd);
    }
    y[1 + 2 * i] = hn::MulAdd(hn::Set(d, c.point[i]), odd, even);
    y[2 + 2 * i] = hn::NegMulAdd(hn::Set(d, c.point[i]), odd, even);
  }
}

// y = A^T x.
template <int kM>
HWY_INLINE void TransformOutput(const VF (&x)[kM + 2], VF (&y)[kM]) {
  constexpr const auto& c = kTransform<kM>;
  constexpr int kPairs = kM / 2;
  const F32 d;
  VF sum[kPairs], difference[kPairs];
  HWY_UNROLL(8) for (int i = 0; i < kPairs; ++i) {
    sum[i] = hn::Add(x[1 + 2 * i], x[2 + 2 * i]);
    difference[i] = hn::Sub(x[1 + 2 * i], x[2 + 2 * i]);
  }
  y[0] = x[0];
  HWY_UNROLL(8) for (int i = 0; i < kPairs; ++i) y[0] = hn::Add(y[0], sum[i]);
  HWY_UNROLL(8) for (int k = 1; k < kM; ++k) {
    const auto& terms = k % 2 ? difference : sum;
    y[k] = k == kM - 1 ? hn::MulAdd(hn::Set(d, c.power[0][k]), terms[0], x[kM + 1])
                       : hn::Mul(hn::Set(d, c.power[0][k]), terms[0]);
    HWY_UNROLL(8) for (int i = 1; i < kPairs; ++i) {
      y[k] = hn::MulAdd(hn::Set(d, c.power[i][k]), terms[i], y[k]);
    }
  }
}

// ---------------------------------------------------------------------------------------------
// Transforms of the weights of one channel, and of one tile.

// `w` holds 3 x 3 vectors.
template <int kM>
HWY_INLINE void TransformKernelTile(const float* HWY_RESTRICT w, float* HWY_RESTRICT u,
                                    std::ptrdiff_t u_stride) {
  constexpr int kN = kM + 2;
  const F32 d;
  HWY_ALIGN float half_done[kN * 3 * kLanes];
  VF x[3], y[kN];
  HWY_UNROLL(3) for (int col = 0; col < 3; ++col) {
    HWY_UNROLL(3) for (int i = 0; i < 3; ++i) x[i] = hn::Load(d, w + (i * 3 + col) * kLanes);
    TransformKernel<kM>(x, y);
    HWY_UNROLL(8) for (int i = 0; i < kN; ++i) {
      hn::Store(y[i], d, half_done + (i * 3 + col) * kLanes);
    }
  }
  for (int row = 0; row < kN; ++row) {
    HWY_UNROLL(3) for (int i = 0; i < 3; ++i) {
      x[i] = hn::Load(d, half_done + (row * 3 + i) * kLanes);
    }
    TransformKernel<kM>(x, y);
    HWY_UNROLL(8) for (int i = 0; i < kN; ++i) hn::Store(y[i], d, u + (row * kN + i) * u_stride);
  }
}

template <int kM>
HWY_INLINE void TransformInputTile(const float* HWY_RESTRICT in, std::ptrdiff_t row_stride,
                                   float* HWY_RESTRICT v, std::ptrdiff_t v_stride) {
  constexpr int kN = kM + 2;
  const F32 d;
  HWY_ALIGN float half_done[kN * kN * kLanes];
  VF x[kN], y[kN];
  for (int col = 0; col < kN; ++col) {
    HWY_UNROLL(8) for (int i = 0; i < kN; ++i) {
      x[i] = hn::LoadU(d, in + i * row_stride + col * kLanes);
    }
    TransformInput<kM>(x, y);
    HWY_UNROLL(8) for (int i = 0; i < kN; ++i) {
      hn::Store(y[i], d, half_done + (i * kN + col) * kLanes);
    }
  }
  for (int row = 0; row < kN; ++row) {
    HWY_UNROLL(8) for (int i = 0; i < kN; ++i) {
      x[i] = hn::Load(d, half_done + (row * kN + i) * kLanes);
    }
    TransformInput<kM>(x, y);
    HWY_UNROLL(8) for (int i = 0; i < kN; ++i) hn::Store(y[i], d, v + (row * kN + i) * v_stride);
  }
}

// `addend`, where the epilogue has one, has the row stride of `out`.
template <int kM, class Finisher>
HWY_NOINLINE void TransformOutputTile(const float* HWY_RESTRICT m, std::ptrdiff_t m_stride, VF bias,
                                      VF slope, const Finisher& finish, const float* addend,
                                      float* out, std::ptrdiff_t row_stride) {
  constexpr int kN = kM + 2;
  const F32 d;
  HWY_ALIGN float half_done[kM * kN * kLanes];
  VF x[kN], y[kM];
  for (int col = 0; col < kN; ++col) {
    HWY_UNROLL(8) for (int i = 0; i < kN; ++i) x[i] = hn::Load(d, m + (i * kN + col) * m_stride);
    TransformOutput<kM>(x, y);
    HWY_UNROLL(8) for (int i = 0; i < kM; ++i) {
      hn::Store(y[i], d, half_done + (i * kN + col) * kLanes);
    }
  }
  for (int row = 0; row < kM; ++row) {
    HWY_UNROLL(8) for (int i = 0; i < kN; ++i) {
      x[i] = hn::Load(d, half_done + (row * kN + i) * kLanes);
    }
    TransformOutput<kM>(x, y);
    HWY_UNROLL(8) for (int i = 0; i < kM; ++i) {
      const std::ptrdiff_t pixel = row * row_stride + i * kLanes;
      hn::StoreU(finish(d, hn::Add(y[i], bias), slope, addend ? addend + pixel : nullptr), d,
                 out + pixel);
    }
  }
}

}  // namespace tessera::HWY_NAMESPACE::winograd
HWY_AFTER_NAMESPACE();

#endif  // include guard
