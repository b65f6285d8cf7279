// What the command says while it works, and when it is interrupted.
#include <pty.h>
#include <termios.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "tests/apps/upscale_command.h"
#include "tests/json.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::Not;

// Whether the program has taken the signal into its own hands. (Before that it just ends.)
bool Blocks(pid_t pid, int signal) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("SigBlk:")) {
      return std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1;
    }
  }
  return true;  // it has ended, which the test will see
}

class UpscaleMessages : public UpscaleCommand {
 protected:
  UpscaleMessages() {
    std::filesystem::create_directory(in_);
    WritePicture(in_ / "a.png", ImageFormat::kPng, picture_);
    WritePicture(in_ / "b.png", ImageFormat::kPng,
                 NoisePicture({.width = 8, .height = 6, .channels = 4}));
  }

  // What a terminal shows, raw.
  std::string OnATerminal(std::vector<std::string> arguments, int columns = 0) const {
    arguments = WithModel(std::move(arguments));
    arguments[0] = std::string(TESSERA_BIN_DIR) + "/upscale";
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    winsize size = {};
    size.ws_col = static_cast<unsigned short>(columns);
    int terminal = -1;
    const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, &size);
    if (pid == 0) {
      ::execv(pointers[0], pointers.data());
      ::_exit(127);
    }
    std::string shown;
    char buffer[1000];
    for (ssize_t n; (n = ::read(terminal, buffer, sizeof buffer)) > 0;)
      shown.append(buffer, static_cast<std::size_t>(n));
    int status = 0;
    ::waitpid(pid, &status, 0);
    ::close(terminal);
    EXPECT_EQ(status, 0) << shown;
    return shown;
  }

  const std::filesystem::path in_ = folder_ / "in", out_ = folder_ / "out";
};

TEST_F(UpscaleMessages, AFileIsAnnouncedAndReported) {
  const ProgramResult result = Upscale({input_, output_});
  EXPECT_EQ(result.out, "");
  const std::string names = input_ + " -> " + output_ + "  37x29 -> 74x58, ";
  EXPECT_THAT(result.err,
              testing::MatchesRegex(names + "about [0-9]+ MB\n" + names + "[0-9]+\\.[0-9] s\n"));
  const ProgramResult verbose = Upscale({input_, output_, "-v", "--overwrite", "--tile", "24"});
  EXPECT_THAT(verbose.err, testing::ContainsRegex("MB, [0-9]+ tiles of [0-9]+x[0-9]+\n"));
}

TEST_F(UpscaleMessages, ALineAFileAndAReport) {
  const ProgramResult result = Upscale({in_.string(), out_.string(), "-f", "jpg"});
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(Lines(result.err), 4) << result.err;  // with a note
  EXPECT_THAT(result.err, HasSubstr((in_ / "a.png").string() + " -> " + (out_ / "a.jpg").string() +
                                    "  37x29 -> 74x58, "));
  EXPECT_THAT(result.err, HasSubstr("b.png: note: JPEG has no alpha"));
  EXPECT_THAT(result.err, HasSubstr("upscale: 2 done, 0 skipped, 0 failed, 0:0"));
}

TEST_F(UpscaleMessages, QuietSaysErrorsOnly) {
  WriteBytes(in_ / "c.png", "no picture");
  const ProgramResult result = Upscale({in_.string(), out_.string(), "-f", "jpg", "--quiet"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(Lines(result.err), 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("c.png: "));
  // Nobody asked for silence on what was lost.
  const ProgramResult none =
      Upscale({in_.string(), out_.string(), "-f", "jpg", "--overwrite", "--progress", "none"});
  EXPECT_THAT(none.err, HasSubstr("note: "));
  EXPECT_THAT(none.err, HasSubstr("2 done, 0 skipped, 1 failed"));
  EXPECT_THAT(none.err, Not(HasSubstr("->")));
}

TEST_F(UpscaleMessages, OneJsonObjectALine) {
  WriteBytes(in_ / "bad\xFF\"\n.png", "no picture");
  WriteBytes(in_ / "notes.txt", "notes");
  const ProgramResult result = Upscale({in_.string(), out_.string(), "-f", "jpg", "--progress",
                                        "json", "-j", "1", "--threads", "1"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  std::map<std::string, std::vector<JsonValue>> events;
  std::istringstream lines(result.err);
  for (std::string line; std::getline(lines, line);) {
    const JsonValue event = ParseJson(line);
    events[String(event, "event")].push_back(event);
  }
  ASSERT_EQ(events["started"].size(), 2u);
  EXPECT_EQ(String(events["started"][0], "file"), (in_ / "a.png").string());
  EXPECT_EQ(Number(events["started"][0], "output_height"), 58);
  EXPECT_GT(Number(events["started"][0], "memory_bytes"), 37 * 29 * 3);
  EXPECT_EQ(Number(events["started"][0], "total"), 3);
  ASSERT_EQ(events["failed"].size(), 1u);
  EXPECT_EQ(String(events["failed"][0], "file"), in_.string() + "/bad\\xFF\"\\n.png");
  EXPECT_THAT(String(events["failed"][0], "reason"), HasSubstr("no picture"));
  ASSERT_EQ(events["done"].size(), 2u);
  EXPECT_EQ(String(events["done"][1], "output"), (out_ / "b.jpg").string());
  EXPECT_EQ(Number(events["done"][1], "width"), 8);
  EXPECT_EQ(Number(events["done"][1], "output_width"), 16);
  EXPECT_GT(Number(events["done"][1], "seconds"), 0);
  EXPECT_THAT(Elements(events["done"][1], "notes")[0].string_value(), HasSubstr("alpha"));
  ASSERT_EQ(events["finished"].size(), 1u);
  const JsonValue& end = events["finished"][0];
  EXPECT_EQ(Number(end, "done"), 2);
  EXPECT_EQ(Number(end, "failed"), 1);
  EXPECT_EQ(Number(Field(end, "skipped"), "not_pictures"), 1);
}

// A language that writes 1,5 for 1.5.
TEST_F(UpscaleMessages, NumbersHaveAPointInEveryLocale) {
  const std::string make = "localedef -i de_DE -f UTF-8 '" + Path("de_DE.UTF-8") + "' 2>/dev/null";
  if (std::system(make.c_str()) != 0) GTEST_SKIP() << "no localedef here";
  const ProgramResult result =
      Upscale({input_, output_, "--scale", "1.5", "--progress", "json"},
              {"LOCPATH=" + folder_.path().string(), "LC_ALL=de_DE.UTF-8", "LANG=de_DE.UTF-8"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(ReadPicture(output_).picture.width(), 56);
  std::istringstream lines(result.err);
  for (std::string line; std::getline(lines, line);) EXPECT_NO_THROW(ParseJson(line));
}

TEST_F(UpscaleMessages, ABarOnATerminal) {
  const std::string shown = OnATerminal({in_.string(), out_.string(), "--tile", "12"});
  EXPECT_THAT(shown, HasSubstr("0/2 pictures, 0/"));
  EXPECT_THAT(shown, HasSubstr(" tiles, "));
  EXPECT_THAT(shown, HasSubstr(" Mpixel/s"));
  EXPECT_THAT(shown, HasSubstr(" left"));
  EXPECT_THAT(shown, HasSubstr("\r\x1b[Kupscale: 2 done, 0 skipped, 0 failed"));
  EXPECT_THAT(shown, Not(HasSubstr("->")));

  // A narrow terminal gets no line that wraps.
  const std::string narrow = OnATerminal({in_.string(), out_.string(), "--overwrite"}, 30);
  std::size_t longest = 0;
  std::istringstream parts(narrow.substr(0, narrow.find("upscale: ")));
  for (std::string part; std::getline(parts, part, '\r');) longest = std::max(longest, part.size());
  EXPECT_GT(longest, 20u);
  EXPECT_LE(longest, 29 + std::string("\x1b[K").size());
}

TEST_F(UpscaleMessages, LinesOnATerminalOnDemand) {
  const std::string shown = OnATerminal({in_.string(), out_.string(), "--progress", "lines"});
  EXPECT_THAT(shown, HasSubstr(" -> "));
  EXPECT_THAT(shown, Not(HasSubstr("\x1b")));
}

TEST_F(UpscaleMessages, InterruptedIsExitCode130AndLeavesNothing) {
  // Far too large to be done in time.
  WritePicture(input_, ImageFormat::kPng, NoisePicture({.width = 3000, .height = 2000}));
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::size_t files = folder_.NumFiles();
    RunningProgram program({"upscale", input_, output_, "--threads", "1"});
    for (int i = 0; i < 6000 && !Blocks(program.pid(), signal); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // into the work
    ::kill(program.pid(), signal);
    const auto sent = std::chrono::steady_clock::now();
    const ProgramResult result = program.Wait();
    EXPECT_EQ(result.exit_code, 130);
    EXPECT_THAT(result.err, HasSubstr("upscale: interrupted: 0 done, 0 skipped, 0 failed, 1 left"));
    EXPECT_LT(std::chrono::steady_clock::now() - sent, std::chrono::seconds(20));
    EXPECT_EQ(folder_.NumFiles(), files);
  }
}

}  // namespace
}  // namespace tessera
