// Files with rows of numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/error.h"
#include "pipeline/text_lines.h"

namespace tessera {

// Reads lines of numbers that are separated by commas, semicolons, tabs or spaces. Lines without
// any are left out, separators at a line's end and comments (text_lines.h) too.
class NumberRows {
 public:
  // Reads the header: a first line without any number. "-" is standard input. Throws Error, which
  // names the file, as all errors here do.
  explicit NumberRows(const std::filesystem::path& path);
  NumberRows(const NumberRows&) = delete;
  NumberRows& operator=(const NumberRows&) = delete;

  // The words of the header, in lower case; none if there is no header.
  const std::vector<std::string>& header() const { return header_; }

  // The next row, good until the next call; empty at the end. NaN and infinities are numbers.
  // Throws Error if the line holds anything else.
  std::span<const double> Next();

  // Throws Error with the reason, which names the file and the line of the last row, unless
  // `condition` holds.
  template <typename... Args>
  void RequireRow(bool condition, const Args&... reason) const {
    if (!condition) [[unlikely]]
      lines_.Fail(StrCat(reason...));
  }

 private:
  bool NextWords();

  TextLines lines_;
  std::vector<std::string_view> words_;  // of the last line
  bool has_words_ = false;               // which Next has not given yet
  std::vector<std::string> header_;
  std::vector<double> row_;
};

// The number as a whole one. False if it is none, or has more than 53 bits.
bool ToWhole(double number, std::int64_t& whole);

}  // namespace tessera
