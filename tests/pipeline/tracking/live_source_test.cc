// Cameras and streams that come and go.
#include "pipeline/tracking/live_source.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <opencv2/imgcodecs.hpp>
#include <thread>

#include "tests/pipeline/tracking/test_frames.h"
#include "tests/temporary_folder.h"

namespace tessera {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

constexpr std::int64_t kNoFrame = -1, kNoPixels = -2;

// A camera that gives frames of these numbers and then no more. For kNoFrame there is nothing to
// grab once, for kNoPixels nothing to retrieve.
class FakeCamera : public cv::VideoCapture {
 public:
  explicit FakeCamera(std::deque<std::int64_t> numbers) : numbers_(std::move(numbers)) {}

  bool isOpened() const override { return true; }
  double get(int property) const override { return property == cv::CAP_PROP_FPS ? 30 : 0; }
  bool grab() override {
    if (numbers_.empty()) return false;
    grabbed_ = numbers_.front();
    numbers_.pop_front();
    return grabbed_ != kNoFrame;
  }
  bool retrieve(cv::OutputArray pixels, int) override {
    if (grabbed_ == kNoPixels) return false;
    NumberedPixels(grabbed_).copyTo(pixels);
    return true;
  }

 private:
  std::deque<std::int64_t> numbers_;
  std::int64_t grabbed_ = 0;
};

// What a camera gives each time that it is opened; empty: it cannot be.
using Openings = std::vector<std::deque<std::int64_t>>;

class FakeSite {
 public:
  explicit FakeSite(Openings openings) : openings_(std::move(openings)) {}

  std::unique_ptr<FrameSource> Open(const SourceOptions& options) {
    return MakeLiveSource(OpenOnce(),
                          {.shown_name = "yard",
                           .open = [this] { return OpenOnce(); },
                           .wait = [this](milliseconds time) { waits.push_back(time); }},
                          options);
  }

  std::vector<milliseconds> waits;

 private:
  std::unique_ptr<cv::VideoCapture> OpenOnce() {
    if (next_ >= openings_.size() || openings_[next_++].empty()) return nullptr;
    return std::make_unique<FakeCamera>(openings_[next_ - 1]);
  }

  Openings openings_;
  std::size_t next_ = 0;
};

TEST(LiveSource, GivesWhatComes) {
  FakeSite site(Openings{{0, 1, 2, 3, 4}});
  const auto source = site.Open({.every = 2});
  EXPECT_TRUE(source->info().live);
  EXPECT_EQ(source->info().frames, std::nullopt);
  EXPECT_EQ(source->info().frames_per_second, 15);
  const ReadFrames frames = ReadAllFrames(*source);
  EXPECT_EQ(frames.contents, Range(0, 5, 2));
  EXPECT_EQ(frames.numbers, Range(0, 5, 2));
  EXPECT_EQ(frames.seconds[0], 0);
  EXPECT_TRUE(std::is_sorted(frames.seconds.begin(), frames.seconds.end()));
  EXPECT_EQ(frames.error, "yard: no frame comes any more");
  EXPECT_THAT(site.waits, IsEmpty());
}

// Streams over a network are damaged now and then.
TEST(LiveSource, PassesOverWhatCannotBeDecoded) {
  FakeSite site(Openings{{kNoFrame, kNoFrame, 1, 2, kNoFrame, 3, kNoFrame}});
  const ReadFrames frames = ReadAllFrames(*site.Open({}));
  EXPECT_EQ(frames.contents, Range(1, 4));
  EXPECT_EQ(frames.numbers, Range(0, 3));
}

TEST(LiveSource, StartsAndEndsWhereItIsTold) {
  FakeSite site(Openings{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}});
  const ReadFrames frames = ReadAllFrames(*site.Open({.start = 2, .end = 8, .every = 3}));
  EXPECT_EQ(frames.contents, Range(2, 8, 3));
  EXPECT_EQ(frames.error, "");
}

TEST(LiveSource, TimesAreThoseOfTheClock) {
  FakeSite site(Openings{{0, 1, 2}});
  const auto source = site.Open({});
  Frame frame;
  ASSERT_TRUE(source->Read(frame));
  std::this_thread::sleep_for(milliseconds(30));
  ASSERT_TRUE(source->Read(frame));
  EXPECT_GE(frame.seconds, 0.03);
  EXPECT_LT(frame.seconds, 10);
}

TEST(LiveSource, IsOpenedAgainWhenFramesStayAway) {
  FakeSite site(Openings{{0, 1, 2}, {}, {3, 4}, {5, kNoPixels, 6}, {7}});
  const auto source = site.Open({.reconnect = 2});
  Frame frame;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(source->Read(frame));
  EXPECT_THAT(source->TakeNotes(), IsEmpty());
  ASSERT_TRUE(source->Read(frame));
  EXPECT_EQ(NumberIn(frame.pixels), 3);
  EXPECT_EQ(frame.number, 3);
  EXPECT_THAT(source->TakeNotes(), ElementsAre(AllOf(StartsWith("yard: "), HasSubstr("(1 of 2)")),
                                               AllOf(StartsWith("yard: "), HasSubstr("(2 of 2)"))));
  const ReadFrames rest = ReadAllFrames(*source);
  EXPECT_EQ(rest.contents, (std::vector<std::int64_t>{4, 5, 7}));
  EXPECT_EQ(rest.numbers, (std::vector<std::int64_t>{4, 5, 6}));
  EXPECT_THAT(rest.error, AllOf(StartsWith("yard: "), HasSubstr("2 times")));
  // A frame that came makes the camera a good one again.
  EXPECT_THAT(site.waits, ElementsAre(milliseconds(250), milliseconds(500), milliseconds(250),
                                      milliseconds(250), milliseconds(250), milliseconds(500)));
}

TEST(LiveSource, WaitsLongerEachTimeUpToSomeSeconds) {
  FakeSite site(Openings{{0}});
  const ReadFrames frames = ReadAllFrames(*site.Open({.reconnect = 40}));
  EXPECT_EQ(frames.contents, Range(0, 1));
  ASSERT_THAT(site.waits, SizeIs(40));
  EXPECT_TRUE(std::is_sorted(site.waits.begin(), site.waits.end()));
  EXPECT_EQ(site.waits.back(), milliseconds(4000));
}

TEST(LiveSource, ThatCannotBeOpenedAtAllIsAnError) {
  FakeSite site(Openings{{}, {1}});
  EXPECT_THROW(site.Open({.reconnect = 5}), Error);
  EXPECT_THAT(SourceError("99"), StartsWith("camera 99: "));
  EXPECT_THAT(SourceError("http://127.0.0.1:1/x"), StartsWith("http://127.0.0.1:1/x: "));
}

TEST(LiveSource, PasswordsStayHidden) {
  const std::string error = SourceError("http://me:secret@127.0.0.1:1/x@y");
  EXPECT_THAT(error, StartsWith("http://...@127.0.0.1:1/x@y: "));
}

TEST(LiveSource, NumbersThatAreFilesAreFiles) {
  const TemporaryFolder folder;
  WriteNumbered(folder / "clip.avi", 3);
  std::filesystem::rename(folder / "clip.avi", folder / "0");
  const std::filesystem::path old = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const ReadFrames frames = ReadAllFrames("0");
  std::filesystem::current_path(old);
  EXPECT_FALSE(frames.info.live);
  EXPECT_EQ(frames.contents, Range(0, 3));
}

// A server on this machine that gives each caller the next of its answers, and hangs up.
class TinyServer {
 public:
  explicit TinyServer(std::vector<std::string> answers) : answers_(std::move(answers)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    url_ = StrCat("http://127.0.0.1:", ntohs(address.sin_port));
    thread_ = std::thread([this] { Serve(); });
  }
  ~TinyServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }

  const std::string& url() const { return url_; }

 private:
  void Serve() {
    for (std::size_t i = 0;; ++i) {
      const int caller = ::accept(listener_, nullptr, nullptr);
      if (caller < 0) return;
      char request[4096];
      (void)!::recv(caller, request, sizeof request, 0);
      const std::string answer =
          i < answers_.size() ? answers_[i] : "HTTP/1.0 404 Not Found\r\n\r\n";
      for (std::size_t sent = 0; sent < answer.size();) {
        const auto n = ::send(caller, answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
        if (n <= 0) break;
        sent += static_cast<std::size_t>(n);
      }
      ::close(caller);
    }
  }

  std::vector<std::string> answers_;
  int listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::string url_;
  std::thread thread_;
};

// As many network cameras send their pictures.
std::string JpegStream(std::int64_t begin, std::int64_t end) {
  std::string answer =
      "HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=frame\r\n\r\n";
  for (std::int64_t i = begin; i < end; ++i) {
    std::vector<std::uint8_t> jpeg;
    cv::imencode(".jpg", NumberedPixels(i), jpeg);
    answer +=
        StrCat("--frame\r\nContent-Type: image/jpeg\r\nContent-Length: ", jpeg.size(), "\r\n\r\n");
    answer.append(jpeg.begin(), jpeg.end());
    answer += "\r\n";
  }
  return answer;
}

TEST(NetworkCamera, IsOpenedAgain) {
  const TinyServer server({JpegStream(0, 20), JpegStream(20, 40)});
  const auto source = OpenFrameSource(server.url() + "/video", {.reconnect = 1});
  EXPECT_TRUE(source->info().live);
  const ReadFrames frames = ReadAllFrames(*source);
  EXPECT_GT(frames.contents.size(), 30u);  // those at the breaks may be lost
  EXPECT_TRUE(std::is_sorted(frames.contents.begin(), frames.contents.end()));
  EXPECT_GT(frames.contents.back(), 30);
  EXPECT_EQ(frames.numbers, Range(0, std::ssize(frames.numbers)));
  EXPECT_THAT(frames.error, StartsWith(server.url() + "/video: no frame comes"));
  EXPECT_THAT(source->TakeNotes(), SizeIs(2));
}

TEST(NetworkFile, IsNotLive) {
  const TemporaryFolder folder;
  WriteNumbered(folder / "clip.mkv", 20);
  const std::string bytes = ReadBytes(folder / "clip.mkv");
  const std::string head =
      StrCat("HTTP/1.0 200 OK\r\nContent-Type: video/x-matroska\r\nContent-Length: ", bytes.size(),
             "\r\n\r\n");
  const TinyServer server(std::vector<std::string>(4, head + bytes));
  const ReadFrames frames = ReadAllFrames(server.url() + "/clip.mkv", {.start = 5});
  EXPECT_FALSE(frames.info.live);
  EXPECT_EQ(frames.contents, Range(5, 20));
  EXPECT_EQ(frames.error, "");
}

}  // namespace
}  // namespace tessera
