// Lines of text files, and numbers in them.
#include "pipeline/text_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "ops/error.h"
#include "pipeline/read_number.h"
#include "tests/temporary_folder.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class TextLinesFile : public testing::Test {
 protected:
  std::vector<std::string> Read(const std::string& text) {
    WriteBytes(path_, text);
    TextLines lines(path_);
    std::vector<std::string> read;
    for (std::string_view line; !(line = lines.Next()).empty();) read.emplace_back(line);
    return read;
  }

  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "a.txt";
};

TEST_F(TextLinesFile, AreTrimmedAndHoldSomething) {
  EXPECT_THAT(Read("a b\n\n \t\r\n  c\t\r\nd"), ElementsAre("a b", "c", "d"));
  EXPECT_THAT(Read("# all\na # b\n#\n c#d\n"), ElementsAre("a", "c"));
  EXPECT_THAT(Read("\xEF\xBB\xBF"
                   "a\n\xEF\xBB\xBF"
                   "b\n"),
              ElementsAre("a",
                          "\xEF\xBB\xBF"
                          "b"));
  for (const char* nothing : {"", "\n\n", "# a", " \t", "\xEF\xBB\xBF"})
    EXPECT_THAT(Read(nothing), IsEmpty()) << nothing;
}

TEST_F(TextLinesFile, HaveALimit) {
  EXPECT_THAT(Read("a\n" + std::string(4096, 'b') + "\nc"),
              ElementsAre("a", std::string(4096, 'b'), "c"));
  EXPECT_THAT([&] { Read("a\n" + std::string(4097, 'b')); },
              testing::ThrowsMessage<Error>(path_.string() + ":2: the line is too long"));
}

TEST_F(TextLinesFile, ErrorsNameFileAndLine) {
  WriteBytes(path_, "a\n\n# b\nc\nd\n");
  TextLines lines(path_);
  lines.Next();
  EXPECT_EQ(lines.Next(), "c");
  EXPECT_THAT([&] { lines.Fail("no\nc"); },
              testing::ThrowsMessage<Error>(path_.string() + ":4: no\\nc"));
  EXPECT_THAT([&] { TextLines(folder_ / "none"); },
              testing::ThrowsMessage<Error>(HasSubstr("none: ")));
  EXPECT_THAT([&] { TextLines(folder_.path()).Next(); },
              testing::ThrowsMessage<Error>(HasSubstr(folder_.path().string() + ": ")));
}

TEST(ReadNumber, TakesAllOfTheText) {
  EXPECT_EQ(ReadNumber<double>("-1.5e2"), -150);
  EXPECT_TRUE(std::isnan(ReadNumber<double>("nan").value_or(0)));
  for (const char* text : {"", " 1", "1 ", "1x", "1,5", "x", "1e999"})
    EXPECT_EQ(ReadNumber<double>(text), std::nullopt) << text;
  EXPECT_EQ(ReadNumber<std::int64_t>("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(ReadNumber<std::int64_t>("9223372036854775808"), std::nullopt);
}

TEST(ReadNumber, HasLimits) {
  EXPECT_EQ(ReadNumber("1", 1, 3), 1);
  EXPECT_EQ(ReadNumber("3", 1, 3), 3);
  EXPECT_EQ(ReadNumber("0", 1, 3), std::nullopt);
  EXPECT_EQ(ReadNumber("4", 1, 3), std::nullopt);
  EXPECT_EQ(ReadNumber("nan", -1.0, 1.0), std::nullopt);
}

}  // namespace
}  // namespace tessera
