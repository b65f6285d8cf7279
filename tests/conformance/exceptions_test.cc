// The list of exceptions: how it is read, and what it makes of a result.
#include "tests/conformance/exceptions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "ops/error.h"

namespace tessera {
namespace {

using testing::HasSubstr;

std::vector<ConformanceException> Read(const std::string& text) {
  std::istringstream in(text);
  return ReadExceptions(in);
}

TEST(ConformanceExceptions, AreReadLineByLine) {
  const auto exceptions = Read("# comment\n\nnode/test_a*  strings, and more\nreal/* download\n");
  ASSERT_EQ(exceptions.size(), 2u);
  EXPECT_EQ(exceptions[0].pattern, "node/test_a*");
  EXPECT_EQ(exceptions[0].reason, "strings, and more");
  EXPECT_EQ(exceptions[1].pattern, "real/*");
  EXPECT_EQ(exceptions[1].reason, "download");
}

TEST(ConformanceExceptions, NeedAReason) {
  EXPECT_THROW(Read("node/test_a\n"), Error);
  EXPECT_THROW(Read("node/test_a  \n"), Error);
  EXPECT_THROW(Read(" reason alone\n"), Error);
}

TEST(ConformanceExceptions, FitWholeNames) {
  EXPECT_TRUE(Matches("node/test_a", "node/test_a"));
  EXPECT_FALSE(Matches("node/test_a", "node/test_ab"));
  EXPECT_FALSE(Matches("test_a", "node/test_a"));
  EXPECT_TRUE(Matches("node/test_*_b", "node/test_a_b"));
  EXPECT_FALSE(Matches("node/test_*_b", "node/test_a_b_c"));
}

TEST(ConformanceExceptions, SayWhichResultsAreUnexpected) {
  const auto exceptions = Read("t/listed reason\n");
  const auto surprise = [&](const char* name, BackendOutcome outcome) {
    return FindSurprise(name, {outcome, "why", {}}, exceptions);
  };
  EXPECT_EQ(surprise("t/free", BackendOutcome::kPassed), "");
  EXPECT_EQ(surprise("t/free", BackendOutcome::kFailed), "failed: why");
  EXPECT_EQ(surprise("t/free", BackendOutcome::kNotSupported), "not supported: why");
  EXPECT_THAT(surprise("t/listed", BackendOutcome::kPassed), HasSubstr("reason"));
  EXPECT_EQ(surprise("t/listed", BackendOutcome::kFailed), "");
  EXPECT_EQ(surprise("t/listed", BackendOutcome::kNotSupported), "");
}

}  // namespace
}  // namespace tessera
