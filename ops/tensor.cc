#include "ops/tensor.h"

#include <bit>
#include <cstring>

#include "ops/error.h"
#include "simd/cpu_target.h"

namespace tessera {

std::size_t SizeOf(DType type) {
  switch (type) {
    case DType::kFloat64:
    case DType::kInt64:
    case DType::kUint64:
      return 8;
    case DType::kFloat32:
    case DType::kInt32:
    case DType::kUint32:
      return 4;
    case DType::kFloat16:
    case DType::kInt16:
    case DType::kUint16:
      return 2;
    case DType::kInt8:
    case DType::kUint8:
    case DType::kBool:
      return 1;
  }
  return 0;
}

const char* Name(DType type) {
  switch (type) {
    case DType::kFloat32:
      return "float32";
    case DType::kFloat16:
      return "float16";
    case DType::kFloat64:
      return "float64";
    case DType::kInt8:
      return "int8";
    case DType::kInt16:
      return "int16";
    case DType::kInt32:
      return "int32";
    case DType::kInt64:
      return "int64";
    case DType::kUint8:
      return "uint8";
    case DType::kUint16:
      return "uint16";
    case DType::kUint32:
      return "uint32";
    case DType::kUint64:
      return "uint64";
    case DType::kBool:
      return "bool";
  }
  return "?";
}

std::optional<DType> DTypeFromOnnx(std::int64_t type) {
  switch (type) {
    case 1:
      return DType::kFloat32;
    case 2:
      return DType::kUint8;
    case 3:
      return DType::kInt8;
    case 4:
      return DType::kUint16;
    case 5:
      return DType::kInt16;
    case 6:
      return DType::kInt32;
    case 7:
      return DType::kInt64;
    case 9:
      return DType::kBool;
    case 10:
      return DType::kFloat16;
    case 11:
      return DType::kFloat64;
    case 12:
      return DType::kUint32;
    case 13:
      return DType::kUint64;
    default:
      return std::nullopt;
  }
}

float HalfToFloat(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1Fu;
  const std::uint32_t mantissa = half & 0x3FFu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  }
  const float subnormal = static_cast<float>(mantissa) * 0x1p-24f;
  return sign ? -subnormal : subnormal;
}

std::uint16_t FloatToHalf(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<std::uint16_t>(sign | 0x7E00u);   // NaN
  if (magnitude >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7C00u);  // >= 65536
  if (magnitude < 0x38800000u) {
    // Subnormal half: adding 0.5 puts the unit of 2^-24 at the last bit of a float, and the
    // addition rounds to nearest even.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000u));
  }
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xFFFu + odd) >> 13));
}

Shape::Shape(std::span<const std::int64_t> dims) {
  for (std::int64_t d : dims) PushBack(d);
}

void Shape::PushBack(std::int64_t dim) {
  Require(rank_ < kMaxRank, "a tensor of more than ", kMaxRank, " dimensions is not supported");
  Require(dim >= 0, "negative dimension ", dim);
  dims_[static_cast<std::size_t>(rank_++)] = dim;
}

std::int64_t Shape::NumElements() const { return NumElements(0, rank_); }

std::int64_t Shape::NumElements(int first, int last) const {
  constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;
  std::int64_t product = 1;
  bool empty = false;
  for (int i = first; i < last; ++i) {
    if ((*this)[i] == 0) {
      empty = true;
      continue;
    }
    Require((*this)[i] <= kMaxElements / product, "tensor ", *this, " is too large");
    product *= (*this)[i];
  }
  return empty ? 0 : product;
}

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ && std::equal(begin(), end(), other.begin());
}

std::string ToString(const Shape& shape) {
  if (shape.rank() == 0) return "scalar";
  std::string out;
  for (std::int64_t d : shape) {
    if (!out.empty()) out += 'x';
    out += std::to_string(d);
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << ToString(shape); }
std::ostream& operator<<(std::ostream& out, DType type) { return out << Name(type); }

std::array<std::int64_t, Shape::kMaxRank> RowMajorStrides(const Shape& shape) {
  std::array<std::int64_t, Shape::kMaxRank> strides{};
  std::int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[static_cast<std::size_t>(i)] = stride;
    stride *= shape[i];
  }
  return strides;
}

Shape BroadcastShapes(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape out;
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank()), ib = i - (rank - b.rank());
    const std::int64_t da = ia < 0 ? 1 : a[ia], db = ib < 0 ? 1 : b[ib];
    Require(da == db || da == 1 || db == 1, "shapes ", a, " and ", b, " cannot be broadcast");
    out.PushBack(da == 1 ? db : da);
  }
  return out;
}

int NormalizeAxis(std::int64_t axis, int rank) {
  Require(axis >= -rank && axis < rank, "axis ", axis, " is out of range for rank ", rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

BlockedLayout::BlockedLayout(const Shape& nchw)
    : lanes(FloatLanes()),
      images(nchw[0]),
      channels(nchw[1]),
      height(nchw[2]),
      width(nchw[3]),
      blocks((channels + lanes - 1) / lanes) {
  constexpr std::int64_t kPageFloats = 4096 / sizeof(float);
  constexpr std::int64_t kLineFloats = kAlignment / sizeof(float);
  row_stride = static_cast<std::int64_t>(
      RoundUp(static_cast<std::size_t>(width * lanes), static_cast<std::size_t>(kLineFloats)));
  if (row_stride % kPageFloats == 0) row_stride += kLineFloats;
  if (width == 1 && height == 1) row_stride = lanes;
  plane_stride = row_stride * height;
  if (plane_stride % kPageFloats == 0) plane_stride += kLineFloats;
  image_stride = plane_stride * blocks;
}

ChannelsLastLayout::ChannelsLastLayout(const Shape& nchw)
    : images(nchw[0]),
      channels(nchw[1]),
      height(nchw[2]),
      width(nchw[3]),
      pixel_stride(PixelStride(channels)),
      row_stride(width * pixel_stride),
      image_stride(height * row_stride) {}

std::int64_t ChannelsLastLayout::PixelStride(std::int64_t channels) {
  return channels <= 4 ? 4 : (channels + 15) / 16 * 16;
}

std::size_t StorageBytes(DType type, const Shape& shape, Layout layout) {
  if (layout == Layout::kChannelsLast) {
    return static_cast<std::size_t>(ChannelsLastLayout(shape).NumBytes());
  }
  const auto elements =
      layout == Layout::kBlocked ? BlockedLayout(shape).NumFloats() : shape.NumElements();
  return static_cast<std::size_t>(elements) * SizeOf(type);
}

Tensor::Tensor(DType dtype, const Shape& shape, Layout layout)
    // At least one byte, so that an empty tensor is still "present".
    : buffer_(std::max<std::size_t>(1, StorageBytes(dtype, shape, layout))),
      view_{dtype, layout, shape, buffer_.data()} {}

Tensor Tensor::Clone() const {
  if (!view_.present()) return {};
  Tensor copy(dtype(), shape(), layout());
  std::memcpy(copy.view_.bytes, view_.bytes, bytes());
  return copy;
}

namespace {

template <typename T, typename Out>
void Append(const TensorView& t, std::vector<Out>& out) {
  const T* p = t.data<T>();
  const std::int64_t n = t.size();
  for (std::int64_t i = 0; i < n; ++i) out.push_back(static_cast<Out>(p[i]));
}

}  // namespace

std::vector<std::int64_t> ToInt64s(const TensorView& t) {
  std::vector<std::int64_t> out;
  switch (t.dtype) {
    case DType::kInt64:
      Append<std::int64_t>(t, out);
      break;
    case DType::kInt32:
      Append<std::int32_t>(t, out);
      break;
    case DType::kInt16:
      Append<std::int16_t>(t, out);
      break;
    case DType::kInt8:
      Append<std::int8_t>(t, out);
      break;
    case DType::kUint8:
      Append<std::uint8_t>(t, out);
      break;
    case DType::kUint16:
      Append<std::uint16_t>(t, out);
      break;
    case DType::kUint32:
      Append<std::uint32_t>(t, out);
      break;
    case DType::kBool:
      Append<std::uint8_t>(t, out);
      break;
    default:
      throw Error(StrCat("wanted an integer tensor, got ", t.dtype));
  }
  return out;
}

std::vector<float> ToFloats(const TensorView& t) {
  std::vector<float> out;
  switch (t.dtype) {
    case DType::kFloat32:
      Append<float>(t, out);
      break;
    case DType::kFloat64:
      Append<double>(t, out);
      break;
    case DType::kFloat16: {
      const auto* p = t.data<std::uint16_t>();
      const std::int64_t n = t.size();
      for (std::int64_t i = 0; i < n; ++i) out.push_back(HalfToFloat(p[i]));
      break;
    }
    default:
      throw Error(StrCat("wanted a float tensor, got ", t.dtype));
  }
  return out;
}

}  // namespace tessera
