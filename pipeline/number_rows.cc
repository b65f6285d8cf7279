#include "pipeline/number_rows.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "pipeline/read_number.h"

namespace tessera {
namespace {

constexpr std::string_view kSeparators = ",;";

std::optional<double> ToNumber(std::string_view word) {
  if (word.starts_with('+') && !word.starts_with("+-")) word.remove_prefix(1);
  return ReadNumber<double>(word);
}

}  // namespace

NumberRows::NumberRows(const std::filesystem::path& path) : lines_(path) {
  has_words_ = NextWords();
  if (!has_words_ || std::any_of(words_.begin(), words_.end(), ToNumber)) return;
  for (const std::string_view word : words_) {
    std::string& lower = header_.emplace_back(word);
    for (char& c : lower)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  has_words_ = false;
}

std::span<const double> NumberRows::Next() {
  row_.clear();
  if (!has_words_ && !NextWords()) return row_;
  has_words_ = false;
  for (const std::string_view word : words_) {
    const std::optional<double> number = ToNumber(word);
    RequireRow(number.has_value(), word.empty() ? "a value is missing" : "no number: ", word);
    row_.push_back(*number);
  }
  return row_;
}

// The words of the next line that has any; false at the end of the file.
bool NumberRows::NextWords() {
  words_.clear();
  while (words_.empty()) {
    std::string_view rest = lines_.Next();
    if (rest.empty()) return false;
    while (!rest.empty() && kSeparators.find(rest.back()) != kSeparators.npos)
      rest = Trim(rest.substr(0, rest.size() - 1));
    while (!rest.empty()) {
      const std::size_t end =
          std::min({rest.find_first_of(kSpaces), rest.find_first_of(kSeparators), rest.size()});
      words_.push_back(rest.substr(0, end));
      rest = Trim(rest.substr(end));
      if (!rest.empty() && kSeparators.find(rest.front()) != kSeparators.npos)
        rest = Trim(rest.substr(1));
    }
  }
  return true;
}

bool ToWhole(double number, std::int64_t& whole) {
  constexpr double kLimit = 1LL << 53;
  if (!(std::abs(number) <= kLimit) || number != std::floor(number)) return false;
  whole = static_cast<std::int64_t>(number);
  return true;
}

}  // namespace tessera
