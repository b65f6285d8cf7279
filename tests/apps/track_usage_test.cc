// The command line: what is understood, and what is refused.
#include "tests/apps/track_command.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class TrackUsage : public TrackCommand {
 protected:
  TrackUsage() { WriteSquareVideo(video_, 6); }
};

TEST_F(TrackUsage, WrongUsageIsExitCode2) {
  ExpectFailure(2, {"an input is needed"}, {});
  ExpectFailure(2, {"one output at the most"}, WithInit({video_, Path("a.mp4"), "b.mp4"}));
  ExpectFailure(2, {"--frobnicate"}, WithInit({video_, "--frobnicate"}));
  ExpectFailure(2, {"the output's name is empty"}, WithInit({video_, ""}));
  ExpectFailure(2, {"--threads"}, WithInit({video_, "--threads", "0"}));
  ExpectFailure(2, {"--end", "--start"}, WithInit({video_, "--start", "5", "--end", "5"}));
  ExpectFailure(2, {"--every"}, WithInit({video_, "--every", "0"}));
  ExpectFailure(2, {"--start"}, WithInit({video_, "--start", "-1"}));
  ExpectFailure(2, {"--end"}, WithInit({video_, "--end", "1.5"}));
  ExpectFailure(2, {"--csv: is empty"}, WithInit({video_, "--csv", ""}));
  ExpectFailure(2, {"--steps-in", "--steps-out"}, WithInit({video_, "--steps-in", "a.csv"}));
  ExpectFailure(2, {"standard output"}, WithInit({video_, "--csv", "-", "--json", "-"}));
  ExpectFailure(2, {"standard output"}, WithInit({video_, "-"}));
  ExpectFailure(2, {"standard output"}, WithInit({video_, "--plot", "-"}));
  const ProgramResult no_model = RunProgram({"track", video_, "--init", "1,1,9,9"});
  EXPECT_EQ(no_model.exit_code, 2);
  EXPECT_THAT(no_model.err, HasSubstr("--model is needed"));
}

TEST_F(TrackUsage, TheBoxIsFourNumbersWithPoints) {
  ExpectFailure(2, {"--init x,y,w,h is needed"}, {video_});
  for (const char* text : {"1,2,3", "1,2,3,4,5", "1,2,3,", ",1,2,3", "1;2;3;4", "1 2 3", "1,,2,3,4",
                           "1,5,2,5,3,5,4,5", "5"}) {
    ExpectFailure(2, {"--init", text, "want"}, {video_, "--init", text});
  }
  for (const char* text : {"10,20,0,30", "10,20,30,-1", "10,20,-0,5"}) {
    ExpectFailure(2, {"--init", text, "empty"}, {video_, "--init", text});
  }
  for (const char* text : {"nan,1,2,3", "1,2,inf,3", "1e10,0,5,5"}) {
    EXPECT_EQ(Track({video_, "--init", text}).exit_code, 2) << text;
  }
  ExpectFailure(2, {"outside"}, {video_, "--init", "400,20,10,10"});
  ExpectFailure(2, {"outside"}, {video_, "--init=-50,20,10,10"});
  for (const std::vector<std::string>& init : {std::vector<std::string>{"--init", "-5,40.5,40,40"},
                                               {"--init=-5,40.5,40,40"},
                                               {"--init", "-5, 40.5 40,  40"},
                                               {"-b", "-5,40.5,40,40"}}) {
    std::vector<std::string> arguments = {video_, "--csv", "-"};
    arguments.insert(arguments.end(), init.begin(), init.end());
    const ProgramResult result = Track(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(ReadRows(result.out).at(0).box, (Box{-5, 40.5, 40, 40}));
  }
}

TEST_F(TrackUsage, TheBoxMayBeInAFile) {
  for (const char* line : {"30 40 40 40\n", "30,40,40,40", "30\t40\t40\t40\n1 1 1 1\n",
                           "frame,x,y,w,h\n0,30,40,40,40\n", "30,40,40,40\nand notes\n",
                           "1,0,0,9,9\n0,30,40,40,40\n"}) {
    WriteBytes(Path("init.txt"), line);
    const ProgramResult result = Track({video_, "--csv", "-", "--init", Path("init.txt")});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(ReadRows(result.out).at(0).box, (Box{30, 40, 40, 40})) << line;
  }
  WriteBytes(Path("init.txt"), "30,40\n");
  ExpectFailure(2, {"init.txt"}, {video_, "--init", Path("init.txt")});
  WriteBytes(Path("init.txt"), "0,0,0,0\n30,40,40,40\n");
  ExpectFailure(2, {"init.txt:1", "no box"}, {video_, "--init", Path("init.txt")});
  WriteBytes(Path("init.txt"), "1,30,40,40,40\n");
  ExpectFailure(2, {"init.txt", "no box of frame 0"}, {video_, "--init", Path("init.txt")});
  WriteBytes(Path("init.txt"), "# nothing else\n");
  ExpectFailure(2, {"init.txt", "no box"}, {video_, "--init", Path("init.txt")});
  ExpectFailure(2, {"none.txt"}, {video_, "--init", Path("none.txt")});
}

TEST_F(TrackUsage, TheBoxMayBeTheKnownOne) {
  WriteBytes(Path("gt.txt"), "0,0,0,0\n33,42,40,40\n");
  const ProgramResult result =
      Track({video_, "--csv", "-", "--start", "1", "--groundtruth", Path("gt.txt")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(ReadRows(result.out).at(0).box, (Box{33, 42, 40, 40}));
  ExpectFailure(2, {"gt.txt", "frame 0", "--init"}, {video_, "--groundtruth", Path("gt.txt")});
}

TEST_F(TrackUsage, FramesToTake) {
  const ProgramResult result =
      RunProgram(WithModel({video_, "--csv", "-", "--init", "33,42,40,40", "--start", "1",
                            "--every", "2", "--end", "6"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::vector<CsvRow> rows = ReadRows(result.out);
  ASSERT_THAT(rows, SizeIs(3));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(rows[static_cast<std::size_t>(i)].frame, 1 + 2 * i);
    EXPECT_NEAR(rows[static_cast<std::size_t>(i)].time, (1 + 2 * i) / 20.0, 1e-6);
  }
}

TEST_F(TrackUsage, ModelsThatCannotBeUsed) {
  const auto refused = [&](const std::string& model, const std::string& head,
                           const std::string& variant) {
    const std::size_t files = folder_.NumFiles();
    const ProgramResult result =
        RunProgram({"track", video_, Path("o.mp4"), "--init", "30,40,40,40", "--model", model,
                    "--head", head, "--variant", variant});
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
    EXPECT_EQ(folder_.NumFiles(), files);
    return result.err;
  };
  EXPECT_THAT(refused(Path("none.onnx"), head_, "v1"), HasSubstr("none.onnx"));
  WriteBytes(Path("noise.onnx"), "no network");
  EXPECT_THAT(refused(Path("noise.onnx"), head_, "v1"), HasSubstr("noise.onnx"));
  EXPECT_THAT(refused(backbone_, Path("missing.onnx"), "v1"), HasSubstr("missing.onnx"));
  EXPECT_THAT(refused(head_, backbone_, "v1"), HasSubstr("onnx"));
  EXPECT_THAT(refused(backbone_, head_, Path("missing.txt")), HasSubstr("missing.txt"));
}

TEST_F(TrackUsage, OptionsWithoutEffectAreMistakes) {
  ExpectFailure(2, {"--reconnect", "in.mp4"}, WithInit({video_, "--reconnect", "3"}));
  ExpectFailure(2, {"--fps", "in.mp4"}, WithInit({video_, "--fps", "30"}));
}

// Qt would end the process.
TEST_F(TrackUsage, WithoutADisplayTheBoxIsAskedFor) {
  const std::vector<std::string> none = {"DISPLAY=", "WAYLAND_DISPLAY=", "QT_QPA_PLATFORM="};
  ExpectFailure(2, {"--display", "--init"}, {video_, Path("o.mp4"), "--display"}, none);
  ExpectFailure(2, {"--display", "--init"}, WithInit({video_, "--display"}), none);
  for (const char* display : {":987", "nonsense"}) {
    ExpectFailure(2, {"cannot be opened", "--init"}, {video_, Path("o.mp4"), "--display"},
                  {std::string("DISPLAY=") + display, "WAYLAND_DISPLAY=", "QT_QPA_PLATFORM="});
  }
}

// Qt's platform for machines without a screen.
TEST_F(TrackUsage, TheWindowDoesNotChangeTheResult) {
  const std::vector<std::string> offscreen = {"QT_QPA_PLATFORM=offscreen"};
  const ProgramResult shown = Track(WithInit({video_, "--csv", "-", "--display"}), offscreen);
  if (shown.exit_code == 2) GTEST_SKIP() << shown.err;
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_EQ(shown.out, Track(WithInit({video_, "--csv", "-"})).out);
}

TEST_F(TrackUsage, VersionAndHelp) {
  const ProgramResult version = RunProgram({"track", "--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, testing::MatchesRegex("track [0-9.]+ \\([A-Z0-9_]+\\)\n"));
  const ProgramResult help = RunProgram({"track", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(RunProgram({"track", "-h"}).out, help.out);
  std::istringstream lines(help.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  for (const char* group : {"Target", "Model", "Frames", "Outputs", "Messages"})
    EXPECT_THAT(help.out, HasSubstr(std::string("\n") + group + ":\n"));
}

}  // namespace
}  // namespace tessera
