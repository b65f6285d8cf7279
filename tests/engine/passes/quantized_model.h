// Small quantised networks for tests: their values, and the nodes between float and bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/engine/test_model.h"

namespace tessera {

constexpr int kInt8Type = onnx::TensorProto::INT8, kUint8Type = onnx::TensorProto::UINT8;

// Scale and zero point of a tensor.
struct ByteScale {
  float scale;
  int zero_point;
  int type = kUint8Type;
};

// A constant of integers of any type.
inline void AddIntegers(TestModel& m, const std::string& name,
                        const std::vector<std::int64_t>& dims, const std::vector<int>& values,
                        int type) {
  auto* t = m.proto.mutable_graph()->add_initializer();
  t->set_name(name);
  t->set_data_type(type);
  for (const std::int64_t d : dims) t->add_dims(d);
  for (const int v : values) t->add_int32_data(v);
}

// `name` and the names of its scale and zero point, which it adds.
inline std::vector<std::string> AddParameters(TestModel& m, const std::string& name,
                                              const std::string& prefix, const ByteScale& s) {
  m.Floats(prefix + "_scale", {}, {s.scale});
  AddIntegers(m, prefix + "_zero", {}, {s.zero_point}, s.type);
  return {name, prefix + "_scale", prefix + "_zero"};
}

inline void AddQuantize(TestModel& m, const std::string& from, const std::string& to,
                        const ByteScale& s) {
  m.Node("QuantizeLinear", AddParameters(m, from, to, s), {to});
}
inline void AddDequantize(TestModel& m, const std::string& from, const std::string& to,
                          const ByteScale& s) {
  m.Node("DequantizeLinear", AddParameters(m, from, to, s), {to});
}
// from -> Q -> DQ -> to.
inline void AddBytes(TestModel& m, const std::string& from, const std::string& to,
                     const ByteScale& s) {
  AddQuantize(m, from, to + "_q", s);
  AddDequantize(m, to + "_q", to, s);
}

// Seeded integers in [low, high].
inline std::vector<int> Integers(std::size_t n, std::uint32_t seed, int low, int high) {
  std::vector<int> values;
  for (const float noise : TestModel::NoiseValues(n, seed)) {
    const float part = (noise + 1) / 2;
    values.push_back(low + std::min(high - low, static_cast<int>(part * (high - low + 1))));
  }
  return values;
}

// Weights [dims] behind a DequantizeLinear, with a scale for each output channel or one for all.
inline void AddWeights(TestModel& m, const std::string& name, const std::vector<std::int64_t>& dims,
                       bool per_channel = true, int type = kInt8Type) {
  std::size_t n = 1;
  for (const std::int64_t d : dims) n *= static_cast<std::size_t>(d);
  const int zero = type == kUint8Type ? 128 : 0;
  AddIntegers(m, name + "_q", dims, Integers(n, 7, zero - 127, zero + 127), type);
  const std::size_t scales = per_channel ? static_cast<std::size_t>(dims[0]) : 1;
  std::vector<float> scale(scales);
  for (std::size_t c = 0; c < scales; ++c) scale[c] = 0.002f + 0.0005f * static_cast<float>(c);
  const std::vector<std::int64_t> shape =
      per_channel ? std::vector<std::int64_t>{dims[0]} : std::vector<std::int64_t>{};
  m.Floats(name + "_scale", shape, scale);
  AddIntegers(m, name + "_zero", shape, std::vector<int>(scales, zero), type);
  m.Node("DequantizeLinear", {name + "_q", name + "_scale", name + "_zero"}, {name},
         {{"axis", std::int64_t{0}}});
}

}  // namespace tessera
