// Running operators by themselves, through their OpDef: infer, choose layouts, prepare, run.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ops/elements.h"
#include "ops/op.h"
#include "ops/reorder.h"
#include "tests/ops/conv_test_util.h"

namespace tessera {

// A tensor of the given values: Values<float>({2, 3}, {...}).
template <typename T>
Tensor Values(const Shape& shape, const std::vector<T>& values) {
  EXPECT_EQ(shape.NumElements(), static_cast<std::int64_t>(values.size()));
  return Tensor::FromVector<T>(shape, values);
}

inline Tensor Floats(const Shape& shape, const std::vector<float>& values) {
  return Values<float>(shape, values);
}

inline Tensor Int64s(const std::vector<std::int64_t>& values) {
  return Values<std::int64_t>({static_cast<std::int64_t>(values.size())}, values);
}

// 0, 1, 2, ...
template <typename T = float>
Tensor Iota(const Shape& shape) {
  Tensor t(DTypeOf<T>(), shape);
  T next{};
  for (T& v : t.values<T>()) v = next++;
  return t;
}

template <typename T>
std::vector<T> ToVector(const Tensor& t) {
  EXPECT_EQ(t.dtype(), DTypeOf<T>());
  return {t.values<const T>().begin(), t.values<const T>().end()};
}

inline Tensor Reordered(const Tensor& t, Layout layout) {
  if (t.layout() == layout) return t.Clone();
  Tensor to(t.dtype(), t.shape(), layout);
  // Blocked tensors are full of NaN, and channels-last ones of 255, where no channel is: nobody may
  // depend on that.
  std::memset(to.data<std::byte>(), 0xFF, to.bytes());
  if (t.size() == 0) return to;
  if (layout == Layout::kRowMajor) {
    RunKernel(*MakeReorder(t.shape(), t.layout(), layout), {t.view()}, to, 1);
    return to;
  }
  if (layout == Layout::kChannelsLast) {
    const ChannelsLastLayout l(t.shape());
    const auto* in = t.data<const std::uint8_t>();
    for (std::int64_t n = 0; n < l.images; ++n) {
      for (std::int64_t c = 0; c < l.channels; ++c) {
        for (std::int64_t i = 0; i < l.height * l.width; ++i) {
          to.data<std::uint8_t>()[n * l.image_stride + i * l.pixel_stride + c] = *in++;
        }
      }
    }
    return to;
  }
  const BlockedLayout b(t.shape());
  const float* in = t.data<const float>();
  float* out = to.data<float>();
  for (std::int64_t n = 0; n < b.images; ++n) {
    for (std::int64_t c = 0; c < b.channels; ++c) {
      for (std::int64_t y = 0; y < b.height; ++y) {
        for (std::int64_t x = 0; x < b.width; ++x) {
          out[n * b.image_stride + c / b.lanes * b.plane_stride + y * b.row_stride + x * b.lanes +
              c % b.lanes] = *in++;
        }
      }
    }
  }
  return to;
}

// One call of an operator.
class OpCall {
 public:
  struct Way {
    bool reference = false;
    bool blocked = false;  // inputs come blocked, or channels-last, where they can
    bool constant = true;  // inputs are known at plan time
    bool in_place = false;
    int threads = 1;
  };

  explicit OpCall(std::string type, int opset = 17) {
    node_.name = "test";
    node_.type = std::move(type);
    node_.opset = opset;
  }
  // Any integer is an ONNX int, any literal a string.
  template <typename T>
  OpCall& Attr(std::string name, T value) {
    if constexpr (std::is_integral_v<T>) {
      node_.attributes.Set(std::move(name), static_cast<std::int64_t>(value));
    } else if constexpr (std::is_same_v<T, const char*>) {
      node_.attributes.Set(std::move(name), std::string(value));
    } else {
      node_.attributes.Set(std::move(name), std::move(value));
    }
    return *this;
  }
  // An input whose value is known at plan time only if Way::constant says so, ...
  OpCall& In(Tensor tensor) { return Add(std::move(tensor), false); }
  // ... one that always is, and one that is left out.
  OpCall& Const(Tensor tensor) { return Add(std::move(tensor), true); }
  OpCall& Absent() { return Add({}, false); }
  OpCall& Outputs(std::size_t n) {
    num_outputs_ = n;
    return *this;
  }

  const OpDef& def() const {
    const OpDef* def = FindOp(node_.type);
    if (def == nullptr) throw Error("no operator " + node_.type);
    return *def;
  }

  std::vector<TensorInfo> Infer(bool constant = true) const {
    const std::vector<TensorInfo> inputs = Infos(constant);
    std::vector<TensorInfo> outputs(num_outputs_);
    def().infer({node_, inputs, outputs});
    for (const TensorInfo& out : outputs) EXPECT_TRUE(out.present);
    return outputs;
  }

  // Layouts that the operator chooses when every rank-4 float32 input comes blocked, and every
  // rank-4 input of bytes channels-last.
  LayoutChoice BlockedChoice() const {
    std::vector<TensorInfo> inputs = Infos(false);
    const std::vector<TensorInfo> outputs = Infer(false);
    for (TensorInfo& in : inputs) in.layout = FastLayout(in);
    LayoutChoice choice;
    if (def().layouts != nullptr) choice = def().layouts({node_, inputs, outputs});
    choice.inputs.resize(inputs.size(), Layout::kRowMajor);
    choice.outputs.resize(outputs.size(), Layout::kRowMajor);
    return choice;
  }

  std::optional<SpatialField> Field(std::size_t input = 0) const {
    if (def().field == nullptr) return std::nullopt;
    return def().field({node_, Infos(false), Infer(false)}, input);
  }

  std::string KernelName(const Way& way) const {
    std::string name;
    Run(way, &name);
    return name;
  }

  // The outputs, row-major.
  std::vector<Tensor> Run(const Way& way, std::string* kernel_name = nullptr) const {
    std::vector<TensorInfo> inputs = Infos(way.constant);
    std::vector<TensorInfo> outputs = Infer(way.constant);
    if (def().is_view) {
      Tensor out(outputs[0].dtype, outputs[0].shape);
      EXPECT_EQ(out.bytes(), inputs_[0]->bytes());
      std::memcpy(out.data<std::byte>(), inputs_[0]->data<std::byte>(), inputs_[0]->bytes());
      std::vector<Tensor> result;
      result.push_back(std::move(out));
      return result;
    }
    LayoutChoice choice;
    if (way.blocked && def().layouts != nullptr) {
      for (TensorInfo& in : inputs) in.layout = FastLayout(in);
      choice = def().layouts({node_, inputs, outputs});
    }
    choice.inputs.resize(inputs.size(), Layout::kRowMajor);
    choice.outputs.resize(outputs.size(), Layout::kRowMajor);

    std::vector<Tensor> in_tensors, out_tensors;
    std::vector<TensorView> in_views, out_views;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      inputs[i].layout = choice.inputs[i];
      in_tensors.push_back(inputs[i].present ? Reordered(*inputs_[i], choice.inputs[i]) : Tensor());
      in_views.push_back(in_tensors.back().view());
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      outputs[i].layout = choice.outputs[i];
      out_tensors.emplace_back(outputs[i].dtype, outputs[i].shape, choice.outputs[i]);
      std::memset(out_tensors.back().data<std::byte>(), 0xFF, out_tensors.back().bytes());
      out_views.push_back(out_tensors.back().view());
    }
    PackCache packs;
    const std::unique_ptr<Kernel> kernel =
        def().prepare({node_, inputs, outputs, packs, way.reference});
    if (kernel_name != nullptr) *kernel_name = kernel->name();
    for (std::size_t i = 0; way.in_place && i < inputs.size(); ++i) {
      if (!inputs[i].present || !kernel->CanOverwriteInput(i)) continue;
      EXPECT_EQ(in_tensors[i].bytes(), out_tensors[0].bytes());
      std::memcpy(out_tensors[0].data<std::byte>(), in_tensors[i].data<std::byte>(),
                  in_tensors[i].bytes());
      in_views[i].bytes = out_views[0].bytes;
      break;
    }
    TestThreads team(way.threads);
    const std::size_t stride = RoundUp(kernel->ScratchBytesPerThread(), kAlignment);
    AlignedBuffer scratch(stride * static_cast<std::size_t>(way.threads));
    if (scratch.size() > 0) std::memset(scratch.data(), 0xFF, scratch.size());
    kernel->Run({in_views, out_views, team, scratch.data(), stride});

    std::vector<Tensor> results;
    for (Tensor& t : out_tensors) results.push_back(Reordered(t, Layout::kRowMajor));
    return results;
  }

  // The reference's outputs, after a check that every other way of running gives the same:
  // within `tolerance` * max(1, |value|) for floats, equal for everything else.
  std::vector<Tensor> RunAll(double tolerance = 1e-6) const;
  Tensor RunOne(double tolerance = 1e-6) const { return std::move(RunAll(tolerance)[0]); }

 private:
  OpCall& Add(Tensor tensor, bool constant) {
    inputs_.push_back(std::make_shared<const Tensor>(std::move(tensor)));
    constant_.push_back(constant);
    return *this;
  }

  static Layout FastLayout(const TensorInfo& info) {
    const bool one_byte = info.dtype == DType::kUint8 || info.dtype == DType::kInt8;
    if (!info.present || info.shape.rank() != 4 || info.constant != nullptr) {
      return Layout::kRowMajor;
    }
    if (one_byte) return Layout::kChannelsLast;
    return info.dtype == DType::kFloat32 ? Layout::kBlocked : Layout::kRowMajor;
  }

  std::vector<TensorInfo> Infos(bool constant) const {
    std::vector<TensorInfo> infos;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Tensor& t = *inputs_[i];
      TensorInfo info;
      info.present = t.view().present();
      if (info.present) {
        info.dtype = t.dtype();
        info.shape = t.shape();
        if (constant || constant_[i]) info.constant = inputs_[i];
      }
      infos.push_back(std::move(info));
    }
    return infos;
  }

  OpNode node_;
  std::vector<std::shared_ptr<const Tensor>> inputs_;
  std::vector<bool> constant_;
  std::size_t num_outputs_ = 1;
};

// Expects equal types, shapes and values, floats within tolerance * max(1, |expected|).
inline void ExpectClose(const Tensor& actual, const Tensor& expected, double tolerance,
                        const std::string& what = "") {
  ASSERT_EQ(actual.dtype(), expected.dtype()) << what;
  ASSERT_EQ(actual.shape(), expected.shape()) << what;
  const auto compare = [&]<typename T>(T) {
    for (std::int64_t i = 0; i < expected.size(); ++i) {
      const auto a = static_cast<double>(actual.data<const T>()[i]);
      const auto e = static_cast<double>(expected.data<const T>()[i]);
      if (a == e || (std::isnan(a) && std::isnan(e))) continue;
      ASSERT_LE(std::abs(a - e), tolerance * std::max(1.0, std::abs(e)))
          << what << " at element " << i << ": " << a << " instead of " << e;
    }
  };
  if (expected.dtype() == DType::kFloat32) return compare(0.f);
  if (expected.dtype() == DType::kFloat64) return compare(0.0);
  ASSERT_EQ(std::memcmp(actual.data<std::byte>(), expected.data<std::byte>(), expected.bytes()), 0)
      << what;
}

inline std::vector<Tensor> OpCall::RunAll(double tolerance) const {
  std::vector<Tensor> expected = Run({.reference = true});
  if (def().is_view) return expected;
  const auto check = [&](const Way& way, const std::string& what) {
    const std::vector<Tensor> actual = Run(way);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ExpectClose(actual[i], expected[i], tolerance, what);
    }
  };
  check({}, "vector");
  check({.constant = false}, "vector, inputs unknown");
  check({.in_place = true}, "vector in place");
  check({.threads = 3}, "vector on 3 threads");
  check({.blocked = true, .constant = false}, "blocked");
  check({.blocked = true, .constant = true}, "blocked, constant inputs");
  check({.blocked = true, .constant = false, .in_place = true, .threads = 3},
        "blocked in place on 3 threads");
  return expected;
}

}  // namespace tessera
