// Text files that people write, line by line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "pipeline/input_stream.h"

namespace tessera {

inline constexpr std::string_view kSpaces = " \t\r\v\f";

// Without the spaces at both ends.
std::string_view Trim(std::string_view text);

// Lines without their ends, a byte order mark, and what is after a '#', which is a comment. Holds
// one line at a time.
class TextLines {
 public:
  // "-" is standard input. Throws Error, which names the file, as all errors here do.
  explicit TextLines(const std::filesystem::path& path);

  // The next line that holds anything, trimmed and good until the next call; empty at the end.
  // Throws Error if it has more than 4096 bytes: then it is no such file, but a video, say.
  std::string_view Next();

  // Throws Error: "FILE:LINE: reason", with the line that Next gave last.
  [[noreturn]] void Fail(std::string_view reason) const;

  // The file's name as messages show it.
  const std::string& shown_name() const { return shown_name_; }

 private:
  std::string shown_name_;
  FilePtr file_;
  std::int64_t number_ = 0;
  std::string line_;
};

}  // namespace tessera
