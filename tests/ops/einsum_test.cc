#include <map>
#include <string>

#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

using F = std::vector<float>;

// The sum over all values of all letters, one after the other. No ellipsis; dimensions of 1 are
// broadcast.
Tensor Expected(const std::vector<std::string>& terms, const std::string& output,
                const std::vector<Tensor>& operands) {
  std::map<char, std::int64_t> sizes, at;
  for (std::size_t k = 0; k < terms.size(); ++k) {
    for (std::size_t d = 0; d < terms[k].size(); ++d) {
      const std::int64_t dim = operands[k].shape()[static_cast<int>(d)];
      std::int64_t& size = sizes.try_emplace(terms[k][d], 1).first->second;
      if (dim != 1) size = dim;
    }
  }
  Shape out;
  for (const char c : output) out.PushBack(sizes.at(c));
  std::vector<double> sums(static_cast<std::size_t>(out.NumElements()));
  const auto offset = [&](const std::string& term, const Shape& shape) {
    std::int64_t o = 0;
    for (std::size_t d = 0; d < term.size(); ++d) {
      const std::int64_t dim = shape[static_cast<int>(d)];
      o = o * dim + (dim == 1 ? 0 : at[term[d]]);
    }
    return o;
  };
  std::int64_t total = 1;
  for (const auto& [c, size] : sizes) total *= size;
  for (std::int64_t i = 0; i < total; ++i) {
    std::int64_t rest = i;
    for (const auto& [c, size] : sizes) at[c] = rest % size, rest /= size;
    double product = 1;
    for (std::size_t k = 0; k < terms.size(); ++k) {
      product *=
          static_cast<double>(operands[k].data<float>()[offset(terms[k], operands[k].shape())]);
    }
    sums[static_cast<std::size_t>(offset(output, out))] += product;
  }
  Tensor y(DType::kFloat32, out);
  for (std::size_t i = 0; i < sums.size(); ++i) y.data<float>()[i] = static_cast<float>(sums[i]);
  return y;
}

TEST(Einsum, AgreesWithPlainLoops) {
  struct Case {
    std::vector<std::string> terms;
    std::string output;
    std::vector<Shape> shapes;
  };
  const Case cases[] = {
      {{"ij"}, "ji", {{3, 5}}},
      {{"ij"}, "", {{3, 5}}},
      {{"ij"}, "j", {{3, 50}}},
      {{"ii"}, "i", {{4, 4}}},
      {{"ii"}, "", {{4, 4}}},
      {{"iji"}, "j", {{4, 3, 4}}},
      {{"i", "i"}, "", {{60}, {60}}},
      {{"i", "j"}, "ij", {{6}, {7}}},
      {{"i", "j"}, "ji", {{6}, {7}}},
      {{"ij", "jk"}, "ik", {{9, 20}, {20, 33}}},
      {{"ij", "kj"}, "ik", {{9, 20}, {33, 20}}},
      {{"ji", "jk"}, "ki", {{20, 9}, {20, 33}}},
      {{"bhid", "bhjd"}, "bhij", {{2, 3, 7, 8}, {2, 3, 5, 8}}},
      {{"bhij", "bhjd"}, "bihd", {{2, 3, 7, 5}, {2, 3, 5, 8}}},
      {{"bij", "bjk"}, "bik", {{3, 4, 5}, {1, 5, 6}}},
      {{"ij", "ij"}, "ij", {{4, 5}, {4, 5}}},
      {{"ij", "j"}, "ij", {{4, 5}, {5}}},
      {{"ij", "ik"}, "i", {{4, 5}, {4, 6}}},
      {{"abc", "cd"}, "da", {{2, 3, 4}, {4, 5}}},
      {{"ij", "jk", "kl"}, "il", {{3, 4}, {4, 5}, {5, 6}}},
      {{"ij", "ik", "jk"}, "", {{3, 4}, {3, 5}, {4, 5}}},
      {{"bi", "bj", "bk"}, "bijk", {{2, 3}, {2, 4}, {2, 5}}},
      {{"i", "i", "i", "j"}, "ij", {{3}, {1}, {3}, {4}}},
      {{"ii", "ij"}, "j", {{3, 3}, {3, 4}}},
      {{"iI", "Ij"}, "ij", {{3, 4}, {4, 5}}},
      {{"i", ""}, "i", {{3}, {}}},
      {{"ij", "jk"}, "ik", {{3, 0}, {0, 4}}},
      {{"ij", "jk"}, "ik", {{0, 3}, {3, 4}}},
  };
  std::mt19937 random(33);
  for (const Case& c : cases) {
    std::string equation;
    std::vector<Tensor> operands;
    OpCall call("Einsum", 13);
    for (std::size_t k = 0; k < c.terms.size(); ++k) {
      // Blanks mean nothing.
      equation += (k > 0 ? " , " : "") + c.terms[k];
      operands.push_back(RandomTensor(c.shapes[k], random));
      call.In(operands.back().Clone());
    }
    equation += " -> " + c.output;
    call.Attr("equation", equation);
    ExpectClose(call.RunOne(2e-6), Expected(c.terms, c.output, operands), 2e-6, equation);
  }
}

TEST(Einsum, WritesItsOutputInAlphabeticalOrderByDefault) {
  const auto run = [](const char* equation, Shape shape) {
    return OpCall("Einsum", 13).Attr("equation", equation).In(Iota(shape)).RunOne();
  };
  EXPECT_EQ(ToVector<float>(run("ba", {2, 3})), (F{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(ToVector<float>(run("ii", {3, 3})), (F{12}));
  EXPECT_EQ(run("ii", {3, 3}).shape(), Shape{});
  EXPECT_EQ(run("iij", {3, 3, 5}).shape(), (Shape{5}));
  EXPECT_EQ(
      OpCall("Einsum").Attr("equation", "ij,jk").In(Iota({2, 3})).In(Iota({3, 4})).RunOne().shape(),
      (Shape{2, 4}));
}

TEST(Einsum, BroadcastsEllipses) {
  std::mt19937 random(34);
  const Tensor a = RandomTensor({2, 1, 3, 4}, random), b = RandomTensor({5, 4, 6}, random);
  const Tensor expected = Expected({"xyij", "yjk"}, "xyik", [&] {
    std::vector<Tensor> v;
    v.push_back(a.Clone());
    v.push_back(b.Clone());
    return v;
  }());
  for (const char* equation : {"...ij,...jk->...ik", "...ij,...jk"}) {
    ExpectClose(
        OpCall("Einsum").Attr("equation", equation).In(a.Clone()).In(b.Clone()).RunOne(2e-6),
        expected, 2e-6);
  }
  // The ellipsis may stand for no axis, or be anywhere.
  EXPECT_EQ(
      ToVector<float>(OpCall("Einsum").Attr("equation", "i...->...i").In(Iota({2, 3})).RunOne()),
      (F{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(ToVector<float>(OpCall("Einsum").Attr("equation", "...i->...").In(Iota({3})).RunOne()),
            (F{3}));
  EXPECT_EQ(ToVector<float>(OpCall("Einsum").Attr("equation", "i...->i").In(Iota({2, 3})).RunOne()),
            (F{3, 12}));
  EXPECT_EQ(
      OpCall("Einsum").Attr("equation", "...,...").In(Iota({2, 1})).In(Iota({3})).RunOne().shape(),
      (Shape{2, 3}));
}

TEST(Einsum, KeepsIntegers) {
  EXPECT_EQ(ToVector<std::int64_t>(OpCall("Einsum")
                                       .Attr("equation", "i,i->")
                                       .In(Int64s({std::int64_t{1} << 60, 1}))
                                       .In(Int64s({4, 1}))
                                       .RunOne()),
            (std::vector<std::int64_t>{(std::int64_t{1} << 62) + 1}));
  EXPECT_EQ(ToVector<std::uint8_t>(OpCall("Einsum")
                                       .Attr("equation", "i->")
                                       .In(Values<std::uint8_t>({2}, {200, 100}))
                                       .RunOne()),
            (std::vector<std::uint8_t>{44}));
  EXPECT_EQ(ToVector<double>(OpCall("Einsum")
                                 .Attr("equation", "i,j->ij")
                                 .In(Values<double>({1}, {0.5}))
                                 .In(Values<double>({2}, {3, 5}))
                                 .RunOne()),
            (std::vector<double>{1.5, 2.5}));
}

TEST(Einsum, RefusesWhatMakesNoSense) {
  const auto refused = [](const char* equation, std::vector<Shape> shapes) {
    OpCall call("Einsum");
    call.Attr("equation", equation);
    for (const Shape& shape : shapes) call.In(Iota(shape));
    EXPECT_THROW(call.Infer(), Error) << equation;
  };
  refused("ij,jk->ik", {{2, 3}});
  refused("ij->ij", {{2, 3}, {3, 4}});
  refused("ij,jk->ik", {{2, 3}, {4, 5}});
  refused("ij->ii", {{2, 3}});
  refused("ij->k", {{2, 3}});
  refused("ij->i1", {{2, 3}});
  refused("ijk->i", {{2, 3}});
  refused("i->i", {{2, 3}});
  refused("i..->i", {{2, 3}});
  refused("...i...->i", {{2, 3}});
  refused("ii->i", {{2, 3}});
  refused("ij->i->j", {{2, 3}});
  EXPECT_THROW(OpCall("Einsum").In(Iota({2})).Infer(), Error);
  EXPECT_THROW(
      OpCall("Einsum").Attr("equation", "i,i->i").In(Iota({2})).In(Iota<double>({2})).Infer(),
      Error);
}

}  // namespace
}  // namespace tessera
