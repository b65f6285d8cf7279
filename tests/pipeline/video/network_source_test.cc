// Cameras and files behind URLs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <opencv2/imgcodecs.hpp>
#include <thread>

#include "tests/pipeline/video/test_frames.h"
#include "tests/pipeline/video/tiny_server.h"
#include "tests/temporary_folder.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

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

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Reads all; `stop` is set after `delay`. Returns how long it took from then on.
double SecondsToStop(FrameSource& source, std::atomic<bool>& stop, milliseconds delay) {
  Clock::time_point stopped;
  std::string error;
  {
    const std::jthread stopper([&] {
      std::this_thread::sleep_for(delay);
      stopped = Clock::now();
      stop = true;
    });
    error = ReadAllFrames(source).error;
  }
  EXPECT_EQ(error, "");
  return SecondsSince(stopped);
}

TEST(NetworkCamera, IsStoppedWhileItWaits) {
  const TinyServer server({JpegStream(0, 20)});
  std::atomic<bool> stop = false;
  const auto source = OpenFrameSource(server.url(), {.reconnect = 50, .stop = &stop});
  EXPECT_LT(SecondsToStop(*source, stop, milliseconds(500)), 0.5);
}

TEST(NetworkCamera, IsStoppedWhileItIsSilent) {
  const TinyServer server({JpegStream(0, 20)}, TinyServer::Then::kStay);
  std::atomic<bool> stop = false;
  const auto source = OpenFrameSource(server.url(), {.reconnect = 50, .stop = &stop});
  EXPECT_LT(SecondsToStop(*source, stop, milliseconds(300)), 6);
}

TEST(NetworkCamera, ThatDoesNotAnswerIsAnErrorSoon) {
  const TinyServer server({""}, TinyServer::Then::kStay);
  const Clock::time_point start = Clock::now();
  EXPECT_EQ(SourceError(server.url() + "/x"), server.url() + "/x: no answer comes");
  EXPECT_LT(SecondsSince(start), 6);
}

TEST(NetworkCamera, PasswordsStayHidden) {
  const std::string error = SourceError("http://me:secret@127.0.0.1:1/x@y?user=me&pwd=secret");
  EXPECT_THAT(error, StartsWith("http://...@127.0.0.1:1/x@y?...: "));
  EXPECT_THAT(error, Not(HasSubstr("secret")));
  const TinyServer server({JpegStream(0, 5)});
  std::string url = server.url() + "/x?pwd=secret";
  const auto source = OpenFrameSource(url.insert(7, "me:secret@"), {.reconnect = 1});
  const ReadFrames frames = ReadAllFrames(*source);
  for (const std::string& note : source->TakeNotes()) EXPECT_THAT(note, Not(HasSubstr("secret")));
  EXPECT_THAT(frames.error, AllOf(HasSubstr("/x?...: no frame"), Not(HasSubstr("secret"))));
}

TEST(ShownInput, IsTheNameWithoutSecrets) {
  EXPECT_EQ(ShownInput("rtsp://u:p@cam:554/live"), "rtsp://...@cam:554/live");
  EXPECT_EQ(ShownInput("rtsp://u:p@x@cam"), "rtsp://...@cam");
  EXPECT_EQ(ShownInput("http://cam/a@b"), "http://cam/a@b");
  EXPECT_EQ(ShownInput("http://cam?token=1@2"), "http://cam?...");
  EXPECT_EQ(ShownInput("0"), "camera 0");
  EXPECT_EQ(ShownInput("a\n.mp4"), "a\\n.mp4");
  EXPECT_EQ(ShownInput("u:p@x.mp4"), "u:p@x.mp4");
}

std::string FileAnswer(const std::string& bytes) {
  return StrCat("HTTP/1.0 200 OK\r\nContent-Type: video/x-matroska\r\nContent-Length: ",
                bytes.size(), "\r\n\r\n", bytes);
}

TEST(NetworkFile, IsNotLive) {
  const TemporaryFolder folder;
  WriteNumbered(folder / "clip.mkv", 20);
  const TinyServer server(std::vector<std::string>(4, FileAnswer(ReadBytes(folder / "clip.mkv"))));
  const ReadFrames frames = ReadAllFrames(server.url() + "/clip.mkv", {.start = 5});
  EXPECT_FALSE(frames.info.live);
  EXPECT_EQ(frames.contents, Range(5, 20));
  EXPECT_EQ(frames.error, "");
}

// That fewer frames come than were counted is not looked into: it would be loaded once more.
TEST(NetworkFile, IsLoadedOnce) {
  const TemporaryFolder folder;
  WriteNumbered(folder / "clip.mkv", 100);
  const std::string answer = FileAnswer(ReadBytes(folder / "clip.mkv"));
  const TinyServer server({answer.substr(0, answer.size() * 6 / 10)});
  const auto source = OpenFrameSource(server.url() + "/clip.mkv", {});
  const ReadFrames frames = ReadAllFrames(*source);
  EXPECT_GT(frames.contents.size(), 20u);
  EXPECT_LT(frames.contents.size(), 90u);
  EXPECT_EQ(frames.error, "");
  EXPECT_THAT(source->TakeNotes(),
              ElementsAre(StrCat(server.url(), "/clip.mkv: ended after ", frames.contents.size(),
                                 " frames, while about 100 were expected")));
}

TEST(NetworkFile, ThatStopsComingIsAnError) {
  const TemporaryFolder folder;
  WriteNumbered(folder / "clip.mkv", 100);
  const std::string answer = FileAnswer(ReadBytes(folder / "clip.mkv"));
  const TinyServer server({answer.substr(0, answer.size() * 6 / 10)}, TinyServer::Then::kStay);
  const ReadFrames frames = ReadAllFrames(server.url() + "/clip.mkv");
  EXPECT_GT(frames.contents.size(), 20u);
  EXPECT_EQ(frames.error, StrCat(server.url(), "/clip.mkv: nothing comes any more, after ",
                                 frames.contents.size(), " frames"));
}

}  // namespace
}  // namespace tessera
