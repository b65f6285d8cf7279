#include "pipeline/text_lines.h"

#include <algorithm>
#include <cstdio>

#include "pipeline/display_name.h"
#include "pipeline/require_system.h"

namespace tessera {
namespace {

constexpr std::size_t kMaxLine = 4096;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

std::string_view Trim(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(kSpaces), text.size());
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

TextLines::TextLines(const std::filesystem::path& path) : shown_name_(InputName(path)) {
  file_ = Naming(shown_name_, [&] { return OpenInput(path); });
}

std::string_view TextLines::Next() {
  while (true) {
    line_.clear();
    ++number_;
    int c = 0;
    while ((c = ::getc_unlocked(file_.get())) != EOF && c != '\n') {
      if (line_.size() == kMaxLine) Fail("the line is too long");
      line_ += static_cast<char>(c);
    }
    Naming(shown_name_, [&] { RequireSystem(!std::ferror(file_.get()), "cannot read"); });
    std::string_view text = line_;
    if (number_ == 1 && text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    text = Trim(text.substr(0, text.find('#')));
    if (!text.empty() || c == EOF) return text;
  }
}

void TextLines::Fail(std::string_view reason) const {
  throw FileError(StrCat(shown_name_, ":", number_, ": ", OneLine(reason)));
}

}  // namespace tessera
