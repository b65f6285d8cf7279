// Operators that move uint8, in both layouts (OpCall::RunAll compares them): the same elements go
// where those of float32 go.
#include <algorithm>
#include <span>

#include "tests/every_target.h"
#include "tests/ops/byte_tensors.h"
#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

using Ints = std::vector<std::int64_t>;

Tensor AsFloats(const Tensor& bytes) {
  Tensor floats(DType::kFloat32, bytes.shape());
  std::copy_n(bytes.data<std::uint8_t>(), bytes.size(), floats.data<float>());
  return floats;
}

// Calls with `inputs` as bytes and as floats, and compares what comes out.
void ExpectMovesLikeFloats(const OpCall& call, std::span<const Tensor> inputs,
                           Layout wanted = Layout::kChannelsLast) {
  OpCall bytes = call, floats = call;
  for (const Tensor& t : inputs) {
    bytes.In(t.Clone());
    floats.In(AsFloats(t));
  }
  EXPECT_EQ(bytes.BlockedChoice().outputs[0], wanted);
  const Tensor expected = std::move(floats.Run({.reference = true})[0]);
  OnEveryTarget([&] { ExpectClose(AsFloats(bytes.RunOne(0)), expected, 0); });
}

TEST(ByteMovers, ConcatOfAnyAxis) {
  std::mt19937 random(1);
  for (const std::vector<std::int64_t>& channels :
       {Ints{3}, Ints{1, 2}, Ints{3, 5}, Ints{16, 32}, Ints{24, 7, 33}, Ints{20, 20, 20, 20}}) {
    for (const int images : {1, 2}) {
      std::vector<Tensor> inputs;
      for (const std::int64_t c : channels) {
        inputs.push_back(RandomBytes({images, c, 5, 70}, DType::kUint8, random));
      }
      OpCall call("Concat");
      call.Attr("axis", 1);
      ExpectMovesLikeFloats(call, inputs);
    }
  }
  for (const int axis : {0, 2, 3}) {
    for (const std::int64_t channels : {3, 20}) {
      std::vector<Tensor> inputs;
      for (const std::int64_t size : {4, 1, 7}) {
        Shape shape{2, channels, 5, 6};
        shape[axis] = size;
        inputs.push_back(RandomBytes(shape, DType::kUint8, random));
      }
      OpCall call("Concat");
      call.Attr("axis", axis);
      ExpectMovesLikeFloats(call, inputs);
    }
  }
}

TEST(ByteMovers, NearestResize) {
  std::mt19937 random(2);
  for (const std::int64_t channels : {3, 4, 16, 20, 40, 64}) {
    for (const auto& [height, width] :
         {std::pair{2.f, 2.f}, {4.f, 4.f}, {1.5f, 0.5f}, {1.f, 3.f}}) {
      const Tensor x = RandomBytes({2, channels, 6, 8}, DType::kUint8, random);
      const auto call = [&, h = height, w = width](Tensor in) {
        OpCall resize("Resize");
        resize.In(std::move(in)).Absent().Const(Floats({4}, {1, 1, h, w}));
        return resize;
      };
      EXPECT_EQ(call(x.Clone()).BlockedChoice().outputs[0], Layout::kChannelsLast);
      const Tensor expected = std::move(call(AsFloats(x)).Run({.reference = true})[0]);
      ExpectClose(AsFloats(call(x.Clone()).RunOne(0)), expected, 0);
    }
  }
}

// Along the channels, or by another mode: row-major.
TEST(ByteMovers, OtherResizes) {
  std::mt19937 random(3);
  OpCall channels("Resize");
  channels.In(RandomBytes({1, 3, 4, 5}, DType::kUint8, random)).Absent();
  channels.Const(Floats({4}, {1, 2, 1, 1}));
  EXPECT_EQ(channels.BlockedChoice().outputs[0], Layout::kRowMajor);
  channels.RunAll(0);
  OpCall linear("Resize");
  linear.In(RandomBytes({1, 3, 4, 5}, DType::kUint8, random)).Absent();
  linear.Const(Floats({4}, {1, 1, 2, 2})).Attr("mode", "linear");
  EXPECT_EQ(linear.BlockedChoice().outputs[0], Layout::kRowMajor);
  linear.RunAll(0);
}

TEST(ByteMovers, MaxPool) {
  std::mt19937 random(4);
  for (const std::int64_t channels : {1, 4, 5, 16, 32, 48, 70}) {
    for (int round = 0; round < 6; ++round) {
      const std::int64_t k = 1 + static_cast<std::int64_t>(random() % 4);
      const std::int64_t pad = static_cast<std::int64_t>(random()) % k;
      OpCall call("MaxPool");
      call.Attr("kernel_shape", Ints{k, k}).Attr("pads", Ints{pad, pad, 0, pad});
      call.Attr("strides", Ints{1 + static_cast<std::int64_t>(random() % 2), 2});
      call.Attr("dilations", Ints{1, 1 + static_cast<std::int64_t>(random() % 2)});
      const Tensor x = RandomBytes({2, channels, 9, 17}, DType::kUint8, random);
      ExpectMovesLikeFloats(call, {&x, 1});
    }
  }
}

TEST(ByteMovers, MaxPoolOfInt8AndWithIndicesIsRowMajor) {
  std::mt19937 random(5);
  OpCall bytes("MaxPool");
  bytes.Attr("kernel_shape", Ints{2, 2}).In(RandomBytes({1, 3, 5, 6}, DType::kInt8, random));
  EXPECT_EQ(bytes.BlockedChoice().inputs[0], Layout::kRowMajor);
  const Tensor y = bytes.RunOne(0);
  EXPECT_EQ(y.dtype(), DType::kInt8);
  OpCall indices("MaxPool");
  indices.Attr("kernel_shape", Ints{2, 2}).In(RandomBytes({1, 3, 5, 6}, DType::kUint8, random));
  indices.Outputs(2);
  EXPECT_EQ(indices.BlockedChoice().inputs[0], Layout::kRowMajor);
  indices.RunAll(0);
}

TEST(ByteMovers, TransposeSliceAndTheirKinStayRowMajor) {
  std::mt19937 random(6);
  const Tensor x = RandomBytes({2, 6, 5, 7}, DType::kUint8, random);
  OpCall transpose("Transpose");
  transpose.Attr("perm", Ints{0, 2, 3, 1});
  ExpectMovesLikeFloats(transpose, {&x, 1}, Layout::kRowMajor);
  OpCall fold("SpaceToDepth");
  fold.Attr("blocksize", 1);
  ExpectMovesLikeFloats(fold, {&x, 1}, Layout::kRowMajor);
  OpCall cast("Cast");
  cast.In(x.Clone()).Attr("to", 1);
  EXPECT_EQ(cast.BlockedChoice().outputs[0], Layout::kRowMajor);
  cast.RunAll(0);
  OpCall clip("Clip");
  clip.In(x.Clone()).Const(Values<std::uint8_t>({}, {20})).Const(Values<std::uint8_t>({}, {200}));
  EXPECT_EQ(clip.BlockedChoice().outputs[0], Layout::kRowMajor);
  clip.RunAll(0);
}

}  // namespace
}  // namespace tessera
