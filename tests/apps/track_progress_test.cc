// What the program says while it works.
#include <pty.h>

#include "tests/apps/track_command.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

class TrackMessages : public TrackCommand {
 protected:
  TrackMessages() { WriteSquareVideo(video_, 300); }

  // With a terminal for stderr. Returns what is shown there.
  std::string OnATerminal(std::vector<std::string> arguments) const {
    arguments = WithModel(WithInit(std::move(arguments)));
    int terminal = -1, other = -1;
    winsize size = {.ws_row = 24, .ws_col = 70, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(::openpty(&terminal, &other, nullptr, nullptr, &size), 0);
    RunningProgram program(arguments, {}, "/dev/null", [&] { ::dup2(other, 2); });
    ::close(other);
    std::string shown;
    char buffer[4096];
    for (ssize_t n; (n = ::read(terminal, buffer, sizeof buffer)) > 0;) {
      shown.append(buffer, static_cast<std::size_t>(n));
    }
    ::close(terminal);
    EXPECT_EQ(program.Wait().exit_code, 0);
    return shown;
  }
};

TEST_F(TrackMessages, OneLineIsUpdatedOnATerminal) {
  const std::string shown = OnATerminal({video_, Path("o.mp4")});
  EXPECT_THAT(shown, HasSubstr("\r\x1b[Kframe "));
  EXPECT_THAT(shown, HasSubstr(" %, "));
  EXPECT_THAT(shown, HasSubstr(" frames/s, score "));
  // The line is gone before the summary comes.
  EXPECT_THAT(shown, HasSubstr("\r\x1b[Ktrack: 300 frames of 320x240 in "));
  EXPECT_EQ(OnATerminal({video_, "--quiet"}), "");
}

TEST_F(TrackMessages, ElsewhereThereIsTheSummary) {
  const ProgramResult result = Track(WithInit({video_}));
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err,
              MatchesRegex("track: 300 frames of 320x240 in [0-9.]+ s, [0-9]+ without the target; "
                           "frames/s: network [0-9.]+, all [0-9.]+\n"));
  EXPECT_EQ(Track(WithInit({video_, "--quiet"})).err, "");
}

}  // namespace
}  // namespace tessera
