#include "pipeline/tracking/track_record.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <limits>
#include <locale>
#include <string>
#include <vector>

#include "ops/error.h"
#include "pipeline/tracking/ground_truth.h"
#include "tests/json.h"
#include "tests/pipeline/file_size_limit.h"
#include "tests/temporary_folder.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const TrackRecord kFirst{
    .frame = 0, .seconds = 0, .box = {10, 20, 30, 40}, .score = 1, .lost = false};
const TrackRecord kSecond{.frame = 12345678,
                          .seconds = 493.8271199,
                          .box = {-1.23456, 1234.56784, 0.00004, 1e6},
                          .score = 0.1234564,
                          .lost = true};

// Standard output goes to that file while this lives.
class StandardOutput {
 public:
  explicit StandardOutput(const std::filesystem::path& path) : saved_(::dup(STDOUT_FILENO)) {
    std::fflush(stdout);
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT, 0666);
    ::dup2(fd, STDOUT_FILENO);
    ::close(fd);
  }
  ~StandardOutput() {
    std::fflush(stdout);
    std::clearerr(stdout);
    ::dup2(saved_, STDOUT_FILENO);
    ::close(saved_);
  }

 private:
  int saved_;
};

class RecordFile : public ::testing::Test {
 protected:
  std::string Written(RecordFormat format, const std::vector<TrackRecord>& records) {
    RecordWriter writer(path_, format, true);
    for (const TrackRecord& record : records) writer.Write(record);
    writer.Close();
    return ReadBytes(path_);
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "boxes.out";
};

constexpr const char* kHeader = "frame,time,x,y,w,h,score,lost\n";
constexpr const char* kFirstLine = "0,0.000000,10.0000,20.0000,30.0000,40.0000,1.000000,0\n";

TEST_F(RecordFile, CsvHasALineForEachRecord) {
  EXPECT_EQ(Written(RecordFormat::kCsv, {kFirst, kSecond}),
            std::string(kHeader) + kFirstLine +
                "12345678,493.827120,-1.2346,1234.5678,0.0000,1000000.0000,0.123456,1\n");
  EXPECT_EQ(Written(RecordFormat::kCsv, {}), kHeader);
}

TEST_F(RecordFile, CsvCanBeReadAsGroundTruth) {
  Written(RecordFormat::kCsv, {kFirst, {.frame = 4, .box = {1.25, 2.5, 3, 4}}});
  EXPECT_THAT(ReadGroundTruth(path_),
              testing::UnorderedElementsAre(testing::Pair(0, kFirst.box),
                                            testing::Pair(4, Box{1.25, 2.5, 3, 4})));
}

TEST_F(RecordFile, JsonIsAListOfObjects) {
  const JsonValue json = ParseJson(Written(RecordFormat::kJson, {kFirst, kSecond, kFirst}));
  ASSERT_EQ(json.list_value().values_size(), 3);
  const JsonValue& second = json.list_value().values(1);
  EXPECT_EQ(second.struct_value().fields_size(), 8);
  EXPECT_EQ(Number(second, "frame"), 12345678);
  EXPECT_EQ(Number(second, "time"), 493.827120);
  EXPECT_EQ(Number(second, "x"), -1.2346);
  EXPECT_EQ(Number(second, "y"), 1234.5678);
  EXPECT_EQ(Number(second, "w"), 0);
  EXPECT_EQ(Number(second, "h"), 1e6);
  EXPECT_EQ(Number(second, "score"), 0.123456);
  EXPECT_TRUE(Field(second, "lost").bool_value());
  EXPECT_FALSE(Field(json.list_value().values(0), "lost").bool_value());
  EXPECT_EQ(Number(json.list_value().values(2), "h"), 40);
}

TEST_F(RecordFile, JsonIsValidWithoutRecordsAndWithoutNumbers) {
  EXPECT_EQ(ParseJson(Written(RecordFormat::kJson, {})).list_value().values_size(), 0);
  TrackRecord record = kFirst;
  record.score = std::numeric_limits<double>::quiet_NaN();
  record.box.x = std::numeric_limits<double>::infinity();
  const JsonValue json = ParseJson(Written(RecordFormat::kJson, {record}));
  EXPECT_TRUE(Field(json.list_value().values(0), "score").has_null_value());
  EXPECT_TRUE(Field(json.list_value().values(0), "x").has_null_value());
  EXPECT_EQ(Number(json.list_value().values(0), "y"), 20);
}

TEST_F(RecordFile, NumbersDoNotFollowTheLocale) {
  struct German : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::string csv = Written(RecordFormat::kCsv, {kSecond});
  const std::string json = Written(RecordFormat::kJson, {kSecond});
  const std::locale old = std::locale::global(std::locale(std::locale(), new German));
  const std::string german_csv = Written(RecordFormat::kCsv, {kSecond});
  const std::string german_json = Written(RecordFormat::kJson, {kSecond});
  std::locale::global(old);
  EXPECT_EQ(german_csv, csv);
  EXPECT_EQ(german_json, json);
}

TEST_F(RecordFile, NothingIsThereBeforeClose) {
  {
    RecordWriter writer(path_, RecordFormat::kCsv, false);
    writer.Write(kFirst);
    EXPECT_FALSE(std::filesystem::exists(path_));
  }
  EXPECT_EQ(folder_.NumFiles(), 0U);

  WriteBytes(path_, "precious");
  {
    RecordWriter writer(path_, RecordFormat::kJson, true);
    writer.Write(kFirst);
    EXPECT_EQ(ReadBytes(path_), "precious");
  }
  EXPECT_EQ(ReadBytes(path_), "precious");
  EXPECT_EQ(folder_.NumFiles(), 1U);
}

TEST_F(RecordFile, WhatIsThereIsKeptUnlessItMayBeOverwritten) {
  WriteBytes(path_, "precious");
  EXPECT_THAT([&] { RecordWriter(path_, RecordFormat::kCsv, false); },
              ThrowsMessage<Error>(AllOf(HasSubstr("boxes.out: "), HasSubstr("exists already"))));
  EXPECT_EQ(ReadBytes(path_), "precious");
  EXPECT_EQ(Written(RecordFormat::kCsv, {kFirst}), std::string(kHeader) + kFirstLine);
}

TEST_F(RecordFile, WhatOthersMakeDuringTheRunIsKeptUnlessItMayBeOverwritten) {
  for (const bool overwrite : {false, true}) {
    std::filesystem::remove(path_);
    RecordWriter writer(path_, RecordFormat::kCsv, overwrite);
    writer.Write(kFirst);
    WriteBytes(path_, "precious");
    if (overwrite) {
      writer.Close();
      EXPECT_EQ(ReadBytes(path_), std::string(kHeader) + kFirstLine);
    } else {
      EXPECT_THAT(
          [&] { writer.Close(); },
          ThrowsMessage<Error>(HasSubstr("boxes.out: exists already; --overwrite replaces it")));
      EXPECT_EQ(ReadBytes(path_), "precious");
    }
  }
  EXPECT_EQ(folder_.NumFiles(), 1U);
}

TEST_F(RecordFile, WhatAKilledRunLeftIsRemovedByTheNext) {
  const pid_t child = ::fork();
  if (child == 0) {
    RecordWriter writer(path_, RecordFormat::kCsv, false);
    writer.Write(kFirst);
    ::kill(::getpid(), SIGKILL);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ASSERT_EQ(folder_.NumFiles(), 1U);
  Written(RecordFormat::kJson, {});
  EXPECT_EQ(folder_.NumFiles(), 1U);
  EXPECT_EQ(ReadBytes(path_), "[\n]\n");
}

TEST_F(RecordFile, PlacesThatCannotBeWrittenAreErrors) {
  const auto writing = [](const std::filesystem::path& path) {
    return [path] { RecordWriter(path, RecordFormat::kCsv, true); };
  };
  EXPECT_THAT(writing(folder_ / "none" / "boxes.csv"),
              ThrowsMessage<Error>(HasSubstr("none/boxes.csv: ")));
  EXPECT_THAT(writing(folder_.path()), ThrowsMessage<Error>(HasSubstr("is a folder")));
  EXPECT_THAT(writing("/dev/full"), ThrowsMessage<Error>(HasSubstr("/dev/full: ")));
}

TEST_F(RecordFile, AFullDiskIsFoundAndNamed) {
  for (const int records : {20, 2000}) {  // less than the stream holds back, and more
    const auto write = [&] {
      const FileSizeLimit full(100);
      Written(RecordFormat::kCsv, std::vector(static_cast<std::size_t>(records), kSecond));
    };
    EXPECT_THAT(write, ThrowsMessage<Error>(
                           AllOf(HasSubstr("boxes.out: cannot write"), HasSubstr("too large"))));
    EXPECT_EQ(folder_.NumFiles(), 0U);
  }
}

TEST_F(RecordFile, StandardOutputShowsEveryRecordAtOnce) {
  const StandardOutput to(path_);
  RecordWriter writer("-", RecordFormat::kCsv, false);
  EXPECT_EQ(ReadBytes(path_), kHeader);
  writer.Write(kFirst);
  EXPECT_EQ(ReadBytes(path_), std::string(kHeader) + kFirstLine);
  writer.Close();
  EXPECT_EQ(ReadBytes(path_), std::string(kHeader) + kFirstLine);
}

TEST_F(RecordFile, LinesOfJsonAreCompleteAtOnce) {
  const StandardOutput to(path_);
  RecordWriter writer("-", RecordFormat::kJson, false);
  writer.Write(kFirst);
  writer.Write(kSecond);
  const std::string text = ReadBytes(path_);
  EXPECT_TRUE(text.ends_with("\"lost\": true}\n")) << text;
  EXPECT_EQ(ParseJson(text + "]").list_value().values_size(), 2);
  writer.Close();
  EXPECT_EQ(ParseJson(ReadBytes(path_)).list_value().values_size(), 2);
}

TEST_F(RecordFile, AFullStandardOutputIsFoundAndNamed) {
  const StandardOutput to("/dev/full");
  EXPECT_THAT([] { RecordWriter("-", RecordFormat::kCsv, false); },
              ThrowsMessage<Error>(HasSubstr("standard output: cannot write")));
}

}  // namespace
}  // namespace tessera
