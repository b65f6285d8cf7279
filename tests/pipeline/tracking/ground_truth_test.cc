#include "pipeline/tracking/ground_truth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "ops/error.h"
#include "tests/temporary_folder.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class GroundTruthFile : public ::testing::Test {
 protected:
  GroundTruth Read(const std::string& text) {
    WriteBytes(path_, text);
    return ReadGroundTruth(path_);
  }

  // "" if there is none.
  std::string ErrorOf(const std::string& text) {
    try {
      Read(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "truth.txt";
};

const Box kFirst{1, 2, 30, 40}, kSecond{1.5, -2.25, 31, 100};

TEST_F(GroundTruthFile, NumbersAreSeparatedAsPeopleDo) {
  const auto both = UnorderedElementsAre(Pair(0, kFirst), Pair(1, kSecond));
  EXPECT_THAT(Read("1,2,30,40\n1.5,-2.25,31,1e2\n"), both);
  EXPECT_THAT(Read("1\t2\t30\t40\n1.5\t-2.25\t31\t100\n"), both);
  EXPECT_THAT(Read("1 2 30 40\n 1.5  -2.25   31 100 \n"), both);
  EXPECT_THAT(Read("1;2;30;40\n1.5 ; -2.25 ; 31 ; 1E+2"), both);
  EXPECT_THAT(Read("1, 2,\t30 ,40,\r\n+1.5,-2.25,31,100 ,, \r\n"), both);
  EXPECT_THAT(Read("\xEF\xBB\xBF"
                   "1,2,30,40\n\n \t\n# by hand\n1.5,-2.25,31,100\n\n"),
              both);
  EXPECT_THAT(Read("X,Y,Width,Height\n1,2,30,40\n1.5,-2.25,31,100\n"), both);
}

TEST_F(GroundTruthFile, FiveColumnsBeginWithTheFrame) {
  EXPECT_THAT(Read("frame,x,y,w,h\n7,1,2,30,40\n3,1.5,-2.25,31,100\n"),
              UnorderedElementsAre(Pair(7, kFirst), Pair(3, kSecond)));
  EXPECT_THAT(Read("0 1 2 30 40\n1 1.5 -2.25 31 100\n"),
              UnorderedElementsAre(Pair(0, kFirst), Pair(1, kSecond)));
}

TEST_F(GroundTruthFile, AHeaderMayNameTheColumns) {
  EXPECT_THAT(Read("frame,time,x,y,w,h,score,lost\n5,0.2,1,2,30,40,0.9,0\n"),
              UnorderedElementsAre(Pair(5, kFirst)));
  EXPECT_THAT(Read("h w y x\n40 30 2 1\n"), UnorderedElementsAre(Pair(0, kFirst)));
  EXPECT_THAT(Read("frame x1 y1 x2 y2\n3 1 2 31 42\n"), UnorderedElementsAre(Pair(3, kFirst)));
  EXPECT_THAT(Read("x1,y1,x2,y2,x3,y3,x4,y4\n10,20,30,20,30,60,10,60\n"),
              UnorderedElementsAre(Pair(0, Box{10, 20, 21, 41})));
}

TEST_F(GroundTruthFile, FramesWhereTheTargetIsNotToBeSeenHaveNoBoxAndCount) {
  EXPECT_THAT(Read("1,2,30,40\n0,0,0,0\nnan,nan,nan,nan\nNaN,2,30,40\n1,2,30,-4\ninf,2,3,4\n"
                   "1,2,0,40\n1.5,-2.25,31,100\n"),
              UnorderedElementsAre(Pair(0, kFirst), Pair(7, kSecond)));
  EXPECT_THAT(Read("NaN,NaN,NaN,NaN\n1,2,30,40\n"), UnorderedElementsAre(Pair(1, kFirst)));
  EXPECT_THAT(Read("nan,2,3,4,5,6,7,8\n1,1,2,2,3,3,4,4\n5,5,5,5,5,5,5,5\n"), testing::IsEmpty());
}

// A square of side 10 sqrt(2) on its corner: half of its bounding box of 20 x 20.
TEST_F(GroundTruthFile, AQuadrilateralBecomesTheUprightBoxOfItsAreaAndCentre) {
  const double side = 20 * std::sqrt(0.5) + 1;
  for (const char* corners :
       {"50,30,60,40,50,50,40,40", "40,40 50,50 60,40 50,30", "40\t40\t50\t30\t60\t40\t50\t50"}) {
    const GroundTruth truth = Read(corners);
    ASSERT_EQ(truth.size(), 1U) << corners;
    const Box& box = truth.at(0);
    EXPECT_NEAR(box.width, side, 1e-12);
    EXPECT_NEAR(box.height, side, 1e-12);
    EXPECT_NEAR(box.x, 50 - (side - 1) / 2, 1e-12);
    EXPECT_NEAR(box.y, 40 - (side - 1) / 2, 1e-12);
  }
}

TEST_F(GroundTruthFile, ErrorsNameFileAndLine) {
  const auto at = [](const char* line, const char* reason) {
    return AllOf(HasSubstr("truth.txt:" + std::string(line) + ": "), HasSubstr(reason));
  };
  EXPECT_THAT(ErrorOf("1,2,3,4\n\n1,2,x,4\n"), at("3", "no number: x"));
  EXPECT_THAT(ErrorOf("x,y,w,h\n1,2,3,4\nx,y,w,h\n"), at("3", "no number: x"));
  EXPECT_THAT(ErrorOf("1,2,3,4\n1,2,3\n"), at("2", "3 columns instead of 4"));
  EXPECT_THAT(ErrorOf("1,2,3,4\n1,2,3,4,5\n"), at("2", "5 columns instead of 4"));
  EXPECT_THAT(ErrorOf("frame,x,y,w,h\n1,2,3,4\n"), at("2", "4 columns instead of 5"));
  EXPECT_THAT(ErrorOf("\nleft,top,right,bottom\n1,2,3,4\n"), at("2", "a header has to name x, y"));
  EXPECT_THAT(ErrorOf("x,y,w\n1,2,3\n"), at("1", "a header has to name"));
  EXPECT_THAT(ErrorOf("1,2,3,4,5,6\n"), at("1", "6 columns"));
  EXPECT_THAT(ErrorOf("1,2,3\n"), at("1", "3 columns"));
  EXPECT_THAT(ErrorOf("1,,3,4\n"), at("1", "missing"));
  EXPECT_THAT(ErrorOf(",1,2,3,4\n"), at("1", "missing"));
  EXPECT_THAT(ErrorOf("1,2,3,4px\n"), at("1", "no number: 4px"));
  EXPECT_THAT(ErrorOf("0,1,2,3,4\n0,1,2,3,4\n"), at("2", "a second box for frame 0"));
  EXPECT_THAT(ErrorOf("5,0,0,0,0\n5,1,2,3,4\n"), at("2", "a second box for frame 5"));
  EXPECT_THAT(ErrorOf("0.5,1,2,3,4\n"), at("1", "no number of a frame: 0.5"));
  EXPECT_THAT(ErrorOf("-1,1,2,3,4\n"), at("1", "no number of a frame: -1"));
  EXPECT_THAT(ErrorOf("nan,1,2,3,4\n"), at("1", "no number of a frame"));
  EXPECT_THAT(ErrorOf("1e300,1,2,3,4\n"), at("1", "no number of a frame"));
  EXPECT_THAT(ErrorOf("1,2,3,4\n1,\x01\xFF,3,4\n"), at("2", R"(\x01\xFF)"));
  EXPECT_THAT(ErrorOf(std::string("1,2,3,4\n1,2,3,4\0\n", 17)), at("2", "no number"));
  EXPECT_THAT(ErrorOf(std::string(1 << 20, '7')), at("1", "too long"));
}

TEST_F(GroundTruthFile, FilesThatCannotBeReadAreErrors) {
  EXPECT_THAT([] { ReadGroundTruth("/nowhere/truth.txt"); },
              testing::ThrowsMessage<Error>(HasSubstr("/nowhere/truth.txt")));
  EXPECT_THAT([&] { ReadGroundTruth(folder_.path()); },
              testing::ThrowsMessage<Error>(HasSubstr(folder_.path().string())));
}

TEST_F(GroundTruthFile, AFileWithoutBoxesHasNone) {
  EXPECT_THAT(Read(""), testing::IsEmpty());
  EXPECT_THAT(Read("# nothing\n\n"), testing::IsEmpty());
  EXPECT_THAT(Read("x,y,w,h\n"), testing::IsEmpty());
}

TEST_F(GroundTruthFile, LongFilesAreReadWhole) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += std::to_string(i) + ",2,30,40\n";
  const GroundTruth truth = Read(text);
  ASSERT_EQ(truth.size(), 200'000U);
  EXPECT_EQ(truth.at(199'999), (Box{199'999, 2, 30, 40}));
}

TEST_F(GroundTruthFile, OneBoxIsOfTheFirstLineOrOfTheFrame) {
  const auto read = [&](const std::string& text, std::int64_t frame) {
    WriteBytes(path_, text);
    return ReadBox(path_, frame);
  };
  // What follows does not matter.
  EXPECT_EQ(read("1,2,30,40\n1.5,-2.25,31,100\n", 1), kFirst);
  EXPECT_EQ(read("x,y,w,h\n1,2,30,40\nand more\n", 0), kFirst);
  EXPECT_EQ(read("4,1.5,-2.25,31,100\n7,1,2,30,40\nand more\n", 7), kFirst);
  EXPECT_THROW(read("0,0,0,0\n1,2,30,40\n", 0), Error);
  EXPECT_THROW(read("nan,nan,nan,nan\n1,2,30,40\n", 0), Error);
  EXPECT_THROW(read("4,1,2,30,40\n", 5), Error);
  EXPECT_THROW(read("no numbers\n1,2,30,40\n", 0), Error);
  EXPECT_THROW(read("", 0), Error);
}

}  // namespace
}  // namespace tessera
