// Element types, shapes, memory layouts and tensors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "simd/aligned_buffer.h"

namespace tessera {

enum class DType : std::uint8_t {
  kFloat32,
  kFloat16,  // storage only: values are computed in float32
  kFloat64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kBool,  // one byte, 0 or 1
};

std::size_t SizeOf(DType type);
const char* Name(DType type);  // "float32", ...
// From the numbers of onnx.TensorProto.DataType, as models and Cast's attribute "to" use them;
// nullopt for types that are not supported (strings, complex numbers, ...).
std::optional<DType> DTypeFromOnnx(std::int64_t type);

// DType of a C++ element type.
template <typename T>
constexpr DType DTypeOf();
template <>
constexpr DType DTypeOf<float>() {
  return DType::kFloat32;
}
template <>
constexpr DType DTypeOf<double>() {
  return DType::kFloat64;
}
template <>
constexpr DType DTypeOf<std::int8_t>() {
  return DType::kInt8;
}
template <>
constexpr DType DTypeOf<std::int16_t>() {
  return DType::kInt16;
}
template <>
constexpr DType DTypeOf<std::int32_t>() {
  return DType::kInt32;
}
template <>
constexpr DType DTypeOf<std::int64_t>() {
  return DType::kInt64;
}
template <>
constexpr DType DTypeOf<std::uint8_t>() {
  return DType::kUint8;
}
template <>
constexpr DType DTypeOf<std::uint16_t>() {
  return DType::kUint16;
}
template <>
constexpr DType DTypeOf<std::uint32_t>() {
  return DType::kUint32;
}
template <>
constexpr DType DTypeOf<std::uint64_t>() {
  return DType::kUint64;
}
template <>
constexpr DType DTypeOf<bool>() {
  return DType::kBool;
}

// IEEE 754 binary16 bits to and from float (round to nearest even).
float HalfToFloat(std::uint16_t half);
std::uint16_t FloatToHalf(float value);

// Dimensions of a tensor, outermost first. Every dimension is >= 0; rank 0 is a scalar.
class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  // Throws Error for more than kMaxRank or negative dimensions.
  explicit Shape(std::span<const std::int64_t> dims);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return dims_[static_cast<std::size_t>(axis)]; }
  std::int64_t& operator[](int axis) { return dims_[static_cast<std::size_t>(axis)]; }
  std::span<const std::int64_t> dims() const {
    return {dims_.data(), static_cast<std::size_t>(rank_)};
  }
  const std::int64_t* begin() const { return dims_.data(); }
  const std::int64_t* end() const { return dims_.data() + rank_; }
  // Product of all dimensions. Throws Error if that of those that are not 0 exceeds 2^40: more than
  // any machine holds, and few enough that no size in bytes overflows, with lanes and pads too.
  std::int64_t NumElements() const;
  // Product of the dimensions in [first, last).
  std::int64_t NumElements(int first, int last) const;
  void PushBack(std::int64_t dim);

  bool operator==(const Shape& other) const;

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

std::string ToString(const Shape& shape);  // "1x3x48x64"; "scalar" for rank 0
std::ostream& operator<<(std::ostream& out, const Shape& shape);
std::ostream& operator<<(std::ostream& out, DType type);

// Row-major strides in elements.
std::array<std::int64_t, Shape::kMaxRank> RowMajorStrides(const Shape& shape);

// The shape that numpy-style broadcasting of `a` and `b` gives. Throws Error if they do not fit.
Shape BroadcastShapes(const Shape& a, const Shape& b);

// Maps a possibly negative axis to [0, rank). Throws Error when out of range.
int NormalizeAxis(std::int64_t axis, int rank);

enum class Layout : std::uint8_t {
  kRowMajor,
  // NCHWc: float32, rank 4. Channels are cut into blocks of FloatLanes(); the channels of one
  // block lie side by side for each pixel, so a pixel of a block is one vector. Channels that
  // pad the last block hold anything; kernels must not let them reach real ones. See BlockedLayout
  // for strides.
  kBlocked,
  // NHWC: elements of one byte, rank 4. The channels of a pixel lie side by side, padded to a
  // multiple of 16 bytes, or of 4 up to 4 channels. Channels that pad a pixel hold anything;
  // kernels must not let them reach real ones. See ChannelsLastLayout for strides.
  kChannelsLast,
};

// Strides of a tensor in Layout::kBlocked, in floats: channel c of pixel (y, x) of image n is at
//   n * image_stride + (c / lanes) * plane_stride + y * row_stride + x * lanes + c % lanes.
// Rows are padded to cache lines, and further where rows or planes would lie a multiple of 4 KB
// apart (they would compete for the same cache sets); in tensors of one pixel, whose channels lie
// one after the other as in kRowMajor, neither.
struct BlockedLayout {
  explicit BlockedLayout(const Shape& nchw);

  int lanes;  // channels in a block
  std::int64_t images, channels, height, width;
  std::int64_t blocks;  // ceil(channels / lanes)
  std::int64_t row_stride, plane_stride, image_stride;

  std::int64_t NumFloats() const { return images * image_stride; }
};

// Strides of a tensor in Layout::kChannelsLast, in bytes: channel c of pixel (y, x) of image n is
// at
//   n * image_stride + y * row_stride + x * pixel_stride + c.
// Pixels, rows and images follow each other without gaps.
struct ChannelsLastLayout {
  explicit ChannelsLastLayout(const Shape& nchw);

  // Bytes from one pixel to the next.
  static std::int64_t PixelStride(std::int64_t channels);

  std::int64_t images, channels, height, width;
  std::int64_t pixel_stride, row_stride, image_stride;

  std::int64_t NumBytes() const { return images * image_stride; }
};

// Bytes that a tensor takes in memory.
std::size_t StorageBytes(DType type, const Shape& shape, Layout layout);

// A tensor in memory that somebody else owns. Copying copies the view.
struct TensorView {
  DType dtype = DType::kFloat32;
  Layout layout = Layout::kRowMajor;
  Shape shape;
  void* bytes = nullptr;  // null for an omitted optional input

  bool present() const { return bytes != nullptr; }
  std::int64_t size() const { return shape.NumElements(); }
  template <typename T>
  T* data() const {
    return static_cast<T*>(bytes);
  }
};

// A tensor with its memory. Movable; Clone() copies.
class Tensor {
 public:
  Tensor() = default;
  // Uninitialised.
  Tensor(DType dtype, const Shape& shape, Layout layout = Layout::kRowMajor);

  template <typename T>
  static Tensor FromVector(const Shape& shape, const std::vector<T>& values) {
    Tensor t(DTypeOf<T>(), shape);
    T* out = t.data<T>();
    for (const T& v : values) *out++ = v;  // also right for vector<bool>
    return t;
  }

  DType dtype() const { return view_.dtype; }
  const Shape& shape() const { return view_.shape; }
  Layout layout() const { return view_.layout; }
  std::int64_t size() const { return view_.size(); }
  std::size_t bytes() const { return StorageBytes(dtype(), shape(), layout()); }
  const TensorView& view() const { return view_; }
  template <typename T>
  T* data() const {
    return view_.data<T>();
  }
  template <typename T>
  std::span<T> values() const {
    return {data<T>(), static_cast<std::size_t>(size())};
  }
  Tensor Clone() const;

 private:
  AlignedBuffer buffer_;
  TensorView view_;
};

// Elements of a row-major integer tensor (int64, int32, ...) as int64. Throws Error for others.
std::vector<std::int64_t> ToInt64s(const TensorView& t);
// Elements of a row-major float16/32/64 tensor as float. Throws Error for others.
std::vector<float> ToFloats(const TensorView& t);

}  // namespace tessera
