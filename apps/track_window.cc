#include "apps/track_window.h"

#include <fcntl.h>
#include <opencv2/highgui/highgui_c.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <opencv2/highgui.hpp>
#include <utility>

#include "ops/error.h"
#include "pipeline/tracking/drawing.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kTitle[] = "track";
constexpr int kEnter = 13, kEscape = 27, kSpace = 32;

bool IsSet(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

// Qt, with which highgui is built, ends the process if it cannot reach the display: a child tries
// first. (cvInitSystem is the only call that connects without opening a window.) It stays until
// this process has its own connection, as a server may begin anew when its last client leaves.
bool CanConnect() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
  const pid_t child = ::fork();
  if (child == 0) {
    const int nowhere = ::open("/dev/null", O_RDWR);
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
    const rlimit no_core = {};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::alarm(10);  // a display that does not answer is none
    ::close(ends[0]);
    char byte = 0;
    if (::cvInitSystem(0, nullptr) != 0 || ::write(ends[1], &byte, 1) != 1) ::_exit(1);
    ::_exit(static_cast<int>(::read(ends[1], &byte, 1)));  // waits for the other end to close
  }
  ::close(ends[1]);
  char byte = 0;
  const bool connected =
      child > 0 && ::read(ends[0], &byte, 1) == 1 && ::cvInitSystem(0, nullptr) == 0;
  ::close(ends[0]);
  if (child > 0) ::waitpid(child, nullptr, 0);
  return connected;
}

}  // namespace

void ConnectToDisplay() {
  constexpr char kAdvice[] = "; without --display, --init x,y,w,h gives the box";
  // Those that Qt can do without one have been asked for by name.
  Require(IsSet("DISPLAY") || IsSet("WAYLAND_DISPLAY") || IsSet("QT_QPA_PLATFORM"),
          "--display: there is no display here (DISPLAY is not set)", kAdvice);
  Require(CanConnect(), "--display: the display cannot be opened", kAdvice);
}

Box TrackWindow::Drawn::Within(const cv::Mat& picture) const {
  const cv::Rect box = cv::Rect(from, to) & cv::Rect({}, picture.size());
  return {static_cast<double>(box.x), static_cast<double>(box.y), static_cast<double>(box.width),
          static_cast<double>(box.height)};
}

void TrackWindow::OnMouse(int event, int x, int y, int /*flags*/, void* window) {
  Drawn& drawn = static_cast<TrackWindow*>(window)->drawn_;
  if (event == cv::EVENT_LBUTTONDOWN) drawn = {{x, y}, {x, y}, true};
  if (drawn.down) drawn.to = {x, y};
  if (event == cv::EVENT_LBUTTONUP) drawn.down = false;
}

TrackWindow::TrackWindow(double frames_per_second, const std::atomic<bool>& stop)
    : interval_(frames_per_second > 0 ? 1 / frames_per_second : 0), stop_(stop) {}

TrackWindow::~TrackWindow() {
  if (opened_) cv::destroyAllWindows();
}

void TrackWindow::Open(const cv::Mat& picture) {
  if (opened_) return;
  cv::namedWindow(kTitle, cv::WINDOW_NORMAL | cv::WINDOW_KEEPRATIO | cv::WINDOW_GUI_NORMAL);
  cv::resizeWindow(kTitle, picture.cols, picture.rows);
  cv::setMouseCallback(kTitle, OnMouse, this);
  opened_ = true;
}

bool TrackWindow::IsClosed() const {
  return cv::getWindowProperty(kTitle, cv::WND_PROP_VISIBLE) < 1;
}

std::optional<Box> TrackWindow::Select(const Frame& frame) {
  Open(frame.pixels);
  drawn_ = {};
  int key = -1;
  while (key != kEnter && key != kSpace) {
    frame.pixels.copyTo(shown_);
    const cv::Scalar yellow(0, 255, 255);
    const Box all = {0, 0, static_cast<double>(shown_.cols), static_cast<double>(shown_.rows)};
    DrawTab(shown_, "Draw a box, then Enter; Esc: none", all, TabPlace::kAbove, yellow, 0,
            std::max(8.0, shown_.rows / 50.0));
    const Box box = drawn_.Within(shown_);
    if (box.width > 0 && box.height > 0) DrawOutline(shown_, box, yellow, 2);
    cv::imshow(kTitle, shown_);
    key = cv::waitKey(30);
    if (stop_ || IsClosed()) return std::nullopt;
    if (key == kEscape || key == 'q') break;
  }
  next_ = Clock::now();
  const Box box = drawn_.Within(frame.pixels);
  if (key == kEscape || key == 'q' || box.width == 0 || box.height == 0) return std::nullopt;
  return box;
}

TrackEvents::Wish TrackWindow::WishBefore(Clock::time_point end) const {
  constexpr std::chrono::milliseconds kShortest{1}, kLongest{50};
  do {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    const int key = cv::waitKey(static_cast<int>(std::clamp(left, kShortest, kLongest).count()));
    if (key == kEscape || key == 'q' || IsClosed()) return TrackEvents::Wish::kEnd;
    if (key == 's') return TrackEvents::Wish::kStartAnew;
  } while (!stop_ && Clock::now() < end);
  return TrackEvents::Wish::kGoOn;
}

TrackEvents::Wish TrackWindow::Show(const Frame& frame, const TrackRecord& record) {
  const bool first = !opened_;
  Open(frame.pixels);
  if (!first && IsClosed()) return TrackEvents::Wish::kEnd;
  frame.pixels.copyTo(shown_);
  painter_.Paint(record, shown_);
  cv::imshow(kTitle, shown_);
  // Late frames are not made up for.
  next_ = std::max(next_ + std::chrono::duration_cast<Clock::duration>(interval_), Clock::now());
  const TrackEvents::Wish wish = WishBefore(next_);
  const bool draws_anew = std::exchange(draws_anew_, false);
  return wish == TrackEvents::Wish::kGoOn && draws_anew ? TrackEvents::Wish::kStartAnew : wish;
}

bool TrackWindow::Wait() {
  if (!opened_) return true;
  const TrackEvents::Wish wish = WishBefore(Clock::now());
  draws_anew_ = draws_anew_ || wish == TrackEvents::Wish::kStartAnew;
  return wish != TrackEvents::Wish::kEnd;
}

}  // namespace tessera
