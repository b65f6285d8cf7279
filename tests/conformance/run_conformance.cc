// Runs ONNX's backend tests of one category and compares with the list of exceptions:
//
//   run_conformance DATA CATEGORY EXCEPTIONS
//
// DATA/CATEGORY holds the tests. Prints what is not as it should be, and for each operator how many
// tests that use it passed, failed and are not supported. Exit code 0 if all is as it should be, 1
// if not, 77 (skipped) without data or without the instruction set that TESSERA_TARGET names.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "apps/backend_tests.h"
#include "engine/thread_team.h"
#include "ops/error.h"
#include "simd/cpu_target.h"
#include "tests/conformance/exceptions.h"

namespace tessera {
namespace {

void Print(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

int Run(const std::filesystem::path& data, const std::string& category,
        const std::filesystem::path& exceptions_file) {
  if (!MissingCpuTarget().empty()) {
    Print("Skipped: this machine has no " + MissingCpuTarget());
    return 77;
  }
  if (!std::filesystem::is_directory(data)) {
    Print("Skipped: " + data.string() +
          " is not there. Debian's package libonnx-testdata installs ONNX's backend tests.");
    return 77;
  }
  std::ifstream in(exceptions_file);
  Require(in.good(), exceptions_file.string(), ": cannot be opened");
  const std::vector<ConformanceException> exceptions = ReadExceptions(in);
  std::vector<BackendTest> tests = FindBackendTests(data / category);
  Require(!tests.empty(), (data / category).string(), ": holds no tests");

  ThreadTeam team(2);
  BackendCounts counts;
  std::map<std::string, BackendCounts> of_operator;
  int surprises = 0;
  for (BackendTest& test : tests) {
    test.name = category + "/" + test.name;
    // Should the test end the program, its name is the last that is said.
    std::printf("%s: ", test.name.c_str());
    std::fflush(stdout);
    const BackendResult result = RunBackendTest(test, team);
    Print(ToString(result));
    counts.Add(result.outcome);
    for (const std::string& name : result.operators) of_operator[name].Add(result.outcome);
    const std::string surprise = FindSurprise(test.name, result, exceptions);
    if (surprise.empty()) continue;
    ++surprises;
    Print("UNEXPECTED: " + surprise);
  }
  for (const ConformanceException& exception : exceptions) {
    if (!exception.pattern.starts_with(category + "/")) continue;
    if (std::ranges::any_of(tests, [&](const BackendTest& test) {
          return Matches(exception.pattern, test.name);
        })) {
      continue;
    }
    ++surprises;
    Print("UNEXPECTED: the exception " + exception.pattern + " fits no test");
  }
  std::printf("\n%-30s %7s %7s %14s\n", "operator", "passed", "failed", "not supported");
  for (const auto& [name, c] : of_operator) {
    std::printf("%-30s %7d %7d %14d\n", name.c_str(), c.passed, c.failed, c.not_supported);
  }
  Print(StrCat("\n", category, ": ", ToString(counts), "; ", surprises, " unexpected"));
  return surprises == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: run_conformance DATA CATEGORY EXCEPTIONS\n");
    return 2;
  }
  try {
    return tessera::Run(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "run_conformance: %s\n", error.what());
    return 2;
  }
}
