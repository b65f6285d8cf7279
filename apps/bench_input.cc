#include "apps/bench_input.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <type_traits>
#include <vector>

#include "ops/error.h"
#include "pipeline/display_name.h"

namespace tessera {
namespace {

struct Spec {
  std::string name, file;  // no file: empty
  Shape shape;
};

Spec ParseSpec(const std::string& text) {
  const std::string want = "--input " + text + ": want NAME:1x3x64x64[:FILE]";
  // The shape is the first part of digits and 'x' between colons, since names may hold colons.
  for (std::size_t colon = text.find(':'); colon != std::string::npos;) {
    const std::size_t end = text.find(':', colon + 1);
    const std::string part = text.substr(colon + 1, end - colon - 1);
    if (!part.empty() && part.find_first_not_of("0123456789x") == std::string::npos) {
      Spec spec{.name = text.substr(0, colon),
                .file = end == std::string::npos ? "" : text.substr(end + 1),
                .shape = {}};
      Require(end == std::string::npos || !spec.file.empty(), want);
      std::istringstream dims(part + 'x');
      for (std::string d; std::getline(dims, d, 'x');) {
        Require(!d.empty() && d.size() < 10, want);
        spec.shape.PushBack(std::stoll(d));
      }
      return spec;
    }
    colon = end;
  }
  throw Error(want);
}

DType InputType(const Session& session, const std::string& name) {
  std::string known;
  for (const ValueDecl& decl : session.inputs()) {
    if (decl.name == name) return decl.dtype;
    known += (known.empty() ? "" : ", ") + decl.name;
  }
  throw Error(StrCat("--input ", name, ": the model has no such input (it has: ", known, ")"));
}

std::vector<float> ReadFloats(const std::string& path, const Shape& shape) {
  std::ifstream in(path, std::ios::binary);
  Require(in.good(), "cannot be opened");
  std::vector<float> values(static_cast<std::size_t>(shape.NumElements()));
  const auto bytes = static_cast<std::streamsize>(values.size() * sizeof(float));
  in.read(reinterpret_cast<char*>(values.data()), bytes);
  Require(in.gcount() == bytes && in.peek() == std::ifstream::traits_type::eof(),
          "does not have the ", bytes, " bytes of ", shape);
  return values;
}

template <typename T>
T FromFloat(float value) {
  if constexpr (std::is_integral_v<T>) {
    // Both limits are powers of two, exact as doubles (the upper one is exclusive).
    const double low = static_cast<double>(std::numeric_limits<T>::min());
    const double high = std::ldexp(1.0, std::numeric_limits<T>::digits);
    Require(value >= low && value < high, "its value ", value, " does not fit in ", DTypeOf<T>());
  }
  return static_cast<T>(value);
}

template <typename T>
T FromUniform(double u) {
  if constexpr (std::is_same_v<T, bool>) return u >= 0.5;
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(u);
  return static_cast<T>(std::floor(16 * u) - (std::is_signed_v<T> ? 8 : 0));
}

template <typename T>
Tensor MakeTensor(const Spec& spec) {
  Tensor tensor(DTypeOf<T>(), spec.shape);
  if (!spec.file.empty()) {
    std::ranges::transform(ReadFloats(spec.file, spec.shape), tensor.data<T>(), FromFloat<T>);
    return tensor;
  }
  std::uint32_t x = 0x2545f491;
  for (T& value : tensor.values<T>()) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    value = FromUniform<T>(x / 4294967296.0);
  }
  return tensor;
}

Tensor MakeTensor(const Spec& spec, DType type) {
  switch (type) {
    case DType::kFloat16:  // the session converts
    case DType::kFloat32:
      return MakeTensor<float>(spec);
    case DType::kFloat64:
      return MakeTensor<double>(spec);
    case DType::kInt8:
      return MakeTensor<std::int8_t>(spec);
    case DType::kInt16:
      return MakeTensor<std::int16_t>(spec);
    case DType::kInt32:
      return MakeTensor<std::int32_t>(spec);
    case DType::kInt64:
      return MakeTensor<std::int64_t>(spec);
    case DType::kUint8:
      return MakeTensor<std::uint8_t>(spec);
    case DType::kUint16:
      return MakeTensor<std::uint16_t>(spec);
    case DType::kUint32:
      return MakeTensor<std::uint32_t>(spec);
    case DType::kUint64:
      return MakeTensor<std::uint64_t>(spec);
    case DType::kBool:
      return MakeTensor<bool>(spec);
  }
  throw Error(StrCat("inputs of type ", type, " are not supported"));
}

}  // namespace

BenchInput MakeBenchInput(const std::string& text, const Session& session) {
  const Spec spec = ParseSpec(text);
  const DType type = InputType(session, spec.name);
  if (spec.file.empty()) return {spec.name, MakeTensor(spec, type)};
  return {spec.name, NamingFile(spec.file, [&] { return MakeTensor(spec, type); })};
}

}  // namespace tessera
