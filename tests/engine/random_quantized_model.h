// Random quantised networks for tests: what quantisers write, and what they might write.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/engine/passes/quantized_model.h"

namespace tessera {

// Grows a network node by node, each of which reads one or two of the values so far, all of them
// bytes behind a DequantizeLinear. Weights are scaled so that values stay about as large as the
// input's.
class RandomQuantizedModel {
 public:
  // Tensors have up to `max_elements` elements.
  explicit RandomQuantizedModel(std::uint32_t seed, std::int64_t max_elements = 20000)
      : seed_(seed), max_elements_(max_elements), random_(seed) {
    type_ = Chance(50) ? kInt8Type : kUint8Type;
    Value x;
    const bool streams = Chance(25);  // wide, with few channels
    do {
      x.shape = {Chance(70) ? 1 : Pick(1, 3), streams ? Pick(1, 48) : Channels(), Side(),
                 streams ? Pick(32, 70) : Side()};
    } while (Count(x.shape) > max_elements_ / (streams ? 2 : 1));
    input_shape = Shape(std::span<const std::int64_t>(x.shape));
    std::vector<std::int64_t> declared = x.shape;
    if (Chance(50)) declared[0] = declared[2] = declared[3] = -1;
    if (Chance(80)) {
      model.Input("x", declared);
      x.real = "x";
      Quantize(x);
    } else {
      x.q = Scale();
      x.bytes = "x";
      x.real = "x_real";
      input_type = type_;
      largest_scale = x.q.scale;
      model.Input("x", declared, type_);
      AddDequantize(model, x.bytes, x.real, x.q);
      Push(x);
    }
    if (streams) Bottleneck(Value(values_.back()));
    const int steps = Pick(1, 8);
    for (int i = 0; i < steps; ++i) Step();
    bool last = true;
    for (auto it = values_.rbegin(); it != values_.rend(); ++it) {
      if (last || it->readers == 0 || Chance(10)) AddOutput(*it);
      last = false;
    }
  }

  // Seeded noise, as large as the network's values or a little larger.
  Tensor Input() const {
    const auto n = static_cast<std::size_t>(input_shape.NumElements());
    if (input_type == onnx::TensorProto::FLOAT) {
      return Tensor::FromVector<float>(input_shape, TestModel::NoiseValues(n, seed_, 2.5f));
    }
    const std::vector<int> values = Integers(n, seed_, 0, 255);
    Tensor x(input_type == kInt8Type ? DType::kInt8 : DType::kUint8, input_shape);
    std::ranges::transform(values, static_cast<std::uint8_t*>(x.view().bytes),
                           [](int v) { return static_cast<std::uint8_t>(v); });
    return x;
  }

  TestModel model{14};
  Shape input_shape;  // of "x"
  int input_type = onnx::TensorProto::FLOAT;
  bool only_integers = true;  // no float operator that targets may round differently
  float largest_scale = 0;    // of all bytes
  std::vector<float> units;   // of outputs: the scale of bytes, 1 for float32

 private:
  struct Value {
    std::string real, bytes;
    std::vector<std::int64_t> shape;
    ByteScale q{};
    int readers = 0;
    bool is_output = false;
  };
  using Dims = std::vector<std::int64_t>;

  static std::int64_t Count(const Dims& dims) {
    std::int64_t n = 1;
    for (const std::int64_t d : dims) n *= d;
    return n;
  }
  int Pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool Chance(int percent) { return Pick(1, 100) <= percent; }
  float Real(float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(random_);
  }
  // Small ones more often, and those at the sizes of vectors and tiles.
  std::int64_t Channels() {
    static constexpr int kUsual[] = {1, 3, 4, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 96, 128};
    if (Chance(50)) return kUsual[Pick(0, 15)];
    return Chance(60) ? Pick(1, 40) : Pick(1, 130);
  }
  std::int64_t Side() { return Chance(60) ? Pick(1, 18) : Pick(1, 70); }
  std::string Name(const std::string& prefix) { return prefix + std::to_string(++names_); }

  // A scale for values about as large as 1, and any zero point.
  ByteScale Scale(bool positive = false) {
    const int lowest = type_ == kInt8Type ? -128 : 0;
    ByteScale q{Real(0.012f, 0.04f), lowest + Pick(90, 165), type_};
    if (Chance(5)) q.scale *= 0.2f;   // many values do not fit
    if (Chance(1)) q.scale *= 1e-9f;  // nearly none: as of a tensor that was 0 for all samples
    if (positive && Chance(80)) q.zero_point = lowest;
    if (Chance(5)) q.zero_point = lowest + (Chance(50) ? 0 : 255);
    return q;
  }
  void Quantize(Value v, bool positive = false) { Quantize(std::move(v), Scale(positive)); }
  void Quantize(Value v, const ByteScale& q) {
    v.q = q;
    largest_scale = std::max(largest_scale, q.scale);
    const std::string name = Name("v");
    v.bytes = name + "_q";
    AddBytes(model, v.real, name, v.q);
    v.real = name;
    Push(std::move(v));
  }
  void Push(Value v) {
    v.readers = 0;
    v.is_output = false;
    values_.push_back(std::move(v));
  }

  // One of the values, the last one more often.
  std::size_t PickValue() {
    const int last = static_cast<int>(values_.size()) - 1;
    return static_cast<std::size_t>(Chance(75) ? last : Pick(0, last));
  }
  Value Read() {
    Value& v = values_[PickValue()];
    ++v.readers;
    return v;
  }
  void AddOutput(Value& v) {
    if (v.is_output) return;
    v.is_output = true;
    if (Chance(25)) {
      model.Output(v.bytes, v.q.type);
      units.push_back(v.q.scale);
    } else {
      AddFloatOutput(v);
    }
  }
  void AddFloatOutput(const Value& v) {
    model.Output(v.real);
    units.push_back(1);
  }

  void Step() {
    const Value x = Read();
    if (x.shape.size() != 4) return FromMatrix(x);
    const int kind = Pick(0, 99);
    if (kind < 34) return Conv(x);
    if (kind < 46) return Bottleneck(x);
    if (kind < 54) return Add(x);
    if (kind < 62) return Function(x);
    if (kind < 67) return Gate(x);
    if (kind < 70) return GlobalAverage(x);
    if (kind < 75) return MaxPool(x);
    if (kind < 81) return Concat(x);
    if (kind < 85) return Resize(x);
    if (kind < 89) return DepthToSpace(x);
    if (kind < 92) return Transpose(x);
    if (kind < 95) return Slice(x);
    if (kind < 97) return Split(x);
    return Flatten(x);
  }

  struct ConvShape {
    std::int64_t channels, group, kernel_h, kernel_w;
    Dims strides, dilations, pads;
  };

  void AddWeightsOf(const std::string& name, const Dims& dims, ByteScale* scale_for_one,
                    std::vector<float>& scales) {
    const std::int64_t n = Count(dims);
    const float typical =
        1.0f / (73 * std::sqrt(static_cast<float>(n) / static_cast<float>(dims[0])));
    const bool per_channel = scale_for_one == nullptr && Chance(70);
    const int type = Chance(85) ? kInt8Type : kUint8Type;
    const int zero = type == kInt8Type ? 0 : Chance(70) ? 128 : 140;
    // Now and then more than fits into int8, or its lowest value.
    const int range = zero == 140 && Chance(50) ? 140 : Chance(90) ? 115 : 128;
    if (range > 128) only_integers = false;  // floats then
    const int high = std::min(range, type == kInt8Type ? 127 : 255 - zero);
    AddIntegers(model, name + "_q", dims,
                Integers(static_cast<std::size_t>(n), random_(), zero - range, zero + high), type);
    scales.assign(per_channel ? static_cast<std::size_t>(dims[0]) : 1, 0);
    for (float& s : scales) s = typical * Real(0.6f, 1.4f);
    const Dims shape = per_channel ? Dims{dims[0]} : Dims{};
    model.Floats(name + "_scale", shape, scales);
    AddIntegers(model, name + "_zero", shape, std::vector<int>(scales.size(), zero), type);
  }

  ConvShape RandomConv(const Value& x) {
    ConvShape s{Channels(), 1, 1, 1, {1, 1}, {1, 1}, {0, 0, 0, 0}};
    const int kind = Pick(0, 9);
    if (kind < 3) {  // depthwise
      s.group = s.channels = x.shape[1];
    } else if (kind == 3) {
      for (const std::int64_t group : {2, 3, 4}) {
        if (x.shape[1] % group == 0) s.group = group;
      }
      s.channels = s.group * Pick(1, 20);
    }
    if (kind < 7) {
      s.kernel_h = s.kernel_w = Chance(70) ? 3 : Pick(1, 7);
      if (Chance(20)) s.kernel_w = Pick(1, 5);
    }
    if (s.group == 1 && Chance(30)) s.channels = x.shape[1];
    if (Chance(25)) s.strides = {Pick(1, 3), Pick(1, 3)};
    if (Chance(12)) s.dilations = {Pick(1, 3), Pick(1, 3)};
    for (const std::size_t axis : {0u, 1u}) {
      const std::int64_t span = (axis == 0 ? s.kernel_h : s.kernel_w) * s.dilations[axis];
      if (Chance(70)) s.pads[axis] = s.pads[axis + 2] = span / 2;
      if (Chance(15)) s.pads[axis] = Pick(0, 3);
      if (Chance(15)) s.pads[axis + 2] = Pick(0, 3);
    }
    return s;
  }

  // False where the result would be empty or too large.
  bool OutputShape(const Value& x, const ConvShape& s, Dims& out) const {
    out = {x.shape[0], s.channels, 0, 0};
    for (const std::size_t axis : {0u, 1u}) {
      const std::int64_t kernel = axis == 0 ? s.kernel_h : s.kernel_w;
      const std::int64_t room = x.shape[axis + 2] + s.pads[axis] + s.pads[axis + 2] -
                                ((kernel - 1) * s.dilations[axis] + 1);
      if (room < 0) return false;
      out[axis + 2] = room / s.strides[axis] + 1;
    }
    return Count(out) <= max_elements_ &&
           Count(out) * x.shape[1] / s.group * s.kernel_h * s.kernel_w <= max_elements_ * 500;
  }

  std::vector<TestModel::Attribute> Attributes(const ConvShape& s) {
    return {{"kernel_shape", Dims{s.kernel_h, s.kernel_w}},
            {"strides", s.strides},
            {"dilations", s.dilations},
            {"pads", s.pads},
            {"group", s.group}};
  }

  void Conv(const Value& x) {
    ConvShape s = RandomConv(x);
    Conv(x, s);
  }

  bool Conv(const Value& x, const ConvShape& s) {
    Value y;
    if (!OutputShape(x, s, y.shape)) return false;
    const std::string name = Name("c");
    std::vector<float> scales;
    const Dims w{s.channels, x.shape[1] / s.group, s.kernel_h, s.kernel_w};
    AddWeightsOf(name + "_w", w, nullptr, scales);
    const bool qlinear = Chance(20);
    const int bias_kind = Pick(0, 2);  // none, integers, float
    if (bias_kind == 1 || (bias_kind == 2 && qlinear)) {
      const auto n = static_cast<std::size_t>(s.channels);
      std::vector<float> bias_scale(n);
      std::vector<int> bias(n);
      for (std::size_t c = 0; c < n; ++c) {
        bias_scale[c] = x.q.scale * scales[scales.size() == 1 ? 0 : c];
        bias[c] = static_cast<int>(std::clamp(Real(-0.5f, 0.5f) / bias_scale[c], -1e9f, 1e9f));
      }
      AddIntegers(model, name + "_b_q", {s.channels}, bias, onnx::TensorProto::INT32);
      if (!qlinear) {
        model.Floats(name + "_b_scale", {s.channels}, bias_scale);
        AddIntegers(model, name + "_b_zero", {s.channels}, std::vector<int>(n, 0),
                    onnx::TensorProto::INT32);
        model.Node("DequantizeLinear", {name + "_b_q", name + "_b_scale", name + "_b_zero"},
                   {name + "_b"}, {{"axis", std::int64_t{0}}});
      }
    } else if (bias_kind == 2) {
      model.Noise(name + "_b", {s.channels}, 0.5f);
    }
    if (qlinear) {
      y.q = Scale();
      largest_scale = std::max(largest_scale, y.q.scale);
      std::vector<std::string> inputs = AddParameters(model, x.bytes, name + "_x", x.q);
      for (const char* part : {"_w_q", "_w_scale", "_w_zero"}) inputs.push_back(name + part);
      const auto parameters = AddParameters(model, "", name + "_y", y.q);
      inputs.insert(inputs.end(), parameters.begin() + 1, parameters.end());
      if (bias_kind != 0) inputs.push_back(name + "_b_q");
      y.bytes = name + "_q";
      y.real = name;
      model.Node("QLinearConv", inputs, {y.bytes}, Attributes(s));
      AddDequantize(model, y.bytes, y.real, y.q);
      Push(y);
      return true;
    }
    model.Node("DequantizeLinear", {name + "_w_q", name + "_w_scale", name + "_w_zero"},
               {name + "_w"}, {{"axis", std::int64_t{0}}});
    std::vector<std::string> inputs = {x.real, name + "_w"};
    if (bias_kind != 0) inputs.push_back(name + "_b");
    model.Node("Conv", inputs, {name}, Attributes(s));
    y.real = name;
    bool positive = false;
    if (Chance(60)) positive = Activate(y);
    if (Chance(20)) AddOther(y);
    if (Chance(5)) AddFloatOutput(y);
    Quantize(y, positive);
    return true;
  }

  // Adds a value of the same shape, if there is one, perhaps with a bound after it.
  bool AddOther(Value& y) {
    for (Value& other : values_) {
      if (other.shape != y.shape || !Chance(70)) continue;
      ++other.readers;
      const std::string name = Name("a");
      const bool first = Chance(50);
      model.Node("Add", {first ? y.real : other.real, first ? other.real : y.real}, {name});
      y.real = name;
      if (Chance(30)) Bound(y);
      return true;
    }
    return false;
  }

  bool Bound(Value& y) {
    const std::string name = Name("b");
    if (Chance(50)) {
      model.Node("Relu", {y.real}, {name});
      y.real = name;
      return true;
    }
    const float low = Chance(50) ? 0.0f : Real(-1.5f, 0.3f);
    model.Floats(name + "_low", {}, {low}).Floats(name + "_high", {}, {Real(0.4f, 2.5f)});
    model.Node("Clip", {y.real, name + "_low", name + "_high"}, {name});
    y.real = name;
    return low == 0;
  }

  // A function as quantisers leave it before QuantizeLinear. True: nothing is below 0.
  bool Activate(Value& y) {
    const std::string name = Name("f");
    switch (Pick(0, 6)) {
      case 0:
      case 1:
        return Bound(y);
      case 2:
        model.Node("LeakyRelu", {y.real}, {name}, {{"alpha", Real(-0.2f, 0.5f)}});
        break;
      case 3: {
        const std::int64_t slopes = Chance(70) ? y.shape[1] : 1;
        model.Noise(name + "_slope", {slopes, 1, 1}, 0.5f);
        model.Node("PRelu", {y.real, name + "_slope"}, {name});
        break;
      }
      case 4:  // HardSwish, as one node or two
        if (Chance(50)) {
          model.Node("HardSwish", {y.real}, {name});
        } else {
          model.Node("HardSigmoid", {y.real}, {name + "_s"}, {{"alpha", 1 / 6.f}, {"beta", 0.5f}});
          model.Node("Mul", {y.real, name + "_s"}, {name});
          only_integers = false;
        }
        break;
      case 5:
        model.Node("Sigmoid", {y.real}, {name + "_s"});
        model.Node("Mul", {y.real, name + "_s"}, {name});
        only_integers = false;
        break;
      default:
        model.Node("Tanh", {y.real}, {name});
        only_integers = false;
    }
    y.real = name;
    return false;
  }

  void Function(const Value& x) {
    Value y = x;
    const bool integers = only_integers;
    const bool positive = Activate(y);
    only_integers = integers;  // becomes a table
    Quantize(y, Chance(30) ? x.q : Scale(positive));
  }

  // Pointwise, depthwise, pointwise.
  void Bottleneck(const Value& x) {
    const std::int64_t wide = std::min<std::int64_t>(
        Channels() + x.shape[1],
        std::max<std::int64_t>(
            1, max_elements_ * x.shape[1] / std::max<std::int64_t>(1, Count(x.shape))));
    ConvShape first{wide, 1, 1, 1, {1, 1}, {1, 1}, {0, 0, 0, 0}};
    if (!Conv(x, first)) return;
    ++values_.back().readers;
    const std::int64_t kernel = Chance(70) ? 3 : 5, stride = Pick(1, 2);
    ConvShape middle{
        wide, wide, kernel, kernel, {stride, stride}, {1, 1}, Dims(4, Chance(90) ? kernel / 2 : 0)};
    if (!Conv(Value(values_.back()), middle)) return;
    if (Chance(20)) return;
    ++values_.back().readers;
    ConvShape last = first;
    last.channels = Chance(50) ? x.shape[1] : Channels();
    Conv(Value(values_.back()), last);
  }

  void Add(const Value& x) {
    Value y = x;
    if (!AddOther(y)) return Conv(x);
    Quantize(y);
  }

  // Squeeze and excitation.
  void Gate(const Value& x) {
    const std::string name = Name("g");
    const std::int64_t channels = x.shape[1], few = std::max<std::int64_t>(1, channels / 4);
    model.Node("GlobalAveragePool", {x.real}, {name + "_a"});
    model.Noise(name + "_w1", {few, channels, 1, 1}).Noise(name + "_w2", {channels, few, 1, 1});
    model.Node("Conv", {name + "_a", name + "_w1"}, {name + "_c"});
    model.Node("Relu", {name + "_c"}, {name + "_r"});
    model.Node("Conv", {name + "_r", name + "_w2"}, {name + "_d"});
    model.Node(Chance(50) ? "Sigmoid" : "HardSigmoid", {name + "_d"}, {name + "_s"});
    std::string gate = name + "_s";
    if (Chance(40)) {
      gate = name + "_b";
      AddBytes(model, name + "_s", gate, {1 / 255.0f, type_ == kInt8Type ? -128 : 0, type_});
    }
    Value y = x;
    y.real = name;
    const bool first = Chance(70);
    model.Node("Mul", {first ? x.real : gate, first ? gate : x.real}, {name});
    only_integers = false;
    Quantize(y);
  }

  void GlobalAverage(const Value& x) {
    const std::string name = Name("p");
    Value y = x;
    y.real = name;
    y.shape[2] = y.shape[3] = 1;
    model.Node("GlobalAveragePool", {x.real}, {name});
    Quantize(y, {Real(0.002f, 0.01f), x.q.zero_point, x.q.type});
  }

  // The parameters of the input, as they should be, or others.
  void QuantizeMoved(Value y, const Value& x) {
    Quantize(std::move(y), Chance(75) ? x.q : Scale());
  }

  void MaxPool(const Value& x) {
    Value y = x;
    const std::int64_t kernel = Pick(1, 3), stride = Pick(1, 3), pad = Pick(0, kernel > 1 ? 1 : 0);
    for (const std::size_t axis : {2u, 3u}) {
      const std::int64_t room = x.shape[axis] + 2 * pad - kernel;
      if (room < 0) return Conv(x);
      y.shape[axis] = room / stride + 1;
    }
    y.real = Name("p");
    model.Node("MaxPool", {x.real}, {y.real},
               {{"kernel_shape", Dims{kernel, kernel}},
                {"strides", Dims{stride, stride}},
                {"pads", Dims(4, pad)}});
    QuantizeMoved(y, x);
  }

  void Concat(const Value& x) {
    const std::size_t axis = Chance(75) ? 1 : static_cast<std::size_t>(Pick(0, 3));
    Value y = x;
    std::vector<std::string> inputs = {x.real};
    for (Value& other : values_) {
      Dims expected = x.shape;
      if (other.shape.size() != 4 || inputs.size() == 4) continue;
      expected[axis] = other.shape[axis];
      if (other.shape != expected || !Chance(60)) continue;
      ++other.readers;
      inputs.insert(Chance(50) ? inputs.begin() : inputs.end(), other.real);
      y.shape[axis] += other.shape[axis];
    }
    if (inputs.size() < 2 || Count(y.shape) > max_elements_) return Conv(x);
    y.real = Name("j");
    model.Node("Concat", inputs, {y.real}, {{"axis", static_cast<std::int64_t>(axis)}});
    QuantizeMoved(y, x);
  }

  void Resize(const Value& x) {
    Value y = x;
    const int by_h = Pick(1, 3), by_w = Chance(70) ? by_h : Pick(1, 3);
    y.shape[2] *= by_h;
    y.shape[3] *= by_w;
    if (Count(y.shape) > max_elements_) return Conv(x);
    y.real = Name("r");
    model.Floats(y.real + "_by", {4}, {1, 1, static_cast<float>(by_h), static_cast<float>(by_w)});
    model.Node("Resize", {x.real, "", y.real + "_by"}, {y.real},
               {{"mode", std::string("nearest")},
                {"coordinate_transformation_mode", std::string("asymmetric")},
                {"nearest_mode", std::string("floor")}});
    QuantizeMoved(y, x);
  }

  void DepthToSpace(const Value& x) {
    std::int64_t block = 0;
    for (const std::int64_t b : {2, 3, 4}) {
      if (x.shape[1] % (b * b) == 0 && (block == 0 || Chance(50))) block = b;
    }
    if (block == 0) return Conv(x);
    Value y = x;
    y.shape = {x.shape[0], x.shape[1] / (block * block), x.shape[2] * block, x.shape[3] * block};
    y.real = Name("s");
    model.Node("DepthToSpace", {x.real}, {y.real},
               {{"blocksize", block}, {"mode", std::string(Chance(60) ? "CRD" : "DCR")}});
    if (Chance(30)) AddFloatOutput(y);
    QuantizeMoved(y, x);
  }

  void Transpose(const Value& x) {
    Dims perm = {0, 1, 2, 3};
    std::shuffle(perm.begin() + (Chance(70) ? 1 : 0), perm.end(), random_);
    Value y = x;
    for (std::size_t i = 0; i < 4; ++i) y.shape[i] = x.shape[static_cast<std::size_t>(perm[i])];
    y.real = Name("t");
    model.Node("Transpose", {x.real}, {y.real}, {{"perm", perm}});
    QuantizeMoved(y, x);
  }

  void Slice(const Value& x) {
    Value y = x;
    y.real = Name("l");
    const std::size_t axis = static_cast<std::size_t>(Pick(1, 3));
    const int n = static_cast<int>(x.shape[axis]), begin = Pick(0, n - 1), end = Pick(begin + 1, n);
    y.shape[axis] = end - begin;
    model.Ints(y.real + "_begin", {begin}).Ints(y.real + "_end", {end});
    model.Ints(y.real + "_axis", {static_cast<std::int64_t>(axis)});
    model.Node("Slice", {x.real, y.real + "_begin", y.real + "_end", y.real + "_axis"}, {y.real});
    QuantizeMoved(y, x);
  }

  void Split(const Value& x) {
    const std::size_t axis = static_cast<std::size_t>(Pick(1, 3));
    const std::int64_t n = x.shape[axis];
    if (n < 2) return Conv(x);
    Value a = x, b = x;
    a.shape[axis] = Pick(1, static_cast<int>(n) - 1);
    b.shape[axis] = n - a.shape[axis];
    a.real = Name("h");
    b.real = Name("h");
    model.Ints(a.real + "_parts", {a.shape[axis], b.shape[axis]});
    model.Node("Split", {x.real, a.real + "_parts"}, {a.real, b.real},
               {{"axis", static_cast<std::int64_t>(axis)}});
    QuantizeMoved(a, x);
    QuantizeMoved(b, x);
  }

  void Flatten(const Value& x) {
    Value y = x;
    y.real = Name("m");
    if (Chance(50)) {
      y.shape = {x.shape[0], x.shape[1] * x.shape[2] * x.shape[3]};
      model.Node("Flatten", {x.real}, {y.real});
    } else {
      y.shape = {x.shape[0], x.shape[1], x.shape[2] * x.shape[3]};
      model.Ints(y.real + "_shape", {0, 0, -1});
      model.Node("Reshape", {x.real, y.real + "_shape"}, {y.real});
    }
    QuantizeMoved(y, x);
  }

  // What follows a matrix [.., k]: a product with weights, with itself, or the way back.
  void FromMatrix(const Value& x) {
    Value y = x;
    y.real = Name("m");
    const std::int64_t k = x.shape.back();
    if (Chance(30) && x.shape.size() == 3) {
      y.shape = {x.shape[0], x.shape[1], 1, k};
      model.Ints(y.real + "_shape", y.shape);
      model.Node("Reshape", {x.real, y.real + "_shape"}, {y.real});
      return QuantizeMoved(y, x);
    }
    if (Chance(40) && x.shape.size() == 3 && x.shape[1] * x.shape[1] * x.shape[0] < max_elements_) {
      model.Node("Transpose", {x.real}, {y.real + "_t"}, {{"perm", Dims{0, 2, 1}}});
      AddBytes(model, y.real + "_t", y.real + "_d", x.q);
      y.shape = {x.shape[0], x.shape[1], x.shape[1]};
      model.Node("MatMul", {x.real, y.real + "_d"}, {y.real});
      only_integers = false;
      ByteScale q = Scale();
      q.scale *= std::sqrt(static_cast<float>(k)) + static_cast<float>(k) / 4;
      return Quantize(y, q);
    }
    const std::int64_t n = Pick(1, 40);
    std::vector<float> scales;
    const std::string w = y.real + "_w";
    ByteScale one{};
    AddWeightsOf(w, {k, n}, &one, scales);
    // AddWeightsOf takes dims[0] for the outputs: smaller by the root of n / k.
    model.Node("DequantizeLinear", {w + "_q", w + "_scale", w + "_zero"}, {w});
    y.shape.back() = n;
    model.Node("MatMul", {x.real, w}, {y.real});
    only_integers = false;
    ByteScale q = Scale();
    q.scale *= std::sqrt(static_cast<float>(k) / static_cast<float>(n));
    Quantize(y, q);
  }

  std::uint32_t seed_;
  std::int64_t max_elements_;
  std::mt19937 random_;
  int type_ = kUint8Type;
  int names_ = 0;
  std::vector<Value> values_;
};

}  // namespace tessera
