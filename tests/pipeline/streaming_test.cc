// Pictures that are read, upscaled and written at the same time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <mutex>
#include <thread>

#include "engine/thread_team.h"
#include "ops/error.h"
#include "pipeline/picture_input.h"
#include "pipeline/picture_output.h"
#include "pipeline/upscale_file.h"
#include "pipeline/upscaler.h"
#include "tests/pipeline/fake_models.h"
#include "tests/pipeline/test_pictures.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Streaming : public testing::Test {
 protected:
  template <typename F>
  static std::string ErrorOf(F&& f) {
    try {
      f();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  const TemporaryFolder folder_;
};

TEST_F(Streaming, InputDecodesWhatIsNeeded) {
  const Picture picture = NoisePicture({.width = 50, .height = 400});
  WritePicture(folder_ / "in.png", ImageFormat::kPng, picture);
  // The second half of the file is not there, and not looked at.
  const std::string bytes = ReadBytes(folder_ / "in.png");
  WriteBytes(folder_ / "half.png", bytes.substr(0, bytes.size() / 2));
  PictureInput input(folder_ / "half.png");
  EXPECT_EQ(input.format(), picture.format());
  input.NeedRows(100);
  EXPECT_EQ(std::memcmp(input.picture().Row(0), picture.Row(0), 100 * picture.format().RowBytes()),
            0);
  for (int i = 0; i < 2; ++i) {  // the second time too
    const std::string error = ErrorOf([&] { input.NeedRows(400); });
    EXPECT_THAT(error, HasSubstr("half.png: "));
    EXPECT_THAT(error, HasSubstr("ends too soon"));
  }
  EXPECT_NO_THROW(input.NeedRows(100));
}

TEST_F(Streaming, InputServesManyThreadsAndReadsAhead) {
  const Picture picture = NoisePicture({.width = 50, .height = 400});
  WritePicture(folder_ / "in.png", ImageFormat::kPng, picture);
  for (const bool ahead : {false, true}) {
    PictureInput input(folder_ / "in.png");
    std::optional<ReadAhead> reading;
    if (ahead) reading.emplace(input);
    std::vector<std::jthread> threads;
    for (std::int64_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (std::int64_t end = t; end <= 400; end += 3 + t) input.NeedRows(end);
        input.NeedRows(400);
      });
    }
    threads.clear();
    EXPECT_TRUE(SamePixels(input.picture(), picture));
    EXPECT_FALSE(input.ReadMore());
  }
}

TEST_F(Streaming, ErrorsOfReadingAheadWaitForWhoNeedsTheRows) {
  PictureInput input(folder_ / "none.png");
  { const ReadAhead reading(input); }
  EXPECT_THAT(ErrorOf([&] { input.NeedRows(1); }), HasSubstr("none.png: cannot open"));
  EXPECT_THAT(ErrorOf([&] { input.format(); }), HasSubstr("none.png: cannot open"));
}

// However the rows arrive, and from whom, the file is the one that a single thread writes at once.
TEST_F(Streaming, OutputIsTheSameForEveryOrder) {
  const Picture picture = NoisePicture({.width = 700, .height = 300});
  for (const char* name : {"a.png", "a.jpg", "a.tif"}) {
    SCOPED_TRACE(name);
    const ImageFormat format = *FormatOfExtension(name);
    WritePicture(folder_ / name, format, picture);
    const std::string expected = ReadBytes(folder_ / name);
    for (const std::int64_t step : {1, 7, 100, 299, 1000}) {
      PictureOutput output(folder_ / name, format, picture, {});
      ThreadTeam team(3);
      team.For((300 + step - 1) / step, [&](std::int64_t i, int) {
        output.RowsDone(std::min<std::int64_t>(300, (i + 1) * step));
      });
      EXPECT_EQ(ReadBytes(folder_ / name), expected);  // the old one still
      std::filesystem::remove(folder_ / name);
      output.Commit(team);
      EXPECT_EQ(ReadBytes(folder_ / name), expected) << step;
    }
  }
  EXPECT_EQ(folder_.NumFiles(), 3u);
}

TEST_F(Streaming, OutputBeginsBeforeThePictureIsComplete) {
  const Picture picture = NoisePicture({.width = 1000, .height = 600});
  PictureOutput output(folder_ / "a.png", ImageFormat::kPng, picture, {});
  const auto size = [&] {
    std::uintmax_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      bytes += entry.file_size();
    return bytes;
  };
  output.RowsDone(300);
  EXPECT_GT(size(), 500u * 1000);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.png"));
}

TEST_F(Streaming, OutputThatIsNotCommittedLeavesNothing) {
  const Picture picture = NoisePicture({.width = 100, .height = 600});
  { PictureOutput(folder_ / "a.png", ImageFormat::kPng, picture, {}).RowsDone(500); }
  EXPECT_EQ(folder_.NumFiles(), 0u);
}

// A source that hands out rows when they are needed and not before, and a reader of the result
// that looks at them when they are said to be complete.
TEST_F(Streaming, UpscalerWaitsForRowsAndTellsWhichAreComplete) {
  for (const int channels : {1, 3, 4}) {
    for (const double resampled : {1.0, 0.7}) {
      SCOPED_TRACE(testing::Message() << channels << " channels, resampled by " << resampled);
      const Picture in = NoisePicture({.width = 90, .height = 400, .channels = channels});
      const PictureFormat format{.width = static_cast<std::int64_t>(180 * resampled),
                                 .height = static_cast<std::int64_t>(800 * resampled),
                                 .channels = channels};
      for (const int workers : {1, 3}) {
        const Upscaler upscaler(std::make_unique<FakeConv>(),
                                {.tile = 48, .threads = 3, .workers = workers});
        const Picture expected = upscaler.Upscale(in, format);

        const Picture arrived = NoisePicture(in.format(), 2), out(format), seen(format);
        std::mutex mutex;
        std::int64_t rows = 0, complete = 0, first_complete_at = -1;
        const auto need = [&](std::int64_t end) {
          const std::lock_guard lock(mutex);
          ASSERT_LE(end, in.height());
          for (; rows < end; ++rows)
            std::memcpy(arrived.Row(rows), in.Row(rows), in.format().RowBytes());
        };
        const auto done = [&](std::int64_t end) {
          const std::lock_guard lock(mutex);
          if (complete == 0) first_complete_at = rows;
          for (; complete < end; ++complete)
            std::memcpy(seen.Row(complete), out.Row(complete), format.RowBytes());
        };
        upscaler.Upscale(arrived, out, {.need = need, .done = done});
        EXPECT_TRUE(SamePixels(out, expected));
        EXPECT_EQ(complete, format.height);
        EXPECT_TRUE(SamePixels(seen, expected));
        // Rows go out before all have come in, where nothing looks at the whole picture and no
        // worker can be late.
        if (channels != 4 && resampled == 1.0 && workers == 1) {
          EXPECT_LT(first_complete_at, in.height());
        }
      }
    }
  }
}

TEST_F(Streaming, FilesAreNamedInWhicheverStepFails) {
  const Picture picture = NoisePicture({.width = 100, .height = 300});
  WritePicture(folder_ / "in.png", ImageFormat::kPng, picture);
  const std::string bytes = ReadBytes(folder_ / "in.png");
  WriteBytes(folder_ / "cut.png", bytes.substr(0, bytes.size() / 2));
  const auto upscale = [&](const std::string& in, const std::string& out, float spoil) {
    auto model = std::make_unique<FakeNearest>(2);
    model->spoil_at = spoil;
    const Upscaler upscaler(std::move(model), {.tile = 24, .threads = 2, .workers = 2});
    PictureInput input(folder_ / in);
    UpscaleFile(upscaler, input, {.output = folder_ / out});
  };
  EXPECT_THAT(ErrorOf([&] { upscale("cut.png", "out.png", -1); }),
              StartsWith((folder_ / "cut.png").string() + ": the file ends too soon"));
  EXPECT_THAT(ErrorOf([&] { upscale("in.png", "no/out.png", -1); }),
              StartsWith((folder_ / "no/out.png").string() + ": cannot create"));
  EXPECT_THAT(ErrorOf([&] { upscale("in.png", "out.png", 1.0f / 255); }),
              StartsWith((folder_ / "in.png").string() + ": the result holds a value"));
  // A disk that is full long before the last tile.
  rlimit old = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  rlimit little = old;
  little.rlim_cur = 20000;
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  const std::string error = ErrorOf([&] { upscale("in.png", "out.png", -1); });
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(error, StartsWith((folder_ / "out.png").string() + ": "));
  EXPECT_THAT(error, HasSubstr("File too large"));
  EXPECT_EQ(folder_.NumFiles(), 2u);
  upscale("in.png", "out.png", -1);
  EXPECT_EQ(ReadPicture(folder_ / "out.png").picture.height(), 600);
}

}  // namespace
}  // namespace tessera
