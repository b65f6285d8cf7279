// Loading and running networks when memory runs out at any point: an Error that says so, nothing
// that is lost, and the next run as if nothing had been.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/session.h"
#include "ops/error.h"
#include "ops/parallel.h"
#include "tests/allocation_count.h"
#include "tests/engine/test_model.h"

namespace tessera {
namespace {

using testing::HasSubstr;

constexpr int kInt64 = onnx::TensorProto::INT64, kBool = onnx::TensorProto::BOOL;

// Convolutions, shapes that follow from values, and a loop.
TestModel EverythingModel() {
  TestModel body, m;
  body.Input("i", {}, kInt64).Input("go", {}, kBool).Input("v", {-1, -1});
  body.Node("Concat", {"v", "v"}, {"longer"}, {{"axis", std::int64_t{0}}});
  body.Output("go", kBool).Output("longer");
  m.Input("x", {1, 3, 8, 8}).Noise("w", {4, 3, 3, 3}).Noise("b", {4}).Ints("trips", {2});
  m.Node("Conv", {"x", "w", "b"}, {"c"}, {{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}});
  m.Node("Relu", {"c"}, {"r"}).Node("NonZero", {"r"}, {"n"});
  m.Node("Loop", {"trips", "", "n"}, {"y"}).Body("body", body).Output("r").Output("y", kInt64);
  return m;
}

// Protobuf loses the new element of a list that cannot grow (RepeatedPtrFieldBase, 3.21).
constexpr int kLostByProtobuf = 1;

TEST(AllocationFailure, OfLoadingIsAnErrorAndLosesNothing) {
  if (!kCountsAllocations) GTEST_SKIP() << "a sanitizer owns the allocator";
  const std::string bytes = EverythingModel().Bytes();
  std::string text;
  text.reserve(1000);
  const auto load = [&] {
    text.clear();
    try {
      Session::LoadFromMemory(std::as_bytes(std::span(bytes)), "test.onnx");
    } catch (const Error& e) {
      text.assign(e.what(), std::min<std::size_t>(900, std::strlen(e.what())));
    } catch (const std::exception& e) {
      text = "no Error";
    }
  };
  load();  // what is made once for all is there
  ASSERT_EQ(text, "");
  int points = 0, errors = 0;
  for (int n = 0;; ++n, ++points) {
    const FailedAllocation failed = FailAllocation(n, load);
    if (!failed.happened) break;
    // Some can be done without, as those for looking at what memory there is.
    if (!text.empty()) {
      ++errors;
      ASSERT_THAT(text, HasSubstr("memory")) << "at allocation " << n;
    }
    ASSERT_LE(failed.left, kLostByProtobuf) << "at allocation " << n << ": " << text;
  }
  EXPECT_GT(errors, points / 2);
  EXPECT_GT(points, 50);
  EXPECT_EQ(text, "");
}

TEST(AllocationFailure, OfARunIsAnErrorAndTheNextRunIsRight) {
  if (!kCountsAllocations) GTEST_SKIP() << "a sanitizer owns the allocator";
  const auto session = EverythingModel().Load();
  const Tensor x(DType::kFloat32, {1, 3, 8, 8});
  const std::vector<float> noise = TestModel::NoiseValues(3 * 64, 7);
  std::copy(noise.begin(), noise.end(), x.data<float>());
  const std::vector<NamedView> inputs = {{"x", x.view()}};
  SerialParallel serial;
  std::vector<Tensor> expected;
  session->Run(inputs, expected, &serial);
  std::string text;
  text.reserve(1000);
  int points = 0;
  for (int n = 0;; ++n, ++points) {
    std::vector<Tensor> outputs;
    text.clear();
    const FailedAllocation failed = FailAllocation(n, [&] {
      try {
        session->Run(inputs, outputs, &serial);
      } catch (const Error& e) {
        text.assign(e.what(), std::min<std::size_t>(900, std::strlen(e.what())));
      } catch (const std::exception& e) {
        text = "no Error";
      }
    });
    if (!failed.happened) break;
    ASSERT_THAT(text, HasSubstr("memory")) << "at allocation " << n;
    session->Run(inputs, outputs, &serial);
    ASSERT_EQ(outputs[1].shape(), expected[1].shape());
    ASSERT_EQ(std::memcmp(outputs[0].data<float>(), expected[0].data<float>(), expected[0].bytes()),
              0);
  }
  EXPECT_GT(points, 20);
}

}  // namespace
}  // namespace tessera
