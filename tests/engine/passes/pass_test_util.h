// What the tests of passes share. Each pass is tried on a graph where it applies and on near misses
// where it must not: the result stays the same either way, and the number of steps tells whether it
// fired.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/infer.h"
#include "engine/onnx_import.h"
#include "engine/passes.h"
#include "tests/engine/test_model.h"
#include "tests/every_target.h"

namespace tessera {

using Ints = std::vector<std::int64_t>;

// How often a pass rewrites this model at this input shape.
inline int Rewrites(const TestModel& m, std::string_view pass_name,
                    const Shape& shape = {1, 3, 8, 8}) {
  const std::string bytes = m.Bytes();
  Graph graph = ImportOnnx(std::as_bytes(std::span(bytes)), "test.onnx", {});
  FoldConstants(graph);
  for (const Pass& pass : AllPasses()) {
    if (pass.name != pass_name) continue;
    if (pass.stage == PassStage::kFast) {
      InferShapes(graph, std::vector<Shape>(graph.inputs.size(), shape));
    }
    return pass.run(graph);
  }
  ADD_FAILURE() << "no pass " << pass_name;
  return -1;
}

// Within 1e-5, where `relative` of the largest value if that is above 1.
inline void ExpectSameOutputs(const std::vector<Tensor>& a, const std::vector<Tensor>& b,
                              bool relative) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t k = 0; k < a.size(); ++k) {
    float largest = 1;
    for (const float value : b[k].values<float>()) {
      largest = std::max(largest, std::abs(value));
    }
    const float tolerance = 1e-5f * (relative ? largest : 1);
    for (std::int64_t i = 0; i < a[k].size(); ++i) {
      ASSERT_NEAR(a[k].data<float>()[i], b[k].data<float>()[i], tolerance) << k << " " << i;
    }
  }
}

// As by plain kernels without passes. On every target: what a pass may do depends on the number of
// lanes.
inline void ExpectSameWithoutPass(const TestModel& m, const std::string& pass,
                                  const Shape& shape = {1, 3, 8, 8}) {
  const Tensor x = Tensor::FromVector<float>(
      shape, TestModel::NoiseValues(static_cast<std::size_t>(shape.NumElements()), 9));
  std::vector<Tensor> plain;
  m.Load({.reference = true})->Run(std::vector<NamedView>{{"x", x.view()}}, plain);
  OnEveryTarget([&] {
    std::vector<Tensor> with, without;
    m.Load()->Run(std::vector<NamedView>{{"x", x.view()}}, with);
    m.Load({.disabled_passes = {pass}})->Run(std::vector<NamedView>{{"x", x.view()}}, without);
    ExpectSameOutputs(with, without, false);
    ExpectSameOutputs(with, plain, true);
  });
}

// x -> Conv -> c, 3 to 4 channels; tests add what follows.
inline TestModel ConvModel() {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("w", {4, 3, 3, 3}, 0.5f).Noise("b", {4});
  m.Node("Conv", {"x", "w", "b"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}});
  return m;
}

// Steps of one run, by operator.
inline int CountSteps(const TestModel& m, const std::string& type,
                      const SessionOptions& options = {}, const Shape& shape = {1, 3, 8, 8}) {
  const Tensor x(DType::kFloat32, shape);
  std::fill_n(x.data<float>(), x.size(), 0.5f);
  std::vector<Tensor> outputs;
  RunProfile profile;
  m.Load(options)->Run(std::vector<NamedView>{{"x", x.view()}}, outputs, nullptr, &profile);
  return static_cast<int>(std::count_if(profile.steps.begin(), profile.steps.end(),
                                        [&](const auto& step) { return step.type == type; }));
}

}  // namespace tessera
