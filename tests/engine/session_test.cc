#include "engine/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <thread>

#include "engine/cpu_budget.h"
#include "engine/thread_team.h"
#include "models/networks.h"
#include "ops/error.h"
#include "tests/allocation_count.h"
#include "tests/engine/test_model.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Ints = std::vector<std::int64_t>;

Tensor Noise(const Shape& shape, std::uint32_t seed) {
  return Tensor::FromVector<float>(
      shape, TestModel::NoiseValues(static_cast<std::size_t>(shape.NumElements()), seed));
}

std::vector<float> RunOne(Session& session, const Tensor& x, Parallel* parallel = nullptr) {
  std::vector<Tensor> outputs;
  session.Run(std::vector<NamedView>{{"x", x.view()}}, outputs, parallel);
  const auto values = outputs.at(0).values<float>();
  return {values.begin(), values.end()};
}

std::string RunError(Session& session, const std::vector<NamedView>& inputs) {
  std::vector<Tensor> outputs;
  try {
    session.Run(inputs, outputs);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

// A little of everything that the planner does: blocked and row-major kernels, a view, a value
// that is read twice, a residual, an output that is also read.
TestModel SmallNet() {
  TestModel m;
  m.Input("x", {1, 3, -1, -1});
  m.Noise("w1", {24, 3, 3, 3}, 0.3f).Noise("b1", {24}).Noise("slope", {24, 1, 1}, 0.5f);
  m.Noise("w2", {24, 24, 3, 3}, 0.1f).Noise("w3", {12, 24, 3, 3}, 0.1f);
  const Ints pads{1, 1, 1, 1};
  m.Node("Conv", {"x", "w1", "b1"}, {"c1"}, {{"pads", pads}});
  m.Node("PRelu", {"c1", "slope"}, {"p1"});
  m.Node("Conv", {"p1", "w2"}, {"c2"}, {{"pads", pads}});
  m.Node("Add", {"c2", "p1"}, {"r"});
  m.Node("Conv", {"r", "w3"}, {"c3"}, {{"pads", pads}});
  m.Node("DepthToSpace", {"c3"}, {"y"}, {{"blocksize", std::int64_t{2}}});
  m.Output("y");
  return m;
}

TEST(Session, FastAndReferenceAgree) {
  const TestModel m = SmallNet();
  const auto fast = m.Load(), reference = m.Load({.reference = true});
  for (const Shape& shape : {Shape{1, 3, 9, 14}, Shape{1, 3, 1, 1}, Shape{1, 3, 33, 40}}) {
    const Tensor x = Noise(shape, 1);
    const auto a = RunOne(*fast, x), b = RunOne(*reference, x);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-5) << i;
  }
}

TEST(Session, ResultDoesNotDependOnThreads) {
  const auto session = SmallNet().Load();
  const Tensor x = Noise({1, 3, 70, 45}, 2);
  const auto one = RunOne(*session, x);
  for (int threads : {1, 2, 5}) {
    ThreadTeam team(threads);
    EXPECT_EQ(RunOne(*session, x, &team), one) << threads;
  }
}

TEST(Session, SecondRunAllocatesNothing) {
  if (!kCountsAllocations) GTEST_SKIP() << "the sanitizers own the allocator";
  const auto session = SmallNet().Load();
  const Tensor x = Noise({1, 3, 20, 30}, 3);
  const NamedView inputs[] = {{"x", x.view()}};
  for (int threads : {1, 2}) {
    ThreadTeam team(threads);
    std::vector<Tensor> outputs;
    session->Run(inputs, outputs, &team);
    const float* memory = outputs[0].data<float>();
    EXPECT_EQ(CountAllocations([&] { session->Run(inputs, outputs, &team); }), 0)
        << threads << " threads";
    EXPECT_EQ(outputs[0].data<float>(), memory);
  }
}

TEST(Session, ManyThreadsMayRunIt) {
  const auto session = SmallNet().Load();
  std::vector<Tensor> inputs;
  std::vector<std::vector<float>> expected;
  for (std::uint32_t i = 0; i < 4; ++i) {
    inputs.push_back(Noise({1, 3, 10 + i, 12}, i));
    expected.push_back(RunOne(*session, inputs.back()));
  }
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < 6; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t i = 0; i < 20; ++i) {
          const std::size_t k = (i + t) % inputs.size();
          if (RunOne(*session, inputs[k]) != expected[k]) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Session, PlansThatFellOutAreMadeAgain) {
  const auto session = SmallNet().Load({.max_plans = 2});
  std::vector<std::vector<float>> first;
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t i = 0; i < 5; ++i) {
      const auto y = RunOne(*session, Noise({1, 3, 6 + i, 8}, i));
      if (round == 0) {
        first.push_back(y);
      } else {
        EXPECT_EQ(y, first[i]);
      }
    }
  }
}

TEST(Session, StaticShapesCanBeOverridden) {
  TestModel m;
  m.Input("x", {1, 3, 32, 32}).Noise("w", {4, 3, 3, 3});
  m.Node("Conv", {"x", "w"}, {"y"}).Output("y");
  const auto session = m.Load();
  EXPECT_EQ(session->InferOutputs(std::vector<Shape>{{1, 3, 32, 32}})[0].shape,
            Shape({1, 4, 30, 30}));
  EXPECT_EQ(session->InferOutputs(std::vector<Shape>{{2, 3, 17, 9}})[0].shape,
            Shape({2, 4, 15, 7}));
}

TEST(Session, ShapeChainsOfExportersVanish) {
  // y = Reshape(x, Concat(Shape(x)[0:1], [-1])), as exporters write x.flatten(1).
  TestModel m;
  m.Input("x", {-1, -1, -1}).Ints("zero", {0}).Ints("one", {1}).Ints("minus", {-1});
  m.Node("Shape", {"x"}, {"s"}).Node("Slice", {"s", "zero", "one"}, {"n"});
  m.Node("Concat", {"n", "minus"}, {"t"}, {{"axis", std::int64_t{0}}});
  m.Node("Reshape", {"x", "t"}, {"y"}).Output("y");
  const auto session = m.Load();
  EXPECT_EQ(session->InferOutputs(std::vector<Shape>{{2, 3, 5}})[0].shape, Shape({2, 15}));
  const Tensor x = Noise({2, 3, 5}, 1);
  const auto y = RunOne(*session, x);
  EXPECT_TRUE(std::equal(y.begin(), y.end(), x.data<float>()));
}

TEST(Session, OutputsMayBeInputsConstantsViewsAndTwice) {
  TestModel m;
  m.Input("x", {2, 3}).Floats("c", {2}, {5, 6}).Ints("shape", {6});
  m.Node("Identity", {"x"}, {"a"});
  m.Node("Reshape", {"x", "shape"}, {"b"});
  m.Node("Identity", {"c"}, {"d"});
  m.Node("Relu", {"x"}, {"e"}).Node("Identity", {"e"}, {"f"});
  for (const char* name : {"a", "b", "d", "e", "f", "x"}) m.Output(name);
  const Tensor x = Tensor::FromVector<float>({2, 3}, {1, -2, 3, -4, 5, -6});
  std::vector<Tensor> y;
  m.Load()->Run(std::vector<NamedView>{{"x", x.view()}}, y);
  using testing::ElementsAre;
  EXPECT_THAT(y[0].values<float>(), ElementsAre(1, -2, 3, -4, 5, -6));
  EXPECT_THAT(y[1].values<float>(), ElementsAre(1, -2, 3, -4, 5, -6));
  EXPECT_EQ(y[1].shape(), Shape({6}));
  EXPECT_THAT(y[2].values<float>(), ElementsAre(5, 6));
  EXPECT_THAT(y[3].values<float>(), ElementsAre(1, 0, 3, 0, 5, 0));
  EXPECT_THAT(y[4].values<float>(), ElementsAre(1, 0, 3, 0, 5, 0));
  EXPECT_THAT(y[5].values<float>(), ElementsAre(1, -2, 3, -4, 5, -6));
}

TEST(Session, InputsAreNeverOverwritten) {
  TestModel m;
  m.Input("x", {1, 4}).Node("Relu", {"x"}, {"a"}).Node("Neg", {"a"}, {"y"}).Output("y");
  const Tensor x = Tensor::FromVector<float>({1, 4}, {-1, 2, -3, 4});
  EXPECT_THAT(RunOne(*m.Load(), x), testing::ElementsAre(0, -2, 0, -4));
  EXPECT_THAT(x.values<float>(), testing::ElementsAre(-1, 2, -3, 4));
}

TEST(Session, AShortcutThatIsAlsoTheInputIsNotOverwritten) {
  for (const std::int64_t kernel : {3, 5}) {
    TestModel model;
    model.Input("x", {1, 3, -1, -1})
        .Noise("v", {32, 3, 3, 3})
        .Noise("w", {32, 32, kernel, kernel}, 0.1f)
        .Node("Conv", {"x", "v"}, {"r"}, {{"pads", Ints(4, 1)}})
        .Node("Conv", {"r", "w"}, {"c"}, {{"pads", Ints(4, kernel / 2)}})
        .Node("Add", {"c", "r"}, {"s"})
        .Node("Relu", {"s"}, {"y"})
        .Output("y");
    const Tensor x = Noise({1, 3, 40, 50}, 9);
    const std::vector<float> got = RunOne(*model.Load(), x);
    EXPECT_THAT(got, testing::Pointwise(testing::FloatNear(1e-3f),
                                        RunOne(*model.Load({.reference = true}), x)));
  }
}

TEST(Session, Float16ModelsTakeAndGiveFloat16) {
  TestModel m;
  m.Input("x", {3}, onnx::TensorProto::FLOAT16);
  auto* w = m.proto.mutable_graph()->add_initializer();
  w->set_name("w");
  w->set_data_type(onnx::TensorProto::FLOAT16);
  w->add_dims(1);
  w->add_int32_data(FloatToHalf(0.5f));
  m.Node("Mul", {"x", "w"}, {"y"}).Output("y", onnx::TensorProto::FLOAT16);
  const auto session = m.Load();
  Tensor half(DType::kFloat16, {3});
  for (int i = 0; i < 3; ++i) {
    half.data<std::uint16_t>()[i] = FloatToHalf(static_cast<float>(i) + 1);
  }
  const Tensor single = Tensor::FromVector<float>({3}, {1, 2, 3});
  for (const Tensor* x : std::initializer_list<const Tensor*>{&half, &single}) {
    std::vector<Tensor> y;
    session->Run(std::vector<NamedView>{{"x", x->view()}}, y);
    ASSERT_EQ(y[0].dtype(), DType::kFloat16);
    EXPECT_THAT(ToFloats(y[0].view()), testing::ElementsAre(0.5f, 1.0f, 1.5f));
  }
}

TEST(Session, EyeLikeOfFloat16FitsAWidenedGraph) {
  TestModel m;
  m.Input("x", {2, 2}, onnx::TensorProto::FLOAT16);
  m.Node("EyeLike", {"x"}, {"eye"}, {{"dtype", std::int64_t{onnx::TensorProto::FLOAT16}}});
  m.Node("Add", {"x", "eye"}, {"y"}).Output("y", onnx::TensorProto::FLOAT16);
  const Tensor x = Tensor::FromVector<float>({2, 2}, {1, 2, 3, 4});
  std::vector<Tensor> y;
  m.Load()->Run(std::vector<NamedView>{{"x", x.view()}}, y);
  EXPECT_THAT(ToFloats(y[0].view()), testing::ElementsAre(2, 2, 3, 5));
}

TEST(Session, CastToFloat16Rounds) {
  TestModel m;
  m.Input("x", {2}).Node("Cast", {"x"}, {"h"}, {{"to", std::int64_t{10}}});
  m.Node("Cast", {"h"}, {"y"}, {{"to", std::int64_t{1}}}).Output("y");
  const Tensor x = Tensor::FromVector<float>({2}, {1.0f + 0x1p-12f, 3.0f});
  EXPECT_THAT(RunOne(*m.Load(), x), testing::ElementsAre(1.0f, 3.0f));
}

TEST(Session, DenormalsAreZero) {
  TestModel m;
  m.Input("x", {1, 16, -1, -1}).Floats("half", {}, {0.5f}).Noise("w", {16, 16, 3, 3});
  m.Node("Mul", {"x", "half"}, {"h"});
  m.Node("Conv", {"h", "w"}, {"y"}, {{"pads", Ints{1, 1, 1, 1}}}).Output("y");
  const Tensor x(DType::kFloat32, {1, 16, 40, 40});
  std::fill(x.values<float>().begin(), x.values<float>().end(), 1e-39f);
  ThreadTeam team(2);
  for (const float v : RunOne(*m.Load(), x, &team)) ASSERT_EQ(v, 0.0f);
  // And only while a network runs.
  volatile float denormal = 1e-39f;
  EXPECT_NE(denormal * 0.5f, 0.0f);
}

TEST(Session, ErrorsNameWhatIsWrong) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("w", {4, 3, 3, 3});
  m.Node("Conv", {"x", "w"}, {"y"}).Output("y");
  const auto session = m.Load();
  const Tensor good = Noise({1, 3, 8, 8}, 1), channels = Noise({1, 2, 8, 8}, 1),
               rank = Noise({3, 8, 8}, 1), small = Noise({1, 3, 2, 2}, 1);
  EXPECT_THAT(RunError(*session, {{"x", channels.view()}}),
              AllOf(HasSubstr("test.onnx"), HasSubstr("'Conv_y' (Conv)"), HasSubstr("1x2x8x8"),
                    HasSubstr("4x3x3x3")));
  EXPECT_THAT(RunError(*session, {{"x", rank.view()}}), HasSubstr("4 dimensions"));
  EXPECT_THAT(RunError(*session, {{"x", small.view()}}), HasSubstr("Conv_y"));
  EXPECT_THAT(RunError(*session, {{"z", good.view()}}),
              AllOf(HasSubstr("'z'"), HasSubstr("inputs: x")));
  EXPECT_THAT(RunError(*session, {}), HasSubstr("'x' is missing"));
  EXPECT_THAT(RunError(*session, {{"x", good.view()}, {"x", good.view()}}), HasSubstr("twice"));
  const Tensor ints(DType::kInt32, {1, 3, 8, 8});
  EXPECT_THAT(RunError(*session, {{"x", ints.view()}}), HasSubstr("int32"));
  // And it still works after all that.
  EXPECT_EQ(RunError(*session, {{"x", good.view()}}), "no error");
}

TEST(Session, ErrorsOfPassesAndPlansNameTheNode) {
  TestModel alpha;
  alpha.Input("x", {1, 1, -1, -1}).Noise("w", {1, 1, 1, 1}).Node("Conv", {"x", "w"}, {"c"});
  alpha.Node("LeakyRelu", {"c"}, {"y"}, {{"alpha", "steep"}}).Output("y");
  const Tensor x = Noise({1, 1, 2, 2}, 1);
  EXPECT_THAT(
      RunError(*alpha.Load(), {{"x", x.view()}}),
      AllOf(HasSubstr("test.onnx"), HasSubstr("'LeakyRelu_y' (LeakyRelu)"), HasSubstr("'alpha'")));

  // 2^48 elements; tensors that come with lanes and pads of a blocked layout must not overflow.
  TestModel huge;
  huge.Input("x", {1, 1, -1, -1}).Ints("pads", {0, 0, 0, 0, 0, 0, 1 << 24, 1 << 24});
  huge.Node("Pad", {"x", "pads"}, {"p"}).Node("Relu", {"p"}, {"y"}).Output("y");
  EXPECT_THAT(RunError(*huge.Load(), {{"x", x.view()}}),
              AllOf(HasSubstr("'Pad_p' (Pad)"), HasSubstr("too large")));
}

TEST(Session, ErrorsOfKernelsNameTheNode) {
  TestModel m;
  m.Input("x", {3}).Input("i", {1}, onnx::TensorProto::INT64).Node("Gather", {"x", "i"}, {"y"});
  m.Output("y");
  const Tensor x = Noise({3}, 1), i = Tensor::FromVector<std::int64_t>({1}, {3});
  EXPECT_THAT(
      RunError(*m.Load(), {{"x", x.view()}, {"i", i.view()}}),
      AllOf(HasSubstr("test.onnx"), HasSubstr("'Gather_y' (Gather)"), HasSubstr("index 3")));
}

TEST(Session, OutputsHaveTheirDeclaredType) {
  TestModel m;
  m.Input("x", {1}).Node("Relu", {"x"}, {"y"}).Output("y", onnx::TensorProto::INT64);
  const Tensor x = Noise({1}, 1);
  EXPECT_THAT(RunError(*m.Load(), {{"x", x.view()}}),
              AllOf(HasSubstr("'y' is float32"), HasSubstr("int64")));
}

TEST(Session, UnknownPassesCannotBeDisabled) {
  EXPECT_THROW(SmallNet().Load({.disabled_passes = {"no-such-pass"}}), Error);
}

TEST(Session, ArenaIsReusedAlongAChain) {
  TestModel m;
  m.Input("x", {1, 16, -1, -1}).Noise("w", {16, 16, 3, 3}, 0.1f);
  std::string last = "x";
  for (int i = 0; i < 10; ++i) {
    const std::string next = StrCat("c", i);
    m.Node("Conv", {last, "w"}, {next}, {{"pads", Ints{1, 1, 1, 1}}});
    last = next;
  }
  m.Output(last);
  const std::size_t plane = StorageBytes(DType::kFloat32, Shape{1, 16, 64, 64}, Layout::kBlocked);
  EXPECT_LE(m.Load()->ArenaBytes(std::vector<Shape>{{1, 16, 64, 64}}), 3 * plane);
}

TEST(Session, AChainInPlaceLiesInTheOutput) {
  constexpr int kNodes = 2000;
  TestModel m;
  m.Input("x", {1, 8}).Output("y");
  for (int i = 0; i < kNodes; ++i) {
    m.Node(i % 2 == 0 ? "Neg" : "Relu", {i == 0 ? "x" : StrCat("t", i)},
           {i == kNodes - 1 ? "y" : StrCat("t", i + 1)});
  }
  const auto session = m.Load();
  EXPECT_EQ(session->ArenaBytes(std::vector<Shape>{{1, 8}}), 0u);
  const Tensor x = Tensor::FromVector<float>({1, 8}, {1, 2, 3, 4, -1, -2, -3, -4});
  std::vector<Tensor> y;
  session->Run(std::vector<NamedView>{{"x", x.view()}}, y);
  // The first Neg and Relu leave the magnitudes of what was negative; the next ones nothing.
  EXPECT_THAT(y[0].values<float>(), testing::Each(0.0f));
}

// Only what a convolution reads and writes, and the shortcut's picture.
TEST(Session, CompactNetworksTakeThreePlanesOfTheirFeatures) {
  SeededWeights weights(1);
  const std::string bytes =
      BuildNetwork(*FindNetwork("srvgg-x4v3"), weights, WeightStorage::kFloat32)
          .SerializeAsString();
  const auto session = Session::LoadFromMemory(std::as_bytes(std::span(bytes)), "srvgg-x4v3");
  const std::size_t plane = StorageBytes(DType::kFloat32, {1, 64, 256, 256}, Layout::kBlocked);
  EXPECT_LE(session->ArenaBytes(std::vector<Shape>{{1, 3, 256, 256}}), 3 * plane);
}

TEST(ThreadTeam, CallsEachIndexOnceWithThreadsOfItsOwn) {
  for (int threads : {1, 2, 4}) {
    ThreadTeam team(threads);
    ASSERT_EQ(team.num_threads(), threads);
    std::vector<std::atomic<int>> calls(1000);
    std::vector<std::atomic<int>> inside(static_cast<std::size_t>(threads));
    std::atomic<int> clashes{0};
    team.For(1000, [&](std::int64_t i, int thread) {
      if (inside[static_cast<std::size_t>(thread)].fetch_add(1) != 0) ++clashes;
      ++calls[static_cast<std::size_t>(i)];
      inside[static_cast<std::size_t>(thread)].fetch_sub(1);
    });
    EXPECT_EQ(clashes.load(), 0);
    for (const auto& c : calls) EXPECT_EQ(c.load(), 1);
  }
}

TEST(ThreadTeam, RunsManyShortLoops) {
  CpuBudget budget(4);
  ThreadTeam team(4, budget);
  const ParallelSection section(team);
  std::int64_t wrong = 0;
  for (std::int64_t round = 0; round < 5000; ++round) {
    const std::int64_t count = round % 7;
    std::atomic<std::int64_t> sum{0};
    team.For(count, [&](std::int64_t i, int) { sum += i + 1; });
    if (sum != count * (count + 1) / 2) ++wrong;
  }
  EXPECT_EQ(wrong, 0);
}

// Runs that end at the moment at which helpers look for more to do, one after the other: a team
// that is gone has no helpers, whatever they were at.
TEST(ThreadTeam, LetsGoOfItsHelpersAtAnyTime) {
  CpuBudget budget(2);
  std::atomic<int> calls{0};
  for (int round = 0; round < 50000; ++round) {
    ThreadTeam team(2, budget);
    const ParallelSection section(team);
    for (int loop = 0; loop < 3; ++loop) {
      team.For(64, [&](std::int64_t, int) { calls.fetch_add(1, std::memory_order_relaxed); });
    }
  }
  EXPECT_EQ(calls, 50000 * 3 * 64);
}

// Helpers that sleep, in a run and between runs, are woken.
TEST(ThreadTeam, WakesItsHelpers) {
  CpuBudget budget(3);
  ThreadTeam team(3, budget);
  const auto all_take_part = [&] {
    std::atomic<int> arrived{0};
    team.For(3, [&](std::int64_t, int) {
      ++arrived;
      while (arrived < 3) std::this_thread::yield();
    });
    return arrived == 3;
  };
  EXPECT_TRUE(all_take_part());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(all_take_part());
  const ParallelSection section(team);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(all_take_part());
}

// Callers of teams that want more than there is, at the same time: the CPUs of the budget are never
// exceeded, whoever comes and goes, and every index is run once.
TEST(ThreadTeam, TeamsKeepToTheBudget) {
  CpuBudget budget(3);
  std::atomic<int> at_work{0}, most{0};
  std::atomic<std::int64_t> calls{0};
  {
    std::vector<std::jthread> callers;
    for (int caller = 0; caller < 3; ++caller) {
      callers.emplace_back([&, caller] {
        for (int run = 0; run < 60; ++run) {
          ThreadTeam team(1 + (caller + run) % 4, budget);
          const ParallelSection section(team);
          for (int loop = 0; loop < 5; ++loop) {
            team.For(6, [&](std::int64_t, int) {
              const int now = ++at_work;
              for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
              }
              std::this_thread::sleep_for(std::chrono::microseconds(50));
              ++calls;
              --at_work;
            });
          }
        }
      });
    }
  }
  EXPECT_EQ(calls.load(), 3 * 60 * 5 * 6);
  EXPECT_LE(most.load(), 3);
  EXPECT_GE(most.load(), 2);
}

TEST(ThreadTeam, ALimitTakesCpusAway) {
  CpuBudget budget(4);
  budget.Limit(2);
  ThreadTeam team(4, budget);
  std::atomic<int> at_work{0}, most{0};
  team.For(100, [&](std::int64_t, int) {
    const int now = ++at_work;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --at_work;
  });
  EXPECT_EQ(most.load(), 2);
}

// A run that was started while others had all CPUs takes helpers as soon as there are some.
TEST(ThreadTeam, TakesHelpersThatBecomeFree) {
  CpuBudget budget(2);
  ThreadTeam first(2, budget), second(2, budget);
  const auto helped = [](ThreadTeam& team) {
    std::array<std::atomic<int>, 2> calls{};
    std::atomic<int> arrived{0};
    team.For(2, [&](std::int64_t, int thread) {
      ++calls[static_cast<std::size_t>(thread)];
      ++arrived;
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
      while (arrived < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    });
    return calls[1] > 0;
  };
  first.Begin();
  EXPECT_TRUE(helped(first));
  second.Begin();
  EXPECT_FALSE(helped(first));  // its helper's CPU is the second caller's now
  EXPECT_FALSE(helped(second));
  first.End();
  EXPECT_TRUE(helped(second));
  second.End();
}

// A static object made before the process's budget is destroyed after all that come later.
std::unique_ptr<ThreadTeam> static_team;

TEST(ThreadTeam, MayBeAStaticObject) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static_team = std::make_unique<ThreadTeam>(2);
        static_team->For(8, [](std::int64_t, int) {});
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(ThreadTeam, PassesOnExceptions) {
  ThreadTeam team(2);
  EXPECT_THROW(team.For(100, [](std::int64_t i, int) { Require(i != 57, "stop"); }), Error);
  std::atomic<int> calls{0};
  team.For(10, [&](std::int64_t, int) { ++calls; });
  EXPECT_EQ(calls.load(), 10);
}

TEST(CpuBudget, IsAtLeastOneAndWithinTheAffinityMask) {
  EXPECT_GE(AvailableCpus(), 1);
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  EXPECT_LE(AvailableCpus(), CPU_COUNT(&set));
}

}  // namespace
}  // namespace tessera
