// The files of ncnn: their text, their weights, and what is refused.
#include "engine/ncnn_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/model_file.h"
#include "tests/engine/ncnn_test_model.h"
#include "tests/engine/test_model.h"
#include "tests/temporary_folder.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string FailureOf(std::string_view text) {
  try {
    ImportNcnn(text, {}, "net.param");
  } catch (const Error& e) {
    return e.what();
  }
  return "(no error)";
}

TEST(NcnnText, RefusesWhatIsNoNetwork) {
  EXPECT_THAT(FailureOf(""), HasSubstr("net.param: the file is empty"));
  EXPECT_THAT(FailureOf("\n \n"), HasSubstr("the file is empty"));
  EXPECT_THAT(FailureOf("7767516\n1 1\n"), HasSubstr("no ncnn network"));
  EXPECT_THAT(FailureOf("7767517"), HasSubstr("ends after the first line"));
  EXPECT_THAT(FailureOf("7767517\n1\n"), HasSubstr("net.param:2: the number of blobs is missing"));
  EXPECT_THAT(FailureOf("7767517\n-1 1\n"), HasSubstr("'-1' is no number of layers"));
  EXPECT_THAT(FailureOf("7767517\n99999999999 1\n"), HasSubstr("is no integer of 32 bits"));
  EXPECT_THAT(FailureOf("7767517\n50000 2147483647\nInput a 0 1 a\n"),
              HasSubstr("ends after 1 of 50000 layers"));
  EXPECT_THAT(FailureOf("7767517\n2147483647 2147483647\nInput a 0 1 a\n"),
              HasSubstr("more than 50000 layers"));
  EXPECT_THAT(FailureOf("7767517\n1 1\nInput a 0 1 a\nReLU b 1 1 a b\n"),
              HasSubstr("net.param:4: the file promises 1 layers"));
  EXPECT_THAT(FailureOf("7767517\n2 1\nInput a 0 1 a\nReLU b 1 1 a b\n"),
              HasSubstr("promises 1 blobs, its layers make 2"));
  // The magic number as four bytes.
  EXPECT_THAT(FailureOf(std::string_view("\xDD\x85\x76\x00\x01\x00\x00\x00", 8)),
              HasSubstr("binary format"));
}

std::string LayerFailure(const std::string& line) {
  return FailureOf("7767517\n2 9\nInput a 0 1 a\n" + line + "\n");
}

TEST(NcnnText, NamesLineAndLayer) {
  EXPECT_THAT(LayerFailure("ReLU"), HasSubstr("net.param:4: the layer's name is missing"));
  EXPECT_THAT(LayerFailure("ReLU r 1"),
              HasSubstr("net.param:4: layer 'r': the number of outputs is missing"));
  EXPECT_THAT(LayerFailure("ReLU r 99999 1 a b"), HasSubstr("its input 'b' is made by no layer"));
  EXPECT_THAT(LayerFailure("ReLU r 1 1 b b"), HasSubstr("its input 'b' is made by no layer"));
  EXPECT_THAT(LayerFailure("ReLU r 1 1 a a"), HasSubstr("its output 'a' is made by another"));
  EXPECT_THAT(LayerFailure("ReLU r 1 1 a b x"), HasSubstr("'x' is no parameter"));
  EXPECT_THAT(LayerFailure("ReLU r 1 1 a b 32=1"), HasSubstr("ids go from 0 to 31"));
  EXPECT_THAT(LayerFailure("ReLU r 1 1 a b 0="), HasSubstr("a parameter has no value"));
  EXPECT_THAT(LayerFailure("ReLU r 1 1 a b 0=1x"), HasSubstr("'1x' is no integer"));
  EXPECT_THAT(LayerFailure("ReLU r 1 1 a b 0=1e99"), HasSubstr("'1e99' is no number"));
  EXPECT_THAT(LayerFailure("ReLU r 1 1 a b 0=0.1 0=0.2"), HasSubstr("parameter 0 is there twice"));
  EXPECT_THAT(LayerFailure("ReLU r 1 1 a b -23300=3,1,2"), HasSubstr("a list of 3 has 2 numbers"));
  EXPECT_THAT(LayerFailure("ReLU r 1 1 a b 0=\"x"), HasSubstr("a string does not end"));
  EXPECT_THAT(LayerFailure("ReLU r 1 1 a b 0=x"), HasSubstr("parameter 0 has to be one number"));
  EXPECT_THAT(LayerFailure("ReLU r 2 1 a a b"), HasSubstr("(ReLU): has 2 inputs"));
  EXPECT_THAT(LayerFailure("ReLU r 1 2 a b c"), HasSubstr("(ReLU): has 2 outputs"));
  EXPECT_THAT(LayerFailure("ReLU r 1 1 a b 7=3"),
              HasSubstr("net.param:4: layer 'r' (ReLU): parameter 7 is not known"));
}

TEST(NcnnText, AcceptsWhatConvertersWrite) {
  // Of no effect: what would be there without it, hints about shapes, a mask of speed-ups.
  NcnnTestModel m;
  m.Layer("Input a 0 1 a").Layer("ReLU  r\t1 1 a b 0=1.000000e-01 7=0 -23330=4,3,8,8,3 31=5\r");
  EXPECT_THAT(m.Run({{{1, 1, 2}, {-1, 2}}}).values, ElementsAre(-0.1f, 2));
  // Lists with and without their length.
  for (const char* list : {"-23309=1,1 -23310=1,3 -23311=1,0", "9=1, 10=3, 11=0,"}) {
    NcnnTestModel crop;
    crop.Input("a", {4}).Layer(StrCat("Crop c 1 1 a b ", list));
    EXPECT_THAT(crop.Run({{{4}, {1, 2, 3, 4}}}).values, ElementsAre(2, 3)) << list;
  }
}

TEST(NcnnText, NamesAllUnknownLayersAtOnce) {
  EXPECT_THAT(FailureOf("7767517\n4 9\nInput a 0 1 a\nFoo f 1 1 a b\nYoloV9 g 1 1 b c\n"
                        "Foo h 1 1 c d\n"),
              AllOf(HasSubstr("layers that are not supported: Foo ('f', line 4), YoloV9 ('g', "
                              "line 5)")));
}

TEST(NcnnGraph, InputsAndOutputs) {
  NcnnTestModel m;
  m.Layer("Input data 0 1 data")
      .Layer("Split s 1 3 data a b unused")
      .Layer("Convolution c 1 1 a x 0=2 1=1 6=6")
      .Layer("ReLU r 1 1 b y");
  m.Weights({1, 0, 0, 0, 1, 0});
  const std::shared_ptr<Session> session = m.Load();
  ASSERT_EQ(session->inputs().size(), 1u);
  EXPECT_EQ(session->inputs()[0].name, "data");
  // The convolution has weights for three channels.
  EXPECT_THAT(session->inputs()[0].dims, ElementsAre(1, 3, -1, -1));
  // A copy that nobody reads is no output.
  ASSERT_EQ(session->outputs().size(), 2u);
  EXPECT_EQ(session->outputs()[0].name, "x");
  EXPECT_EQ(session->outputs()[1].name, "y");
  EXPECT_THAT(session->outputs()[0].dims, ElementsAre(1, 2, -1, -1));
  EXPECT_THAT(m.Run({{{3, 1, 1}, {1, 2, 3}}}).values, ElementsAre(1, 2));
}

TEST(NcnnGraph, OutputsThatAreInputsOrConstants) {
  NcnnTestModel m;
  m.Input("a", {2}).Layer("Noop n 1 1 a b").Layer("MemoryData d 0 1 d 0=2").Floats({5, 6});
  const std::shared_ptr<Session> session = m.Load();
  ASSERT_EQ(session->outputs().size(), 2u);
  EXPECT_EQ(session->outputs()[0].name, "b");
  EXPECT_THAT(m.Run({{{2}, {1, 2}}}).values, ElementsAre(1, 2));
  EXPECT_THAT(m.Run({{{2}, {1, 2}}}, 1).values, ElementsAre(5, 6));
}

// y = W x for one row of weights.
NcnnTestModel Row(int inputs, const std::string& more = "") {
  NcnnTestModel m;
  m.Input("x", {inputs}).Layer(StrCat("InnerProduct p 1 1 x y 0=1 2=", inputs, " ", more));
  return m;
}

TEST(NcnnWeightsFile, AllWaysOfStoringThem) {
  const std::pair<Shape, std::vector<float>> x = {{3}, {1, 10, 100}};
  EXPECT_THAT(Row(3).Weights({1, 2, 3}).Run({x}).values, ElementsAre(321));
  EXPECT_THAT(Row(3).Weights({1, 2, 3}, NcnnTestModel::kTaggedFloat32).Run({x}).values,
              ElementsAre(321));
  // Odd numbers of small elements are padded to four bytes; a bias follows as plain floats.
  EXPECT_THAT(Row(3, "1=1").Float16Weights({1, 2, 3}).Floats({0.5f}).Run({x}).values,
              ElementsAre(321.5f));
  EXPECT_THAT(
      Row(3, "1=1").TableWeights(0x101, {7, 8, 9}, {2, 0, 1}).Floats({0.5f}).Run({x}).values,
      ElementsAre(879.5f));
  // int8 = round(weight * scale); the scale of the input comes after it.
  EXPECT_THAT(Row(3, "8=1").Int8Weights({10, -20, 127}).Floats({10, 3}).Run({x}).values,
              ElementsAre(testing::FloatEq(1 - 20 + 1270)));
}

TEST(NcnnWeightsFile, RefusesTooFewAndTooMany) {
  EXPECT_THAT(Row(3).Failure(), HasSubstr("test.param:4: layer 'p' (InnerProduct): test.param "
                                          "(weights): is too short: 4 bytes of weights are needed, "
                                          "0 are left"));
  EXPECT_THAT(Row(3).Weights({1, 2}).Failure(), HasSubstr("12 bytes of weights are needed, 8 are"));
  EXPECT_THAT(Row(3).Weights({1, 2, 3, 4}).Failure(), HasSubstr("4 bytes are left over"));
  EXPECT_THAT(Row(3, "8=1").Int8Weights({1, 2, 3}).Failure(), HasSubstr("too short"));
  EXPECT_THAT(Row(3).Int8Weights({1, 2, 3}).Failure(), HasSubstr("int8 weights without scales"));
  // Sizes that no file has: refused before anything is allocated.
  EXPECT_THAT(Row(2147483647).Weights({1}).Failure(), HasSubstr("too short"));
  NcnnTestModel m;
  m.Layer("MemoryData d 0 1 d 0=2000000000 1=2000000000 2=2000000000");
  EXPECT_THAT(m.Failure(), HasSubstr("layer 'd' (MemoryData): "));
  NcnnTestModel negative;
  negative.Layer("MemoryData d 0 1 d 0=-5");
  EXPECT_THAT(negative.Failure(), HasSubstr("layer 'd' (MemoryData): has a size of -5"));
}

class NcnnFiles : public testing::Test {
 protected:
  NcnnFiles() {
    NcnnTestModel m = Row(1).Weights({2});
    Write("m.param", m.Text());
    Write("m.bin", m.bin());
    TestModel onnx;
    onnx.Input("x", {1, 1}).Output("y").Node("Relu", {"x"}, {"y"});
    Write("o.onnx", onnx.Bytes());
  }
  void Write(const std::string& name, const std::string& bytes) {
    WriteBytes(folder_ / name, bytes);
  }
  std::string Failure(const std::string& name) {
    try {
      Session::Load(folder_ / name);
    } catch (const Error& e) {
      return e.what();
    }
    return "(no error)";
  }

  TemporaryFolder folder_;
};

TEST_F(NcnnFiles, AreFoundByEitherName) {
  for (const char* name : {"m.param", "m.bin", "m"}) {
    EXPECT_EQ(Session::Load(folder_ / name)->outputs()[0].name, "y") << name;
    EXPECT_TRUE(ModelExists(folder_ / name)) << name;
  }
  EXPECT_EQ(Session::Load(folder_ / "o")->inputs()[0].name, "x");
  EXPECT_FALSE(ModelExists(folder_ / "n"));
  // By content.
  std::filesystem::rename(folder_ / "m.param", folder_ / "m.txt");
  EXPECT_EQ(Session::Load(folder_ / "m.txt")->outputs()[0].name, "y");
}

TEST_F(NcnnFiles, SayWhatIsMissing) {
  EXPECT_THAT(Failure("n.param"), HasSubstr("n.param: no such file"));
  EXPECT_THAT(Failure("n"), HasSubstr("n: no such file"));
  Write("text.param", "7767517\n");
  EXPECT_THAT(Failure("text.param"), HasSubstr("beside it, in text.bin"));
  Write("weights.bin", "0123");
  EXPECT_THAT(Failure("weights.bin"), HasSubstr("beside it, in weights.param"));
  Write("m.param.bin", "0123");
  EXPECT_THAT(Failure("m.param.bin"), HasSubstr("binary format"));
}

}  // namespace
}  // namespace tessera
