// ONNX's backend tests: folders with a model, inputs, and the outputs that any runtime has to give
// for them.
//
//   test_relu/model.onnx
//   test_relu/test_data_set_0/input_0.pb, output_0.pb    one tensor each; any number of sets
//
// Source: onnx/backend/test/runner of the ONNX project.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "ops/parallel.h"
#include "ops/tensor.h"

namespace tessera {

struct BackendTest {
  std::string name;  // its folder, relative to where it was looked for: "node/test_relu"
  std::filesystem::path folder;
};

// All tests in `folder` and below, or `folder` itself if it is one, sorted by name: folders that
// hold model.onnx, or the data.json with which ONNX says where to download it.
// Throws Error if the folder cannot be read.
std::vector<BackendTest> FindBackendTests(const std::filesystem::path& folder);

enum class BackendOutcome { kPassed, kFailed, kNotSupported };

struct BackendResult {
  BackendOutcome outcome = BackendOutcome::kPassed;
  std::string reason;               // one line; empty if it passed
  std::set<std::string> operators;  // of the model
};

// Loads the model and compares its outputs with all sets of expected ones. Not supported are models
// that Session::Load refuses as Unsupported, and those that have to be downloaded first.
BackendResult RunBackendTest(const BackendTest& test, Parallel& parallel);

// "passed", "failed: why", "not supported: why".
std::string ToString(const BackendResult& result);

struct BackendCounts {
  int passed = 0, failed = 0, not_supported = 0;

  void Add(BackendOutcome outcome);
};

// "12 passed, 0 failed, 3 not supported".
std::string ToString(const BackendCounts& counts);

// Where floats count as equal: |got - want| <= absolute + relative * |want|.
struct BackendTolerance {
  double relative = 1e-3, absolute = 1e-7;
};

// What is different between two row-major tensors, or an empty string. Types and shapes have to be
// the same, integers and truth values equal, floats within the tolerance; infinities equal only
// themselves, and NaN equals NaN.
std::string FindDifference(const TensorView& got, const TensorView& want,
                           const BackendTolerance& tolerance);

}  // namespace tessera
