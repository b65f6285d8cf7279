// Inputs that fail, outputs that are in the way, and interrupts: what is left then.
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <array>
#include <chrono>
#include <csignal>
#include <future>
#include <thread>

#include "ops/error.h"
#include "tests/apps/track_command.h"
#include "tests/json.h"
#include "tests/pipeline/file_size_limit.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class TrackFailure : public TrackCommand {
 protected:
  static void CutTo(const std::string& path, double share) {
    const auto size = static_cast<double>(std::filesystem::file_size(path));
    std::filesystem::resize_file(path, static_cast<std::uintmax_t>(share * size));
  }

  // False if it does not become true within half a minute.
  template <typename Condition>
  static bool Await(Condition&& condition) {
    for (int i = 0; i < 3000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  // Waits until the program has printed so many records.
  static bool AwaitRecords(const RunningProgram& program, std::ptrdiff_t count) {
    return Await([&] { return std::ranges::count(program.OutputSoFar(), '\n') > count; });
  }
  // Waits until no record has come for a while.
  static void AwaitSilence(const RunningProgram& program) {
    std::string before;
    while (before != program.OutputSoFar()) {
      before = program.OutputSoFar();
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }
};

// Writes into a pipe, and holds it open for as long as it lives.
class Feed {
 public:
  Feed(const std::string& pipe, std::string bytes)
      : thread_([this, pipe, bytes = std::move(bytes)] {
          fd_ = ::open(pipe.c_str(), O_WRONLY);
          opened_.set_value();
          sigset_t broken_pipe;
          sigemptyset(&broken_pipe);
          sigaddset(&broken_pipe, SIGPIPE);
          pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
          for (std::size_t at = 0; at < bytes.size();) {
            const ssize_t n = ::write(fd_, bytes.data() + at, bytes.size() - at);
            if (n <= 0) return;
            at += static_cast<std::size_t>(n);
          }
        }) {}
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;
  ~Feed() {
    thread_.join();
    ::close(fd_);
  }

  // Until somebody has opened the other end.
  void AwaitReader() { opened_.get_future().wait(); }

 private:
  int fd_ = -1;
  std::promise<void> opened_;
  std::thread thread_;  // uses the above
};

TEST_F(TrackFailure, OfATruncatedVideoWhatThereIsIsDone) {
  for (const char* extension : {"mkv", "avi"}) {
    const std::string in = Path(StrCat("cut.", extension)), out = Path(StrCat("o.", extension));
    WriteSquareVideo(in, 60);
    CutTo(in, 0.6);
    const ProgramResult result =
        Track(WithInit({in, out, "--csv", Path("b.csv"), "--json", Path("b.json"), "--plot",
                        Path("p.png"), "--steps-out", Path("s.csv"), "--overwrite"}));
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr(in));
    const VideoContent video = ReadVideo(out);
    EXPECT_GT(video.frames, 10);
    EXPECT_LT(video.frames, 60);
    const auto frames = static_cast<std::size_t>(video.frames);
    EXPECT_THAT(ReadRows(ReadBytes(Path("b.csv"))), SizeIs(frames));
    EXPECT_EQ(ReadJson(Path("b.json")).list_value().values_size(), video.frames);
    EXPECT_FALSE(cv::imread(Path("p.png")).empty());
    EXPECT_EQ(std::ranges::count(ReadBytes(Path("s.csv")), '\n'), video.frames);
  }
}

TEST_F(TrackFailure, BeforeADamagedPictureAllIsDone) {
  std::filesystem::create_directory(folder_ / "in");
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE(cv::imwrite(Path(StrCat("in/", i, ".jpg")), SquareFrame(i)));
  }
  WriteBytes(Path("in/5.jpg"), "no picture");
  const ProgramResult result = Track(WithInit({Path("in"), Path("out"), "--csv", "-"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("5.jpg"));
  EXPECT_THAT(ReadRows(result.out), SizeIs(5));
  EXPECT_EQ(ReadVideo(Path("out/4.jpg")).frames, 1);
  EXPECT_FALSE(std::filesystem::exists(Path("out/5.jpg")));
}

TEST_F(TrackFailure, InputsThatCannotBeOpenedLeaveNothing) {
  const std::vector<std::string> outputs = {Path("o.mp4"), "--csv", Path("b.csv"), "--plot",
                                            Path("p.png")};
  const auto with = [&](const std::string& input) {
    std::vector<std::string> arguments = outputs;
    arguments.insert(arguments.begin(), input);
    return WithInit(arguments);
  };
  WriteBytes(video_, "no video");
  std::filesystem::create_directory(folder_ / "empty");
  ExpectFailure(1, {"in.mp4"}, with(video_));
  ExpectFailure(1, {"none.mp4"}, with(Path("none.mp4")));
  ExpectFailure(1, {"empty"}, with(Path("empty")));
  ExpectFailure(1, {"none%d.png"}, with(Path("none%d.png")));
  ExpectFailure(1, {"camera 93"}, with("93"));
  WriteSquareVideo(video_, 5);
  std::vector<std::string> late = with(video_);
  late.insert(late.end(), {"--start", "100"});
  ExpectFailure(1, {"in.mp4", "100"}, late);
}

TEST_F(TrackFailure, OutputsThatExistAreKept) {
  WriteSquareVideo(video_, 5);
  const auto expect_kept = [&](const std::string& name, const std::vector<std::string>& options) {
    WriteBytes(Path(name), "old");
    std::vector<std::string> arguments = {video_};
    arguments.insert(arguments.end(), options.begin(), options.end());
    ExpectFailure(2, {name, "exists", "--overwrite"}, WithInit(arguments));
    EXPECT_EQ(ReadBytes(Path(name)), "old");
    arguments.push_back("--overwrite");
    const ProgramResult result = Track(WithInit(arguments));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_GT(ReadBytes(Path(name)).size(), 100u) << name;
  };
  expect_kept("o.mp4", {Path("o.mp4")});
  expect_kept("b.csv", {"--csv", Path("b.csv")});
  expect_kept("b.json", {"--json", Path("b.json")});
  expect_kept("p.png", {"--plot", Path("p.png")});
  expect_kept("s.csv", {"--steps-out", Path("s.csv")});
}

TEST_F(TrackFailure, OutputsInEachOthersWayAreRefused) {
  WriteSquareVideo(video_, 5);
  std::filesystem::create_directory(folder_ / "in");
  ASSERT_TRUE(cv::imwrite(Path("in/1.png"), SquareFrame(0)));
  std::filesystem::create_symlink(video_, folder_ / "link.mp4");
  const std::string original = ReadBytes(video_);
  const std::vector<std::vector<std::string>> wrong = {
      {video_, video_},
      {video_, Path("link.mp4")},
      {Path("link.mp4"), video_},
      {video_, Path("in/../in.mp4")},
      {video_, "--csv", video_},
      {video_, "--csv", backbone_},
      {video_, "--plot", head_},
      {video_, Path("o.mp4"), "--json", Path("o.mp4")},
      {video_, "--csv", Path("a.csv"), "--steps-out", Path("in/../a.csv")},
      {Path("in"), Path("in")},
      {Path("in"), Path("in") + "/"},
      {Path("in/%d.png"), Path("in")},
      {Path("in"), Path("in/%d.jpg")},
      {video_, Path("none/o.mp4")},
      {video_, "--csv", Path("none/b.csv")},
      {video_, "--json", Path("none/b.json")},
      {video_, "--plot", Path("none/p.png")},
      {video_, "--steps-out", Path("none/s.csv")},
      {video_, "--csv", Path("in")}};
  for (std::vector<std::string> arguments : wrong) {
    SCOPED_TRACE(arguments.back());
    arguments.push_back("--overwrite");
    ExpectFailure(2, {}, WithInit(arguments));
  }
  EXPECT_EQ(ReadBytes(video_), original);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "none"));
}

// Neither is a file: a version of NanoTrack, and a camera.
TEST_F(TrackFailure, NamesThatAreNoFilesForbidNoOutput) {
  WriteSquareVideo(video_, 5);
  const auto enter = [this] { ASSERT_EQ(::chdir(folder_.path().c_str()), 0); };
  std::filesystem::create_directory(folder_ / "v1");
  const ProgramResult result =
      RunProgram(WithModel(WithInit({video_, "v1"})), {}, "/dev/null", enter);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "v1" / "000004.png"));
  const ProgramResult camera =
      RunProgram(WithModel(WithInit({"93", "93"})), {}, "/dev/null", enter);
  EXPECT_EQ(camera.exit_code, 1);
  EXPECT_THAT(camera.err, HasSubstr("camera 93"));
}

TEST_F(TrackFailure, ADiskThatIsFullEndsTheRun) {
  WriteSquareVideo(video_, 200, 20, {640, 480});
  WriteBytes(Path("o.mp4"), "old");
  const std::size_t files = folder_.NumFiles();
  const ProgramResult result =
      RunProgram(WithModel(WithInit({video_, Path("o.mp4"), "--overwrite"})), {}, "/dev/null",
                 [] { new FileSizeLimit(50'000); });
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("o.mp4"));
  EXPECT_EQ(ReadBytes(Path("o.mp4")), "old");
  EXPECT_EQ(folder_.NumFiles(), files);
}

// The rest of the video does not come: the interrupt finds the program waiting for it.
TEST_F(TrackFailure, AnInterruptCompletesTheOutputs) {
  WriteSquareVideo(Path("clip.mkv"), 300);
  const std::string clip = ReadBytes(Path("clip.mkv")), in = Path("in.mkv");
  ASSERT_EQ(::mkfifo(in.c_str(), 0600), 0);
  for (const int signal : {SIGINT, SIGTERM}) {
    RunningProgram program(WithModel(
        WithInit({in, Path("o.mkv"), "--csv", "-", "--json", Path("b.json"), "--overwrite"})));
    const Feed feed(in, clip.substr(0, clip.size() * 9 / 10));
    ASSERT_TRUE(AwaitRecords(program, 30));
    AwaitSilence(program);
    ::kill(program.pid(), signal);
    const ProgramResult result = program.Wait();
    EXPECT_EQ(result.exit_code, 130) << result.err;
    EXPECT_THAT(result.err, HasSubstr("track: stopped: "));
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
    const VideoContent video = ReadVideo(Path("o.mkv"));
    EXPECT_GE(video.frames, 30);
    EXPECT_LT(video.frames, 300);
    EXPECT_THAT(ReadRows(result.out), SizeIs(static_cast<std::size_t>(video.frames)));
    EXPECT_EQ(ReadJson(Path("b.json")).list_value().values_size(), video.frames);
  }
}

TEST_F(TrackFailure, BeforeTheFirstFrameAnInterruptEndsAtOnce) {
  ASSERT_EQ(::mkfifo(video_.c_str(), 0600), 0);
  RunningProgram program(WithModel(WithInit({video_, Path("o.mp4")})));
  Feed feed(video_, "");  // has opened the pipe when the program has
  feed.AwaitReader();
  ::kill(program.pid(), SIGINT);
  EXPECT_EQ(program.Wait().exit_code, 130);
  EXPECT_EQ(folder_.NumFiles(), 3u);
}

// Nobody reads the records: the program comes to a halt in the middle of its run.
TEST_F(TrackFailure, ASecondInterruptEndsAtOnce) {
  WriteSquareVideo(video_, 600);
  const std::size_t files = folder_.NumFiles();
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK), 0);
  std::array<char, 4096> block = {};
  int full = 0;
  while (::write(ends[1], block.data(), block.size()) > 0) {
  }
  ::ioctl(ends[0], FIONREAD, &full);
  ASSERT_EQ(::read(ends[0], block.data(), block.size()), 4096);  // there is room for some
  ::fcntl(ends[1], F_SETFL, 0);
  RunningProgram program(WithModel(WithInit({video_, Path("o.mp4"), "--csv", "-"})), {},
                         "/dev/null", [&] { ::dup2(ends[1], 1); });
  ::close(ends[1]);
  EXPECT_TRUE(Await([&] {
    int bytes = 0;
    ::ioctl(ends[0], FIONREAD, &bytes);
    return bytes > full - 200;
  }));
  EXPECT_TRUE(Await([&] { return folder_.NumFiles() == files + 1; }));  // the video's temporary
  ::kill(program.pid(), SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(program.HasEnded());
  // Two that come at the same time may count as one.
  EXPECT_TRUE(Await([&] {
    ::kill(program.pid(), SIGINT);
    return program.HasEnded();
  }));
  ::close(ends[0]);
  const ProgramResult result = program.Wait();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(folder_.NumFiles(), files);
}

TEST_F(TrackFailure, MessagesThatNobodyReadsDoNoHarm) {
  WriteSquareVideo(video_, 5);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  const ProgramResult result = RunProgram(WithModel(WithInit({video_, Path("o.mp4")})), {},
                                          "/dev/null", [&] { ::dup2(ends[1], 2); });
  ::close(ends[1]);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(ReadVideo(Path("o.mp4")).frames, 5);
}

// Else a file would be opened as the stream, and what is said would be written into it.
TEST_F(TrackFailure, ClosedStreamsDoOutputsNoHarm) {
  WriteSquareVideo(video_, 5);
  for (const int closed : {0, 1, 2}) {
    const std::string out = Path(StrCat(closed, ".mp4"));
    const ProgramResult result = RunProgram(WithModel(WithInit({video_, out})), {}, "/dev/null",
                                            [closed] { ::close(closed); });
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(ReadVideo(out).frames, 5);
  }
}

}  // namespace
}  // namespace tessera
