// What the tests of the quantizer share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/infer.h"
#include "engine/onnx_export.h"
#include "engine/onnx_import.h"
#include "engine/quantization/quantizer.h"
#include "engine/quantization/sample_runner.h"
#include "tests/engine/test_model.h"

namespace tessera {

inline Graph ImportTestModel(const TestModel& m) {
  const std::string bytes = m.Bytes();
  return ImportOnnx(std::as_bytes(std::span(bytes)), "test.onnx", {});
}

// Noise in [-1, 1), other for each sample and seed.
inline std::vector<Sample> NoiseSamples(const Shape& shape, int count, unsigned seed = 1) {
  std::vector<Sample> samples(static_cast<std::size_t>(count));
  for (Sample& s : samples) {
    const auto n = static_cast<std::size_t>(shape.NumElements());
    s.push_back(Tensor::FromVector(shape, TestModel::NoiseValues(n, ++seed * 7919)));
  }
  return samples;
}

// Root of the mean squared difference of output 0, relative to the reference's deviation from 0.
inline double RelativeError(std::span<const Outputs> reference, std::span<const Outputs> other) {
  double error = 0, power = 0;
  for (std::size_t s = 0; s < reference.size(); ++s) {
    const auto a = reference[s][0].values<float>(), b = other[s][0].values<float>();
    EXPECT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      error += (a[i] - b[i]) * (a[i] - b[i]);
      power += a[i] * a[i];
    }
  }
  return std::sqrt(error / power);
}

// The same after a way through a file.
inline Graph Reimport(const Graph& graph) {
  const std::string bytes = ExportOnnx(graph);
  return ImportOnnx(std::as_bytes(std::span(bytes)), "quantized.onnx", {});
}

inline int CountNodes(const Graph& graph, std::string_view type) {
  return static_cast<int>(
      std::ranges::count_if(graph.nodes, [&](const Node& n) { return n.op.type == type; }));
}

inline const Node* FindNode(const Graph& graph, std::string_view name) {
  const auto it =
      std::ranges::find_if(graph.nodes, [&](const Node& n) { return n.op.name == name; });
  return it == graph.nodes.end() ? nullptr : &*it;
}

// The types of the nodes that read output 0 of a node, and of the one that makes its input i.
inline std::multiset<std::string> Readers(const Graph& graph, const Node& node) {
  std::multiset<std::string> types;
  const auto consumers = graph.Consumers();
  for (int n : consumers[static_cast<std::size_t>(node.outputs[0])]) {
    types.insert(graph.nodes[static_cast<std::size_t>(n)].op.type);
  }
  return types;
}
inline std::string Maker(const Graph& graph, const Node& node, std::size_t i) {
  const int n = graph.Producers()[static_cast<std::size_t>(node.inputs[i])];
  return n < 0 ? "" : graph.nodes[static_cast<std::size_t>(n)].op.type;
}

}  // namespace tessera
