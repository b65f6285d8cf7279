// `track --precision int8`: the networks that it makes, and where they are kept.
#include <sys/stat.h>

#include <filesystem>
#include <span>

#include "engine/session.h"
#include "ops/error.h"
#include "tests/apps/track_command.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class TrackPrecision : public TrackCommand {
 protected:
  TrackPrecision() { WriteSquareVideo(video_, 30); }

  ProgramResult Int8(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--precision", "int8"});
    return Track(WithInit(std::move(arguments)), {"XDG_CACHE_HOME=" + cache_});
  }
  std::vector<std::filesystem::path> Kept() const {
    std::vector<std::filesystem::path> files;
    std::error_code none;
    for (std::filesystem::directory_iterator it(cache_ + "/tessera/int8", none), end;
         !none && it != end; it.increment(none))
      files.push_back(it->path());
    return files;
  }
  // The square is followed.
  void ExpectFollowed(const ProgramResult& result, std::size_t frames = 30) {
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const std::vector<CsvRow> rows = ReadRows(result.out);
    ASSERT_THAT(rows, SizeIs(frames));
    for (const CsvRow& row : rows) {
      EXPECT_LT(CentreDistance(row.box, SquareBox(row.frame)), 15) << row.frame;
      EXPECT_EQ(row.lost, 0);
    }
  }

  std::string cache_ = Path("cache");
};

TEST_F(TrackPrecision, FollowsAndIsKept) {
  const ProgramResult first = Int8({video_, "--csv", "-"});
  ExpectFollowed(first);
  EXPECT_THAT(first.err, HasSubstr(backbone_ + ": 1 of 1 convolutions"));
  EXPECT_THAT(first.err, HasSubstr(head_ + ": "));
  EXPECT_THAT(first.err, HasSubstr("boxes overlap"));
  EXPECT_THAT(Kept(), SizeIs(2));
  const ProgramResult second = Int8({video_, "--csv", "-"});
  ExpectFollowed(second);
  EXPECT_EQ(second.out, first.out);
  EXPECT_THAT(second.err, Not(HasSubstr("convolutions")));
  // Not the float networks.
  EXPECT_NE(Track(WithInit({video_, "--csv", "-"})).out, first.out);
}

TEST_F(TrackPrecision, QuantisedFilesAreTaken) {
  const ProgramResult made = Int8({video_, "--csv", "-"});
  ASSERT_THAT(Kept(), SizeIs(2));
  // The backbone has one input.
  std::string backbone = Kept()[0], head = Kept()[1];
  const std::string bytes = ReadBytes(backbone);
  const auto model = Session::LoadFromMemory(std::as_bytes(std::span(bytes)), "kept");
  if (model->inputs().size() == 2) std::swap(backbone, head);
  std::filesystem::copy_file(backbone, Path("b8.onnx"));
  std::filesystem::copy_file(head, Path("h8.onnx"));
  std::filesystem::remove_all(cache_);
  backbone_ = Path("b8.onnx");
  head_ = Path("h8.onnx");
  const ProgramResult taken = Int8({video_, "--csv", "-"});
  EXPECT_EQ(taken.out, made.out) << taken.err;
  EXPECT_EQ(Track(WithInit({video_, "--csv", "-"})).out, made.out);
  EXPECT_THAT(Kept(), testing::IsEmpty());
}

// What comes through a pipe cannot be read twice: the first frame has to do.
TEST_F(TrackPrecision, APipeIsReadOnce) {
  WriteSquareVideo(Path("clip.mkv"), 30);
  const std::string bytes = ReadBytes(Path("clip.mkv")), pipe = Path("pipe.mkv");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const pid_t writer = ::fork();
  if (writer == 0) {
    WriteBytes(pipe, bytes);
    ::_exit(0);
  }
  ExpectFollowed(Int8({pipe, "--csv", "-"}));
  ::waitpid(writer, nullptr, 0);
  EXPECT_THAT(Kept(), SizeIs(2));
}

TEST_F(TrackPrecision, PicturesAndLaterFramesDoToo) {
  std::filesystem::create_directory(folder_ / "in");
  for (int i = 0; i < 9; ++i)
    ASSERT_TRUE(cv::imwrite(Path(StrCat("in/", i, ".png")), SquareFrame(i)));
  ExpectFollowed(Int8({Path("in"), "--csv", "-"}), 9);
  std::filesystem::remove_all(cache_);
  const Box box = SquareBox(20);
  const ProgramResult late =
      Track({video_, "--start", "20", "--csv", "-", "--precision", "int8", "--init",
             StrCat(box.x, ",", box.y, ",", box.width, ",", box.height)},
            {"XDG_CACHE_HOME=" + cache_});
  ExpectFollowed(late, 10);
}

TEST_F(TrackPrecision, WithoutACacheItWorksAndSaysSo) {
  WriteBytes(cache_, "a file where a folder should be");
  const ProgramResult result = Int8({video_, "--csv", "-"});
  ExpectFollowed(result);
  EXPECT_THAT(result.err, HasSubstr("not kept"));
  EXPECT_EQ(Int8({video_, "--csv", "-", "--quiet"}).err, "");
}

TEST_F(TrackPrecision, WhatCannotBeIsAnError) {
  ExpectFailure(2, {"--precision", "fp32 or int8"}, WithInit({video_, "--precision", "half"}));
  ExpectFailure(2, {"outside"},
                {video_, "--precision", "int8", "--init", "5000,5000,10,10", "--quiet"},
                {"XDG_CACHE_HOME=" + cache_});
}

}  // namespace
}  // namespace tessera
