#include "pipeline/tracking/number_rows.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "pipeline/display_name.h"
#include "pipeline/require_system.h"

namespace tessera {
namespace {

// Longer lines are no rows of numbers, but a video given by mistake.
constexpr std::size_t kMaxLine = 4096;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kSpaces = " \t\r\v\f";
constexpr std::string_view kSeparators = ",;";

std::string_view WithoutSpaces(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(kSpaces), text.size());
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

std::optional<double> ToNumber(std::string_view word) {
  if (word.starts_with('+') && !word.starts_with("+-")) word.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

}  // namespace

NumberRows::NumberRows(const std::filesystem::path& path) : shown_name_(InputName(path)) {
  file_ = Naming(shown_name_, [&] { return OpenInput(path); });
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
    line_.clear();
    ++line_number_;
    int c = 0;
    while ((c = ::getc_unlocked(file_.get())) != EOF && c != '\n') {
      RequireRow(line_.size() < kMaxLine, "too long for a row of numbers");
      line_ += static_cast<char>(c);
    }
    Naming(shown_name_, [&] { RequireSystem(!std::ferror(file_.get()), "cannot read"); });
    if (c == EOF && line_.empty()) return false;

    std::string_view rest = line_;
    if (line_number_ == 1 && rest.starts_with(kByteOrderMark))
      rest.remove_prefix(kByteOrderMark.size());
    rest = WithoutSpaces(rest);
    if (rest.starts_with('#')) continue;
    while (!rest.empty() && kSeparators.find(rest.back()) != kSeparators.npos)
      rest = WithoutSpaces(rest.substr(0, rest.size() - 1));
    while (!rest.empty()) {
      const std::size_t end =
          std::min({rest.find_first_of(kSpaces), rest.find_first_of(kSeparators), rest.size()});
      words_.push_back(rest.substr(0, end));
      rest = WithoutSpaces(rest.substr(end));
      if (!rest.empty() && kSeparators.find(rest.front()) != kSeparators.npos)
        rest = WithoutSpaces(rest.substr(1));
    }
  }
  return true;
}

void NumberRows::Fail(const std::string& reason) const {
  throw FileError(OneLine(StrCat(shown_name_, ": line ", line_number_, ": ", reason)));
}

bool ToWhole(double number, std::int64_t& whole) {
  constexpr double kLimit = 1LL << 53;
  if (!(std::abs(number) <= kLimit) || number != std::floor(number)) return false;
  whole = static_cast<std::int64_t>(number);
  return true;
}

}  // namespace tessera
