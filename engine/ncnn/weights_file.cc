#include "engine/ncnn/weights_file.h"

#include <array>
#include <bit>
#include <vector>

#include "ops/error.h"

namespace tessera {
namespace {

// Numbers are little-endian in the file, as in memory.
static_assert(std::endian::native == std::endian::little);

constexpr std::uint32_t kFloat16Tag = 0x01306B47;
constexpr std::uint32_t kInt8Tag = 0x000D4B38;
constexpr std::uint32_t kFloat32Tag = 0x0002C056;  // as 0: float32, which int8 scales may follow

std::uint64_t Align4(std::uint64_t bytes) { return (bytes + 3) / 4 * 4; }

std::uint64_t Elements(const Shape& shape) {
  return static_cast<std::uint64_t>(shape.NumElements());
}

}  // namespace

void NcnnWeights::Need(std::uint64_t bytes) const {
  Require(bytes <= remaining_, file_, ": is too short: ", bytes, " bytes of weights are needed, ",
          remaining_, " are left");
}

void NcnnWeights::Read(void* to, std::uint64_t bytes) {
  in_.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
  Require(in_.gcount() == static_cast<std::streamsize>(bytes), file_, ": cannot be read");
  remaining_ -= bytes;
}

Tensor NcnnWeights::Floats(const Shape& shape) {
  Need(Elements(shape) * sizeof(float));
  Tensor tensor(DType::kFloat32, shape);
  Read(tensor.data<char>(), Elements(shape) * sizeof(float));
  return tensor;
}

Tensor NcnnWeights::Tagged(const Shape& shape) {
  std::uint32_t tag = 0;
  Need(sizeof(tag));
  Read(&tag, sizeof(tag));
  if (tag == 0 || tag == kFloat32Tag) return Floats(shape);
  const std::uint64_t n = Elements(shape);
  std::array<char, 4> padding;
  if (tag == kInt8Tag) {
    Need(Align4(n));
    Tensor tensor(DType::kInt8, shape);
    Read(tensor.data<char>(), n);
    Read(padding.data(), Align4(n) - n);
    return tensor;
  }
  if (tag == kFloat16Tag) {
    Need(Align4(n * sizeof(std::uint16_t)));
    std::vector<std::uint16_t> halves(Align4(n * sizeof(std::uint16_t)) / sizeof(std::uint16_t));
    Read(halves.data(), halves.size() * sizeof(std::uint16_t));
    Tensor tensor(DType::kFloat32, shape);
    for (std::uint64_t i = 0; i < n; ++i) tensor.data<float>()[i] = HalfToFloat(halves[i]);
    return tensor;
  }
  // Any other tag: a table, then a byte for each weight.
  std::array<float, 256> table;
  Need(sizeof(table) + Align4(n));
  Read(table.data(), sizeof(table));
  std::vector<std::uint8_t> indices(Align4(n));
  Read(indices.data(), indices.size());
  Tensor tensor(DType::kFloat32, shape);
  for (std::uint64_t i = 0; i < n; ++i) tensor.data<float>()[i] = table[indices[i]];
  return tensor;
}

}  // namespace tessera
