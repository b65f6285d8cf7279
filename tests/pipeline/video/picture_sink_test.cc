// Folders of pictures that are written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "tests/pipeline/file_size_limit.h"
#include "tests/pipeline/video/test_frames.h"
#include "tests/temporary_folder.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> NamesIn(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

Frame NamedFrame(std::int64_t number, const std::string& name) {
  Frame frame = NumberedFrame(number, {16, 12});
  frame.name = name;
  return frame;
}

TEST(FolderSink, IsMadeAndNamesPicturesByNumbers) {
  const TemporaryFolder folder;
  const std::filesystem::path out = folder / "new" / "sub";
  WriteNumbered(out, 3);
  EXPECT_THAT(NamesIn(out), ElementsAre("000000.png", "000001.png", "000002.png"));
  EXPECT_EQ(ReadAllFrames(out).contents, Range(0, 3));
  const auto sink = OpenFrameSink(folder / "dotted.name" / "", {});
  sink->Write(NumberedFrame(1234567));
  sink->Close();
  EXPECT_THAT(NamesIn(folder / "dotted.name"), ElementsAre("1234567.png"));
}

TEST(FolderSink, HoldsTheVeryPixels) {
  const TemporaryFolder folder;
  cv::RNG random(5);
  std::vector<cv::Mat> written;
  const auto sink = OpenFrameSink(folder / "out", {});
  for (const cv::Size size : {cv::Size(31, 17), cv::Size(31, 17), cv::Size(5, 40)}) {
    Frame frame = NumberedFrame(std::ssize(written), size);
    random.fill(frame.pixels, cv::RNG::UNIFORM, 0, 256);
    sink->Write(frame);
    written.push_back(frame.pixels);
  }
  sink->Close();
  const auto source = OpenFrameSource(folder / "out", {});
  Frame frame;
  for (const cv::Mat& pixels : written) {
    ASSERT_TRUE(source->Read(frame));
    ASSERT_EQ(frame.pixels.size(), pixels.size());
    EXPECT_EQ(cv::norm(frame.pixels, pixels, cv::NORM_INF), 0);
  }
}

TEST(FolderSink, KeepsTheNamesOfPictures) {
  const TemporaryFolder folder;
  const auto sink = OpenFrameSink(folder / "out", {});
  for (const char* name : {"a.png", "B.JPG", "c.tif", "d.gif", "e.jp2", "v1.2"})
    sink->Write(NamedFrame(0, name));
  sink->Close();
  EXPECT_THAT(NamesIn(folder / "out"),
              ElementsAre("B.JPG", "a.png", "c.tif", "d.png", "e.png", "v1.2.png"));
}

TEST(FolderSink, LosesNoFrameToEqualNames) {
  const TemporaryFolder folder;
  const auto sink = OpenFrameSink(folder / "out", {});
  const std::vector<std::string> names = {"a.gif", "a.png", "a.jp2", "a-2.png", "a.jpg", "a.png"};
  for (std::size_t i = 0; i < names.size(); ++i)
    sink->Write(NamedFrame(static_cast<std::int64_t>(i), names[i]));
  sink->Close();
  std::vector<std::int64_t> contents = ReadAllFrames(folder / "out").contents;
  std::sort(contents.begin(), contents.end());
  EXPECT_EQ(contents, Range(0, 6));
  EXPECT_EQ(ReadAllFrames(folder / "out" / "a.png").contents, Range(0, 1));
}

TEST(FolderSink, ReplacesOnlyWhatItMay) {
  const TemporaryFolder folder;
  WriteNumbered(folder / "out", 3);
  WriteBytes(folder / "out" / "notes.txt", "notes");
  EXPECT_THAT(SinkError(folder / "out"),
              AllOf(StartsWith((folder / "out").string()), HasSubstr("000000.png")));
  const auto sink = OpenFrameSink(folder / "out", {.overwrite = true});
  sink->Write(NumberedFrame(1, {8, 8}));
  sink->Close();
  const ReadFrames frames = ReadAllFrames(folder / "out");
  EXPECT_THAT(frames.sizes, ElementsAre(cv::Size(64, 48), cv::Size(8, 8), cv::Size(64, 48)));
  EXPECT_EQ(ReadBytes(folder / "out" / "notes.txt"), "notes");
}

TEST(FolderSink, WhatSomebodyElseMakesMeanwhileStays) {
  const TemporaryFolder folder;
  const auto sink = OpenFrameSink(folder / "out", {});
  sink->Write(NumberedFrame(0));
  WriteBytes(folder / "out" / "000001.png", "theirs");
  EXPECT_THROW(sink->Write(NumberedFrame(1)), Error);
  EXPECT_EQ(ReadBytes(folder / "out" / "000001.png"), "theirs");
}

TEST(FolderSink, LeavesTheInputAlone) {
  const TemporaryFolder folder;
  WriteNumbered(folder / "in", 3);
  std::filesystem::create_symlink("in", folder / "link");
  const std::filesystem::path in = folder / "in";
  for (const std::filesystem::path& source :
       {in, in / "000000.png", in / "%06d.png", folder / "link"}) {
    for (const std::filesystem::path& out : {in, in / "", folder / "link", in / "%06d.png"})
      EXPECT_THAT(SinkError(out, {.overwrite = true, .source = source}),
                  HasSubstr("the input's pictures are there"))
          << source << " " << out;
  }
  EXPECT_EQ(SinkError(in, {.overwrite = true, .source = "0"}), "");
  EXPECT_EQ(SinkError(in, {.overwrite = true, .source = folder / "clip.mp4"}), "");
  EXPECT_EQ(SinkError(in / "boxed%d.png", {.source = in / "%06d.png"}), "");
}

TEST(FolderSink, IsNotMadeWithoutAFrame) {
  const TemporaryFolder folder;
  OpenFrameSink(folder / "out", {})->Close();
  EXPECT_EQ(folder.NumFiles(), 0u);
}

TEST(FolderSink, HoldsCompletePicturesOnly) {
  const TemporaryFolder folder;
  {
    const FileSizeLimit full(3000);
    const auto sink = OpenFrameSink(folder / "out", {});
    sink->Write(NumberedFrame(0));
    Frame noise = NumberedFrame(1);
    cv::RNG(1).fill(noise.pixels, cv::RNG::UNIFORM, 0, 256);
    try {
      sink->Write(noise);
      ADD_FAILURE() << "a full disk was not noticed";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("000001.png: "));
    }
  }
  EXPECT_THAT(NamesIn(folder / "out"), ElementsAre("000000.png"));
}

TEST(FolderSink, TellsWhatCannotBeWritten) {
  const TemporaryFolder folder;
  WriteBytes(folder / "file", "x");
  EXPECT_THAT(SinkError(folder / "file"),
              EndsWith("file: exists already; --overwrite replaces it"));
  EXPECT_THAT(SinkError(folder / "file", {.overwrite = true}), EndsWith("file: is no folder"));
  EXPECT_THAT(SinkError(folder / "file" / "sub"), HasSubstr("is no folder"));
  EXPECT_THAT(SinkError(folder / "x.png"), HasSubstr("is a single picture"));
}

TEST(FolderSink, TellsThatItMayNotBeWritten) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "locked");
  ASSERT_EQ(::chmod((folder / "locked").c_str(), 0555), 0);
  if (::access((folder / "locked").c_str(), W_OK) == 0) GTEST_SKIP() << "may write everywhere";
  EXPECT_THAT(SinkError(folder / "locked"), HasSubstr("Permission denied"));
  EXPECT_THAT(SinkError(folder / "locked" / "sub"), HasSubstr("Permission denied"));
}

TEST(PatternSink, NamesPicturesByTheFramesNumbers) {
  const TemporaryFolder folder;
  const auto sink = OpenFrameSink(folder / "out" / "f%03d.jpg", {});
  for (const int i : {4, 8, 12}) sink->Write(NamedFrame(i, "own.png"));
  sink->Close();
  EXPECT_THAT(NamesIn(folder / "out"), ElementsAre("f004.jpg", "f008.jpg", "f012.jpg"));
  EXPECT_EQ(ReadAllFrames(folder / "out").contents, Range(4, 13, 4));
}

TEST(PatternSink, ReplacesOnlyWhatItMay) {
  const TemporaryFolder folder;
  WriteNumbered(folder / "f%d.png", 3);
  EXPECT_THAT(SinkError(folder / "f%d.png"),
              EndsWith("f0.png: exists already; --overwrite replaces it"));
  EXPECT_EQ(SinkError(folder / "g%d.png"), "");
  EXPECT_EQ(SinkError(folder / "f%02d.png"), "");
  WriteNumbered(folder / "f%d.png", 2, {.overwrite = true}, {8, 8});
  EXPECT_THAT(ReadAllFrames(folder / "f%d.png").sizes,
              ElementsAre(cv::Size(8, 8), cv::Size(8, 8), cv::Size(64, 48)));
}

TEST(PatternSink, NeedsANumberAndAFormat) {
  const TemporaryFolder folder;
  for (const char* name : {"f%s.png", "f%.png", "f%d-%d.png"})
    EXPECT_THAT(SinkError(folder / name), HasSubstr("number")) << name;
  EXPECT_THAT(SinkError(folder / "f%d.gif"), HasSubstr("no picture format"));
  EXPECT_THAT(SinkError(folder / "f%d"), HasSubstr("no picture format"));
}

}  // namespace
}  // namespace tessera
