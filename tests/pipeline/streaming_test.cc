// Pictures that are read, upscaled and written at the same time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
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
#include "tests/pipeline/file_size_limit.h"
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
  input.NeedRows(0, 100);
  EXPECT_EQ(std::memcmp(input.picture().Row(0), picture.Row(0), 100 * picture.format().RowBytes()),
            0);
  for (int i = 0; i < 2; ++i) {  // the second time too
    const std::string error = ErrorOf([&] { input.NeedRows(0, 400); });
    EXPECT_THAT(error, HasSubstr("half.png: "));
    EXPECT_THAT(error, HasSubstr("ends too soon"));
  }
  EXPECT_NO_THROW(input.NeedRows(0, 100));
}

TEST_F(Streaming, InputServesManyThreads) {
  const Picture picture = NoisePicture({.width = 50, .height = 400});
  WritePicture(folder_ / "in.png", ImageFormat::kPng, picture);
  PictureInput input(folder_ / "in.png");
  std::vector<std::jthread> threads;
  for (std::int64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t end = t; end <= 400; end += 3 + t) input.NeedRows(0, end);
      input.NeedRows(0, 400);
    });
  }
  threads.clear();
  EXPECT_TRUE(SamePixels(input.picture(), picture));
}

TEST_F(Streaming, ErrorsStayForEveryUse) {
  PictureInput input(folder_ / "none.png");
  EXPECT_THAT(ErrorOf([&] { input.NeedRows(0, 1); }), HasSubstr("none.png: cannot open"));
  EXPECT_THAT(ErrorOf([&] { input.format(); }), HasSubstr("none.png: cannot open"));
}

TEST_F(Streaming, InputsThatChangeMeanwhileAreNotedAsErrors) {
  const Picture picture = NoisePicture({.width = 50, .height = 400});
  const auto change = [&](const std::string& how) {
    WritePicture(folder_ / "in.png", ImageFormat::kPng, picture);
    const Upscaler upscaler(std::make_unique<FakeNearest>(2), {.tile = 24});
    PictureInput input(folder_ / "in.png");
    return ErrorOf([&] {
      UpscaleFile(upscaler, input, {.output = folder_ / "out.png"}, [&](std::size_t done, auto) {
        if (done != 3) return;
        const std::string bytes = ReadBytes(folder_ / "in.png");
        if (how == "written") WriteBytes(folder_ / "in.png", bytes + "more");
        if (how == "touched")
          std::filesystem::last_write_time(folder_ / "in.png", std::filesystem::file_time_type());
        if (how == "removed") std::filesystem::remove(folder_ / "in.png");
        if (how == "replaced") {
          WriteBytes(folder_ / "new.png", bytes);
          std::filesystem::rename(folder_ / "new.png", folder_ / "in.png");
        }
      });
    });
  };
  for (const char* how : {"written", "touched", "removed", "replaced"}) {
    EXPECT_THAT(change(how), HasSubstr("in.png: changed while it was read")) << how;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out.png"));
  }
  EXPECT_EQ(change("left alone"), "no error");
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
        SerialParallel serial;
        output.RowsDone(std::min<std::int64_t>(300, (i + 1) * step), serial);
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
  SerialParallel serial;
  EXPECT_GT(output.RowsDone(300, serial), 100);
  EXPECT_GT(size(), 500u * 1000);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.png"));
}

TEST_F(Streaming, OutputThatIsNotCommittedLeavesNothing) {
  const Picture picture = NoisePicture({.width = 100, .height = 600});
  SerialParallel serial;
  { PictureOutput(folder_ / "a.png", ImageFormat::kPng, picture, {}).RowsDone(500, serial); }
  EXPECT_EQ(folder_.NumFiles(), 0u);
}

// A source that hands out rows when they are needed and not before, and spoils those that are done
// with; a reader of the result that takes its rows when they are said to be complete, some of them
// late, as an encoder does. Both pictures hold no more rows than the plan says.
TEST_F(Streaming, UpscalerWorksOnWindowsOfRows) {
  // The last one's tiles are run twice, with more rows around them.
  const std::pair<int, FakeConvOptions> cases[] = {
      {1, {}}, {3, {}}, {4, {}}, {3, {.radius = 4, .rounding = 3, .gain = 40}}};
  for (const auto& [channels, model] : cases) {
    for (const double resampled : {1.0, 0.7, 0.1, 1.6}) {
      for (const auto& [w, h] : {std::pair{90, 400}, {400, 60}, {5, 900}}) {
        SCOPED_TRACE(testing::Message() << channels << " channels, resampled by " << resampled
                                        << ", " << w << "x" << h);
        const Picture in = NoisePicture({.width = w, .height = h, .channels = channels});
        const PictureFormat format{
            .width = std::max<std::int64_t>(1, std::lround(2 * w * resampled)),
            .height = std::lround(2 * h * resampled),
            .channels = channels};
        for (const int workers : {1, 3}) {
          const Upscaler upscaler(std::make_unique<FakeConv>(model),
                                  {.tile = 48, .threads = 3, .workers = workers});
          const Picture expected = upscaler.Upscale(in, format);

          constexpr std::int64_t kLate = 10;
          const Upscaler::Plan plan = upscaler.MakePlan(in.format(), format);
          const Picture arrived(in.format(), plan.input_rows), seen(format);
          const Picture out(format, plan.result_rows + kLate);
          std::mutex mutex;
          std::int64_t rows = 0, taken = 0, first_taken_at = -1;
          const auto need = [&](std::int64_t begin, std::int64_t end) {
            const std::lock_guard lock(mutex);
            ASSERT_LE(end, h);
            ASSERT_LE(end - begin, arrived.held_rows());
            for (; rows < end; ++rows)
              std::memcpy(arrived.Row(rows), in.Row(rows), in.format().RowBytes());
          };
          const auto done = [&](std::int64_t end, Parallel&) {
            const std::lock_guard lock(mutex);
            const std::int64_t until = end == format.height ? end : end - kLate;
            if (taken == 0 && until > 0) first_taken_at = rows;
            for (; taken < until; ++taken)
              std::memcpy(seen.Row(taken), out.Row(taken), format.RowBytes());
            return taken;
          };
          upscaler.Upscale(arrived, out, {.need = need, .done = done});
          EXPECT_EQ(taken, format.height);
          EXPECT_TRUE(SamePixels(seen, expected));
          // Rows go out before all have come in.
          if (h == 400 && workers == 1) {
            EXPECT_LT(first_taken_at, h);
            EXPECT_LT(plan.input_rows, h);
            EXPECT_LT(plan.result_rows, format.height);
          }
        }
      }
    }
  }
}

// A worker that waits for rows of one that fails is told.
TEST_F(Streaming, AFailureEndsTheWaitingOfOthers) {
  const Picture in = NoisePicture({.width = 90, .height = 900});
  for (const double resampled : {1.0, 0.7}) {
    const PictureFormat format{.width = std::lround(180 * resampled),
                               .height = std::lround(1800 * resampled)};
    const Upscaler upscaler(std::make_unique<FakeConv>(), {.tile = 24, .threads = 4, .workers = 4});
    const Upscaler::Plan plan = upscaler.MakePlan(in.format(), format);
    const Picture out(format, plan.result_rows);
    const auto done = [&](std::int64_t end, Parallel&) -> std::int64_t {
      if (end > 200) throw Error("the disk is full");
      return end;
    };
    EXPECT_EQ(ErrorOf([&] { upscaler.Upscale(in, out, {.done = done}); }), "the disk is full");
  }
}

TEST_F(Streaming, InputHoldsAWindowOfALargePicture) {
  for (const int channels : {3, 4}) {
    Picture picture = NoisePicture({.width = 50, .height = 2000, .channels = channels});
    if (channels == 4) {  // noise is hardly ever transparent, and then it is filled
      for (std::int64_t y = 0; y < 2000; ++y)
        for (std::int64_t x = 0; x < 50; ++x)
          SetSample(picture, x, y, 3, Sample(picture, x, y, 3) | 1);
    }
    WritePicture(folder_ / "in.png", ImageFormat::kPng, picture);
    PictureInput input(folder_ / "in.png");
    EXPECT_LT(input.MemoryBytes(100), 200 * picture.format().RowBytes());
    input.HoldRows(100);
    EXPECT_LT(input.picture().held_rows(), 150);
    for (std::int64_t y = 0; y < 2000; y += 30) {
      const std::int64_t end = std::min<std::int64_t>(2000, y + 100);
      input.NeedRows(y, end);
      for (std::int64_t i = y; i < end; ++i) {
        ASSERT_EQ(std::memcmp(input.picture().Row(i), picture.Row(i), picture.format().RowBytes()),
                  0)
            << i;
      }
    }
    PictureInput narrow(folder_ / "in.png");
    narrow.HoldRows(100);
    EXPECT_THAT(ErrorOf([&] { narrow.NeedRows(0, 2000); }), HasSubstr("more rows are needed"));
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
              StartsWith((folder_ / "no/out.png").string() + ": its folder is not there"));
  EXPECT_THAT(ErrorOf([&] { upscale("in.png", "out.png", 1.0f / 255); }),
              StartsWith((folder_ / "in.png").string() + ": the result holds a value"));
  // A disk that is full long before the last tile.
  std::string error;
  {
    const FileSizeLimit full(20000);
    error = ErrorOf([&] { upscale("in.png", "out.png", -1); });
  }
  EXPECT_THAT(error, StartsWith((folder_ / "out.png").string() + ": "));
  EXPECT_THAT(error, HasSubstr("File too large"));
  EXPECT_EQ(folder_.NumFiles(), 2u);
  upscale("in.png", "out.png", -1);
  EXPECT_EQ(ReadPicture(folder_ / "out.png").picture.height(), 600);
}

}  // namespace
}  // namespace tessera
