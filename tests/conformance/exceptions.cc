#include "tests/conformance/exceptions.h"

#include <fnmatch.h>

#include <algorithm>

#include "ops/error.h"

namespace tessera {

std::vector<ConformanceException> ReadExceptions(std::istream& in) {
  std::vector<ConformanceException> exceptions;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.front() == '#') continue;
    const std::size_t end = line.find(' ');
    const std::size_t reason = line.find_first_not_of(' ', end);
    Require(end != 0 && end != std::string::npos && reason != std::string::npos, "'", line,
            "': want a pattern and a reason");
    exceptions.push_back({line.substr(0, end), line.substr(reason)});
  }
  return exceptions;
}

bool Matches(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

std::string FindSurprise(const std::string& name, const BackendResult& result,
                         const std::vector<ConformanceException>& exceptions) {
  const auto exception = std::ranges::find_if(
      exceptions, [&](const ConformanceException& e) { return Matches(e.pattern, name); });
  const bool passed = result.outcome == BackendOutcome::kPassed;
  if (exception == exceptions.end()) return passed ? "" : ToString(result);
  return passed ? StrCat("passed, but is an exception: ", exception->reason) : "";
}

}  // namespace tessera
