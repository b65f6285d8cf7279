#include "apps/backend_tests.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <new>
#include <system_error>
#include <type_traits>

#include "engine/onnx_import.h"
#include "engine/session.h"
#include "engine/unsupported.h"
#include "ops/error.h"
#include "pipeline/display_name.h"
#include "simd/memory_limit.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char *kModelFile = "model.onnx", *kDownloadFile = "data.json";

bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool IsTest(const fs::path& folder) {
  return IsFile(folder / kModelFile) || IsFile(folder / kDownloadFile);
}

// A number of the flat JSON object that data.json is.
double NumberOf(const std::string& json, const std::string& key, double if_absent) {
  const std::size_t name = json.find('"' + key + '"'), colon = json.find(':', name);
  return colon == std::string::npos ? if_absent : std::strtod(json.c_str() + colon + 1, nullptr);
}

// That of all tests, but for those whose data.json says another.
BackendTolerance ToleranceOf(const fs::path& folder) {
  BackendTolerance tolerance;
  std::ifstream in(folder / kDownloadFile);
  const std::string json((std::istreambuf_iterator<char>(in)), {});
  tolerance.relative = NumberOf(json, "rtol", tolerance.relative);
  tolerance.absolute = NumberOf(json, "atol", tolerance.absolute);
  return tolerance;
}

// folder/PREFIX0.pb, folder/PREFIX1.pb, ...
std::vector<Tensor> ReadTensors(const fs::path& folder, const std::string& prefix) {
  std::vector<Tensor> tensors;
  for (;;) {
    const fs::path path = folder / (prefix + std::to_string(tensors.size()) + ".pb");
    if (!IsFile(path)) return tensors;
    tensors.push_back(ImportOnnxTensor(path));
  }
}

std::vector<fs::path> DataSets(const fs::path& folder) {
  std::vector<fs::path> sets;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("test_data_set") && entry.is_directory()) sets.push_back(entry.path());
  }
  std::ranges::sort(sets);
  return sets;
}

void RunDataSet(Session& session, const fs::path& set, const BackendTolerance& tolerance,
                Parallel& parallel) {
  const std::vector<Tensor> inputs = ReadTensors(set, "input_"), want = ReadTensors(set, "output_");
  const auto& names = session.inputs();
  Require(inputs.size() == names.size(), inputs.size(), " inputs for the model's ", names.size());
  std::vector<NamedView> views;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    views.push_back({names[i].name, inputs[i].view()});
  }
  std::vector<Tensor> got;
  session.Run(views, got, &parallel);
  Require(got.size() == want.size(), got.size(), " outputs, expected ", want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::string difference = FindDifference(got[i].view(), want[i].view(), tolerance);
    Require(difference.empty(), "output ", i, ": ", difference);
  }
}

BackendResult Run(const BackendTest& test, Parallel& parallel) {
  const fs::path model = test.folder / kModelFile;
  if (!IsFile(model)) {
    return {BackendOutcome::kNotSupported,
            StrCat("no ", kModelFile, " here; ", kDownloadFile, " says where to download it"),
            {}};
  }
  BackendResult result;
  const auto end = [&result](BackendOutcome outcome, const char* reason) {
    result.outcome = outcome;
    result.reason = reason;
    return result;
  };
  try {
    result.operators = OperatorsOfOnnx(model);
    const auto session = Session::Load(model);
    const std::vector<fs::path> sets = DataSets(test.folder);
    Require(!sets.empty(), "there is no test_data_set");
    for (const fs::path& set : sets) {
      RunDataSet(*session, set, ToleranceOf(test.folder), parallel);
    }
    return result;
  } catch (const Unsupported& error) {
    return end(BackendOutcome::kNotSupported, error.what());
  } catch (const std::bad_alloc& error) {
    return end(BackendOutcome::kFailed, MemoryMessage(error).c_str());
  } catch (const std::exception& error) {
    return end(BackendOutcome::kFailed, error.what());
  }
}

// Without what goes without saying: the test's own folder, which is in its name, and the model.
std::string Shorten(std::string message, const fs::path& folder) {
  const std::string prefix = folder.string() + "/", model = StrCat(prefix, kModelFile, ": ");
  if (message.starts_with(model)) message.erase(0, model.size());
  for (std::size_t at; (at = message.find(prefix)) != std::string::npos;) {
    message.erase(at, prefix.size());
  }
  return OneLine(message);
}

template <typename T>
bool Equal(T got, T want, const BackendTolerance& tolerance) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
    if (std::isinf(want) || std::isinf(got)) return got == want;
    const double g = got, w = want;
    return std::abs(g - w) <= tolerance.absolute + tolerance.relative * std::abs(w);
  } else {
    return got == want;
  }
}

template <typename T>
std::string FindDifference(const T* got, const T* want, std::int64_t size,
                           const BackendTolerance& tolerance) {
  std::int64_t different = 0, first = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    if (!Equal(got[i], want[i], tolerance) && different++ == 0) first = i;
  }
  if (different == 0) return {};
  // As numbers, not as characters.
  return StrCat(different, " of ", size, " values differ, the first at ", first, ": ", +got[first],
                ", expected ", +want[first]);
}

}  // namespace

std::vector<BackendTest> FindBackendTests(const fs::path& folder) {
  std::error_code error;
  Require(fs::is_directory(folder, error), DisplayName(folder), ": is no folder");
  const fs::path root = fs::canonical(folder, error);
  Require(!error, DisplayName(folder), ": cannot be read: ", error.message());
  if (IsTest(root)) return {{root.filename(), root}};
  std::vector<BackendTest> tests;
  fs::recursive_directory_iterator it(root, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code ignored;  // what cannot be looked at is no test
    if (!it->is_directory(ignored) || !IsTest(it->path())) continue;
    tests.push_back({it->path().lexically_relative(root), it->path()});
    it.disable_recursion_pending();
  }
  Require(!error, DisplayName(folder), ": cannot be read: ", error.message());
  std::ranges::sort(tests, {}, &BackendTest::name);
  return tests;
}

BackendResult RunBackendTest(const BackendTest& test, Parallel& parallel) {
  BackendResult result = Run(test, parallel);
  result.reason = Shorten(std::move(result.reason), test.folder);
  return result;
}

std::string ToString(const BackendResult& result) {
  switch (result.outcome) {
    case BackendOutcome::kPassed:
      return "passed";
    case BackendOutcome::kFailed:
      return "failed: " + result.reason;
    case BackendOutcome::kNotSupported:
      return "not supported: " + result.reason;
  }
  return {};
}

void BackendCounts::Add(BackendOutcome outcome) {
  switch (outcome) {
    case BackendOutcome::kPassed:
      ++passed;
      break;
    case BackendOutcome::kFailed:
      ++failed;
      break;
    case BackendOutcome::kNotSupported:
      ++not_supported;
      break;
  }
}

std::string ToString(const BackendCounts& counts) {
  return StrCat(counts.passed, " passed, ", counts.failed, " failed, ", counts.not_supported,
                " not supported");
}

std::string FindDifference(const TensorView& got, const TensorView& want,
                           const BackendTolerance& tolerance) {
  if (got.dtype != want.dtype) return StrCat("is ", got.dtype, ", expected ", want.dtype);
  if (!(got.shape == want.shape)) {
    return StrCat("has shape ", got.shape, ", expected ", want.shape);
  }
  const auto find = [&]<typename T>() {
    return FindDifference(got.data<T>(), want.data<T>(), want.size(), tolerance);
  };
  switch (got.dtype) {
    case DType::kFloat32:
      return find.operator()<float>();
    case DType::kFloat64:
      return find.operator()<double>();
    case DType::kFloat16: {
      const std::vector<float> g = ToFloats(got), w = ToFloats(want);
      return FindDifference(g.data(), w.data(), want.size(), tolerance);
    }
    case DType::kInt8:
      return find.operator()<std::int8_t>();
    case DType::kInt16:
      return find.operator()<std::int16_t>();
    case DType::kInt32:
      return find.operator()<std::int32_t>();
    case DType::kInt64:
      return find.operator()<std::int64_t>();
    case DType::kUint8:
    case DType::kBool:
      return find.operator()<std::uint8_t>();
    case DType::kUint16:
      return find.operator()<std::uint16_t>();
    case DType::kUint32:
      return find.operator()<std::uint32_t>();
    case DType::kUint64:
      return find.operator()<std::uint64_t>();
  }
  return StrCat("has type ", got.dtype, ", which cannot be compared");
}

}  // namespace tessera
