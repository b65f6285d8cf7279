// What onnx-bench has measured, as text, as JSON, and as a trace.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/session.h"
#include "ops/tensor.h"

namespace tessera {

struct BenchReport {
  struct Output {
    std::string name;
    DType dtype = DType::kFloat32;
    Shape shape;
  };
  std::string model;   // file name
  std::string target;  // instruction set of the kernels
  int threads = 1;
  double load_ms = 0;           // from the file to what is ready to run
  std::vector<double> runs_ms;  // at least one, ascending
  std::size_t arena_bytes = 0;  // intermediate buffers of a run
  // Of the network, and as kernels keep them for this run.
  std::size_t weight_bytes = 0, packed_bytes = 0;
  std::size_t peak_rss_bytes = 0;
  std::vector<Output> outputs;
  std::optional<RunProfile> profile;
};

// "tessera x4v3.onnx threads=1 load=..ms min=..ms p50=..ms mean=..ms iters=..", a line
// "output NAME float32 1x3x64x64" for each output, one on memory (buffers, weights, weights as
// kernels keep them, peak), and a table of the profile's steps.
std::string ToText(const BenchReport& report);

// The same as one JSON object on one line: model, target, threads, load_ms, min_ms, p50_ms,
// mean_ms, iterations, arena_bytes, weight_bytes, packed_bytes, peak_rss_bytes, outputs [{name,
// dtype, shape}] and, of a profile, steps
// [{node, type, kernel, layout, shape, start_ms, ms, share, gflops, gbytes_per_s}].
std::string ToJson(const BenchReport& report);

// The profile as chrome://tracing and Perfetto read it (Trace Event Format, complete events; times
// in microseconds).
std::string ToTrace(const BenchReport& report);

}  // namespace tessera
