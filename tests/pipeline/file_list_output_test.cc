// Names of outputs, and what happens to those that are there already.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "pipeline/file_list.h"
#include "tests/pipeline/file_list_fixture.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class OutputNameTest : public FileListTest {
 protected:
  // What an input of that name is called in the output folder.
  std::string NameFor(const std::string& input, ListOptions options = {}) const {
    options.inputs = {folder_ / input};
    options.output = folder_ / "out/";
    return ListFiles(options).files.at(0).output.filename();
  }
  std::string NameError(ListOptions options) const {
    options.inputs = {folder_ / "a.png"};
    options.output = folder_ / "out/";
    return ErrorOf(options);
  }
};

TEST_F(OutputNameTest, TheExtensionIsReplacedNeverDoubled) {
  EXPECT_EQ(NameFor("a.png"), "a.png");
  EXPECT_EQ(NameFor("a.PNG"), "a.PNG");
  EXPECT_EQ(NameFor("a.jpeg"), "a.jpeg");
  EXPECT_EQ(NameFor("a.gif"), "a.png");
  EXPECT_EQ(NameFor("a.tar.gif"), "a.tar.png");
  EXPECT_EQ(NameFor("a.png.png"), "a.png.png");
  EXPECT_EQ(NameFor("a"), "a.png");
  EXPECT_EQ(NameFor("v1.2"), "v1.2.png");
  EXPECT_EQ(NameFor(".png"), ".png.png");
  EXPECT_EQ(NameFor("\xFF\n.gif"), "\xFF\n.png");
}

TEST_F(OutputNameTest, TheFormatDecides) {
  const ListOptions jpeg{.format = ImageFormat::kJpeg};
  EXPECT_EQ(NameFor("a.png", jpeg), "a.jpg");
  EXPECT_EQ(NameFor("a.JPEG", jpeg), "a.JPEG");
  EXPECT_EQ(NameFor("a", jpeg), "a.jpg");
  EXPECT_EQ(NameFor("a.png", {.format = ImageFormat::kPnm}), "a.pnm");
  EXPECT_EQ(NameFor("a.ppm", {.format = ImageFormat::kPnm}), "a.ppm");
}

TEST_F(OutputNameTest, OutputFileAndFormatHaveToAgree) {
  Make("a.png");
  ListOptions options = Options({"a.png"}, "b.png");
  options.format = ImageFormat::kJpeg;
  EXPECT_THAT(ErrorOf(options), HasSubstr("does not stand for JPEG"));
  options.output = folder_ / "b.gif";
  EXPECT_THAT(ErrorOf(options), HasSubstr("does not stand for JPEG"));
  options.output = folder_ / "b.JPG";
  EXPECT_EQ(ListFiles(options).files.at(0).format, ImageFormat::kJpeg);
  options.output = folder_ / "b";
  EXPECT_EQ(ListFiles(options).files.at(0).format, ImageFormat::kJpeg);
  options.format.reset();
  EXPECT_THAT(ErrorOf(options), HasSubstr("no picture format has this extension"));
}

TEST_F(OutputNameTest, Patterns) {
  EXPECT_EQ(NameFor("a.png", {.suffix = "_x4"}), "a_x4.png");
  EXPECT_EQ(NameFor("a.png", {.name = "{stem}_{scale}x{ext}", .scale = "2.5"}), "a_2.5x.png");
  EXPECT_EQ(NameFor("a.gif", {.suffix = "-y", .name = "x{suffix}{stem}{stem}{ext}"}), "x-yaa.png");
  EXPECT_EQ(NameFor("{ext}.gif", {.name = "{stem}{ext}"}), "{ext}.png");
  EXPECT_EQ(NameFor("a.png", {.name = "}{stem}.webp"}), "}a.webp");
  EXPECT_EQ(NameFor("a.png", {.format = ImageFormat::kWebp, .name = "{stem}.webp"}), "a.webp");
  ListOptions webp = Options({"a.png"}, "out/");
  webp.name = "{stem}.webp";
  EXPECT_EQ(ListFiles(webp).files.at(0).format, ImageFormat::kWebp);
}

TEST_F(OutputNameTest, PatternsThatMakeNoSense) {
  EXPECT_THAT(NameError({.name = "{stem}{nam}{ext}"}),
              AllOf(HasSubstr("{nam}"), HasSubstr("{stem}, {suffix}, {scale}, {ext}")));
  EXPECT_THAT(NameError({.name = "{stem"}), HasSubstr("none of {stem}"));
  EXPECT_THAT(NameError({.name = "../{stem}{ext}"}), HasSubstr("'/'"));
  EXPECT_THAT(NameError({.suffix = "/../x"}), HasSubstr("'/'"));
  EXPECT_THAT(NameError({.name = "{stem}"}), HasSubstr("end with {ext}"));
  EXPECT_THAT(NameError({.name = "{stem}.{ext}"}), HasSubstr("its dot"));
  EXPECT_THAT(NameError({.suffix = "_x", .name = "{stem}{ext}"}), HasSubstr("lacks {suffix}"));
  EXPECT_THAT(NameError({.format = ImageFormat::kJpeg, .name = "{stem}.png"}),
              HasSubstr("does not stand for JPEG"));
}

TEST_F(OutputNameTest, PatternsAreForFolders) {
  Make("a.png");
  ListOptions options = Options({"a.png"}, "b.png");
  options.suffix = "_x4";
  EXPECT_THAT(ErrorOf(options), HasSubstr("--suffix"));
  options.suffix.clear();
  options.name = "{stem}{ext}";
  EXPECT_THAT(ErrorOf(options), HasSubstr("--name"));
}

TEST_F(OutputNameTest, NamesTooLongAreNamedBeforehand) {
  const std::string longest = std::string(251, 'n') + ".png";
  EXPECT_EQ(NameFor(longest), longest);
  EXPECT_EQ(NameFor(longest, {.format = ImageFormat::kJpeg}), std::string(251, 'n') + ".jpg");
  Make("in/a.png");
  Make("in/" + longest);
  ListOptions options = Options();
  options.suffix = "_";
  EXPECT_THAT(ErrorOf(options), AllOf(HasSubstr(longest), HasSubstr("256 bytes")));
}

TEST_F(OutputNameTest, TwoInputsForOneOutputAreNamed) {
  Make("in/a.png");
  Make("in/a.jpg");
  EXPECT_THAT(Pairs(Options()), ElementsAre("in/a.jpg > out/a.jpg", "in/a.png > out/a.png"));
  ListOptions options = Options();
  options.format = ImageFormat::kPng;
  EXPECT_THAT(ErrorOf(options),
              AllOf(HasSubstr("in/a.jpg and "), HasSubstr("in/a.png would both become")));
  Make("other/a.png");
  EXPECT_THAT(ErrorOf(Options({"in", "other"})), HasSubstr("would both become"));
  EXPECT_THAT(ErrorOf(Options({"in/a.png", "other/a.png"})), HasSubstr("would both become"));
  options = Options();
  options.name = "one.png";
  EXPECT_THAT(ErrorOf(options), HasSubstr("would both become"));
}

TEST_F(OutputNameTest, WhatIsNamedTwiceIsDoneOnce) {
  Make("in/a.png");
  EXPECT_THAT(Pairs(Options({"in/a.png", "in", "in/a.png"})), ElementsAre("in/a.png > out/a.png"));
}

TEST_F(OutputNameTest, TwoOutputsThatAreOneThroughLinks) {
  Make("in/x/a.png");
  Make("in/y/a.png");
  std::filesystem::create_directories(folder_ / "out/x");
  MakeLink("x", "out/y");
  ListOptions options = Options();
  options.recursive = true;
  EXPECT_THAT(ErrorOf(options), HasSubstr("would both become"));
  Make("in2/a.png");
  Make("in2/b.png");
  Make("out2/a.png");
  MakeLink("a.png", "out2/b.png");
  options = Options({"in2"}, "out2");
  options.existing = Existing::kOverwrite;
  EXPECT_THAT(ErrorOf(options), HasSubstr("would both become"));
}

TEST_F(OutputNameTest, AFileWhereAnotherOutputNeedsAFolderIsNamed) {
  Make("in/a.jpg");
  Make("in/a.png/deep/x.png");
  ListOptions options = Options();
  options.recursive = true;
  EXPECT_THAT(Pairs(options),
              ElementsAre("in/a.jpg > out/a.jpg", "in/a.png/deep/x.png > out/a.png/deep/x.png"));
  options.format = ImageFormat::kPng;
  const auto names_both =
      AllOf(HasSubstr("in/a.jpg would become "), HasSubstr("out/a.png, which has to be a folder"),
            HasSubstr("in/a.png/deep/x.png"));
  EXPECT_THAT(ErrorOf(options), names_both);
  std::filesystem::create_directories(folder_ / "out");
  MakeLink("out", "linked");
  options.output = folder_ / "linked";
  EXPECT_THAT(ErrorOf(options), HasSubstr("which has to be a folder"));
}

// --- Outputs that are there.

using ExistingOutputTest = FileListTest;

TEST_F(ExistingOutputTest, StopTheRun) {
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    Make(std::string("in/") + name + ".png");
    if (*name != 'f') Make(std::string("out/") + name + ".png");
  }
  EXPECT_THAT(ErrorOf(Options()),
              AllOf(HasSubstr("out/a.png, "), HasSubstr("out/c.png and 2 more exist already"),
                    Not(HasSubstr("d.png"))));
  EXPECT_THAT(ErrorOf(Options({"in/a.png"}, "out/b.png")), HasSubstr("out/b.png exists already"));
}

TEST_F(ExistingOutputTest, AreReplacedIfThatIsAskedFor) {
  Make("in/a.png");
  Make("in/b.png");
  Make("out/a.png");
  ListOptions options = Options();
  options.existing = Existing::kOverwrite;
  EXPECT_THAT(Pairs(options), ElementsAre("in/a.png > out/a.png", "in/b.png > out/b.png"));
}

TEST_F(ExistingOutputTest, AreSkippedUnlessOlderThanTheInput) {
  for (const char* name : {"new", "newer", "older", "same", "lost"}) {
    Make(std::string("in/") + name + ".png");
    SetTime(std::string("in/") + name + ".png", 1000, 500);
    if (name != std::string("new")) Make(std::string("out/") + name + ".png");
  }
  std::filesystem::remove(folder_ / "in/lost.png");
  MakeLink("nowhere", "in/lost.png");
  SetTime("out/newer.png", 1000, 501);
  SetTime("out/older.png", 1000, 499);
  SetTime("out/same.png", 1000, 500);
  ListOptions options = Options();
  options.existing = Existing::kSkip;
  const FileList list = ListFiles(options);
  EXPECT_THAT(Pairs(list), ElementsAre("in/lost.png > out/lost.png", "in/new.png > out/new.png",
                                       "in/older.png > out/older.png"));
  EXPECT_EQ(list.up_to_date, 2u);

  options = Options({"in/same.png"}, "out/same.png");
  options.existing = Existing::kSkip;
  EXPECT_THAT(ListFiles(options).files, IsEmpty());
  EXPECT_EQ(ListFiles(options).up_to_date, 1u);
}

TEST_F(ExistingOutputTest, FoldersAreNoOutputsThatAreUpToDate) {
  Make("in/a.png");
  std::filesystem::create_directories(folder_ / "out/a.png");
  ListOptions options = Options();
  options.existing = Existing::kSkip;
  EXPECT_EQ(ListFiles(options).files.size(), 1u);
}

TEST_F(ExistingOutputTest, AFileReplacesItsInputOnlyIfThatIsAskedFor) {
  Make("in/a.png");
  Make("in/b.png");
  MakeLink("in", "linked");
  MakeLink("in/a.png", "c.png");
  ASSERT_EQ(::link((folder_ / "in/a.png").c_str(), (folder_ / "hard.png").c_str()), 0);
  for (ListOptions options : {Options({"in"}, "in"), Options({"in"}, "linked"),
                              Options({"linked/a.png"}, "in/a.png"), Options({"in/a.png"}, "c.png"),
                              Options({"c.png"}, "in/a.png"), Options({"in/a.png"}, "hard.png")}) {
    for (const Existing existing : {Existing::kStop, Existing::kSkip}) {
      options.existing = existing;
      EXPECT_THAT(ErrorOf(options), HasSubstr("would replace its own input"));
    }
    options.existing = Existing::kOverwrite;
    EXPECT_THAT(ListFiles(options).files, Not(IsEmpty()));
  }
}

// A run that was stopped goes on where it was, although its results lie beside its inputs.
TEST_F(ExistingOutputTest, ResultsBesideTheirInputsAreNoInputs) {
  for (const char* name : {"in/a.png", "in/a_x4.png", "in/b.png", "in/c_x4.png"}) Make(name);
  SetTime("in/a.png", 1000);
  ListOptions options = Options({"in"}, "in");
  options.suffix = "_x4";
  EXPECT_THAT(ErrorOf(options), HasSubstr("in/a_x4.png exists already"));
  options.existing = Existing::kSkip;
  const FileList list = ListFiles(options);
  EXPECT_THAT(Pairs(list), ElementsAre("in/b.png > in/b_x4.png", "in/c_x4.png > in/c_x4_x4.png"));
  EXPECT_EQ(list.up_to_date, 1u);
  EXPECT_EQ(list.results, 1u);
  options.existing = Existing::kOverwrite;
  EXPECT_THAT(ErrorOf(options),
              AllOf(HasSubstr("in/a_x4.png is an input"), HasSubstr("the result of "),
                    HasSubstr("in/a.png; if"), HasSubstr("--skip-existing")));
}

// The result's name is also the one that it would get as an input.
TEST_F(ExistingOutputTest, ResultsThatWouldReplaceThemselvesAreNoInputs) {
  for (const char* name : {"in/a.png", "in/a.webp", "in/b.png"}) Make(name);
  SetTime("in/a.png", 1000);
  ListOptions options = Options({"in"}, "in");
  options.format = ImageFormat::kWebp;
  for (const Existing existing : {Existing::kStop, Existing::kOverwrite}) {
    options.existing = existing;
    EXPECT_THAT(ErrorOf(options),
                AllOf(HasSubstr("in/a.png and "), HasSubstr("in/a.webp would both become "),
                      HasSubstr("in/a.webp, --skip-existing leaves it out")));
  }
  options.existing = Existing::kSkip;
  const FileList list = ListFiles(options);
  EXPECT_THAT(Pairs(list), ElementsAre("in/b.png > in/b.webp"));
  EXPECT_EQ(list.up_to_date, 1u);
  EXPECT_EQ(list.results, 1u);
  // One picture in two files that are no result of each other.
  Make("in/b.jpg");
  EXPECT_THAT(ErrorOf(options), AllOf(HasSubstr("in/b.webp"), Not(HasSubstr("earlier run"))));
}

// A run that was killed may have left temporary files beside its last output.
TEST_F(ExistingOutputTest, FoldersOfOutputsThatAreUpToDateAreListed) {
  Make("in/sub/a.png");
  Make("out/sub/a.png");
  Make("out/sub/.tessera-0123456789.tmp");
  ListOptions options = Options();
  options.recursive = true;
  options.existing = Existing::kSkip;
  const FileList list = ListFiles(options);
  EXPECT_THAT(list.files, IsEmpty());
  EXPECT_THAT(list.output_folders, ElementsAre(folder_ / "out/sub"));
  PrepareOutputFolders(options, list);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out/sub/.tessera-0123456789.tmp"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out/sub/a.png"));
}

}  // namespace
}  // namespace tessera
