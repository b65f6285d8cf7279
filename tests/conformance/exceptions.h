// The backend tests that are known not to pass, each with the reason.
#pragma once

#include <istream>
#include <string>
#include <vector>

#include "apps/backend_tests.h"

namespace tessera {

struct ConformanceException {
  std::string pattern;  // of a test's name; * stands for any text
  std::string reason;
};

// One a line: a pattern, spaces, and the reason. Empty lines and those that begin with # say
// nothing. Throws Error for a line without a reason.
std::vector<ConformanceException> ReadExceptions(std::istream& in);

bool Matches(const std::string& pattern, const std::string& name);

// What is wrong with the outcome of a test, or an empty string: one that no exception fits has to
// pass, and the others must not.
std::string FindSurprise(const std::string& name, const BackendResult& result,
                         const std::vector<ConformanceException>& exceptions);

}  // namespace tessera
