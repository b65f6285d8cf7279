// Many files in work at a time.
#include "pipeline/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ops/error.h"
#include "pipeline/limited_model.h"
#include "tests/pipeline/fake_models.h"
#include "tests/pipeline/test_pictures.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// "planned 0", "done 0", ... as they come.
class Recorder : public BatchEvents {
 public:
  void Planned(std::size_t file, const FilePlan& plan) override {
    Add("planned", file);
    plans.push_back(plan);
    most_in_work = std::max(most_in_work, ++in_work_);
  }
  void Progress(std::size_t, std::size_t) override { const OneAtATime call(calls_); }
  void Done(std::size_t file, const FileResult& result, double seconds) override {
    Add("done", file);
    EXPECT_EQ(result.output.width, plans.at(0).output.width);
    EXPECT_GE(seconds, 0);
    --in_work_;
  }
  void Failed(std::size_t file, const std::string& reason) override {
    Add("failed", file);
    reasons.push_back(reason);
  }

  std::vector<std::string> events, reasons;
  std::vector<FilePlan> plans;
  int most_in_work = 0;

 private:
  struct OneAtATime {
    explicit OneAtATime(std::atomic<int>& calls) : count(calls) { EXPECT_EQ(++count, 1); }
    ~OneAtATime() { --count; }
    std::atomic<int>& count;
  };
  void Add(const char* event, std::size_t file) {
    const OneAtATime call(calls_);
    events.push_back(StrCat(event, " ", file));
  }

  std::atomic<int> calls_ = 0;
  int in_work_ = 0;
};

// Runs only together with another one.
class Meeting : public FakeNearest {
 public:
  Meeting() : FakeNearest(2) {}
  void Run(const TensorView& input, std::vector<Tensor>& outputs, Parallel& parallel) override {
    {
      std::unique_lock lock(mutex_);
      ++here_;
      changed_.notify_all();
      met = changed_.wait_for(lock, std::chrono::seconds(60), [&] { return here_ >= 2; });
    }
    FakeNearest::Run(input, outputs, parallel);
  }
  bool met = false;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int here_ = 0;
};

class Batches : public testing::Test {
 protected:
  // `count` pictures of 20x16 and where they go.
  std::vector<BatchFile> Files(int count) const {
    std::vector<BatchFile> files;
    for (int i = 0; i < count; ++i) {
      const auto input = folder_ / StrCat("in", i, ".png");
      WritePicture(input, ImageFormat::kPng,
                   NoisePicture({.width = 20, .height = 16}, static_cast<std::uint32_t>(i + 1)));
      files.push_back({.input = input, .job = {.output = folder_ / StrCat("out", i, ".png")}});
    }
    return files;
  }

  TemporaryFolder folder_;
  Recorder recorder_;
};

TEST_F(Batches, FilesOverlap) {
  auto model = std::make_unique<Meeting>();
  const Meeting& meeting = *model;
  const Upscaler upscaler(std::move(model), {});
  const std::vector<BatchFile> files = Files(2);
  UpscaleFiles(upscaler, files, {.files = 2}, recorder_);
  EXPECT_TRUE(meeting.met);
  EXPECT_EQ(recorder_.most_in_work, 2);
  for (const BatchFile& file : files) EXPECT_EQ(ReadPicture(file.job.output).picture.width(), 40);
}

// Counts how many runs there are at a time.
class Crowd : public FakeNearest {
 public:
  Crowd() : FakeNearest(2) {}
  void Run(const TensorView& input, std::vector<Tensor>& outputs, Parallel& parallel) override {
    const int here = ++here_;
    for (int most = most_; here > most && !most_.compare_exchange_weak(most, here);) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // others may come meanwhile
    FakeNearest::Run(input, outputs, parallel);
    --here_;
  }
  int most() const { return most_; }

 private:
  std::atomic<int> here_ = 0, most_ = 0;
};

TEST_F(Batches, TheNetworkRunsAsOftenAsItMay) {
  for (const int limit : {1, 3}) {
    auto model = std::make_unique<Crowd>();
    const Crowd& crowd = *model;
    // Four files of many tiles, two workers each.
    const Upscaler upscaler(MakeLimitedModel(std::move(model), limit),
                            {.tile = 12, .threads = 2, .workers = 2});
    UpscaleFiles(upscaler, Files(20), {.files = 4}, recorder_);
    EXPECT_GE(crowd.most(), std::min(limit, 2));
    EXPECT_LE(crowd.most(), limit);
  }
  EXPECT_EQ(ReadPicture(folder_ / "out19.png").picture.width(), 40);
}

TEST_F(Batches, OneAfterTheOther) {
  const Upscaler upscaler(std::make_unique<FakeNearest>(2), {});
  UpscaleFiles(upscaler, Files(3), {.files = 1}, recorder_);
  EXPECT_THAT(recorder_.events,
              ElementsAre("planned 0", "done 0", "planned 1", "done 1", "planned 2", "done 2"));
}

TEST_F(Batches, TheMemoryIsForAllInWork) {
  const Upscaler upscaler(std::make_unique<FakeNearest>(2), {});
  const std::vector<BatchFile> files = Files(6);
  UpscaleFiles(upscaler, files, {.files = 1, .dry_run = true}, recorder_);
  const std::size_t each = recorder_.plans.at(0).memory_bytes;
  for (const std::size_t memory : {std::size_t{1}, 2 * each - 1, 2 * each, 3 * each}) {
    Recorder recorder;
    UpscaleFiles(upscaler, files, {.files = 4, .memory_bytes = memory}, recorder);
    EXPECT_EQ(recorder.events.size(), 12u);
    EXPECT_LE(recorder.most_in_work, std::max(1, static_cast<int>(memory / each)));
  }
}

TEST_F(Batches, AFailureStopsNoOther) {
  auto model = std::make_unique<FakeNearest>(2);
  const Upscaler upscaler(std::move(model), {});
  std::vector<BatchFile> files = Files(5);
  WriteBytes(files[0].input, "no picture");
  WriteBytes(files[2].input, ReadBytes(files[2].input).substr(0, 300));
  files[3].job.size.scale = 1e10;
  UpscaleFiles(upscaler, files, {.files = 2}, recorder_);
  ASSERT_EQ(recorder_.reasons.size(), 3u);
  for (const char* name : {"in0.png: ", "in2.png: ", "in3.png: "}) {
    EXPECT_THAT(recorder_.reasons, testing::Contains(HasSubstr(name)));
  }
  for (const int i : {0, 2, 3})
    EXPECT_FALSE(std::filesystem::exists(folder_ / StrCat("out", i, ".png")));
  for (const int i : {1, 4})
    EXPECT_EQ(ReadPicture(folder_ / StrCat("out", i, ".png")).picture.width(), 40);
}

TEST_F(Batches, ADryRunPlansOnly) {
  const Upscaler upscaler(std::make_unique<FakeNearest>(3), {});
  const std::vector<BatchFile> files = Files(2);
  std::filesystem::remove(files[1].input);
  UpscaleFiles(upscaler, files, {.files = 2, .dry_run = true}, recorder_);
  EXPECT_THAT(recorder_.events, testing::UnorderedElementsAre("planned 0", "failed 1"));
  EXPECT_EQ(recorder_.plans[0].output.width, 60);
  EXPECT_FALSE(std::filesystem::exists(files[0].job.output));
}

}  // namespace
}  // namespace tessera
