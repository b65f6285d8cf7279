#include "pipeline/video/file_number.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "ops/error.h"
#include "pipeline/display_name.h"

namespace tessera {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::size_t kMaxWidth = 18;  // an int64_t has room for so many digits, whichever they are

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The digits at `at`, which it is moved beyond, without leading zeros.
std::string_view TakeNumber(std::string_view text, std::size_t& at) {
  const std::size_t begin = at;
  at = std::min(text.find_first_not_of(kDigits, begin), text.size());
  const std::size_t first = std::min(text.find_first_not_of('0', begin), at);
  return text.substr(first, at - first);
}

// "%%" becomes "%". Throws Error for any other use of '%'.
std::string Unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      ++i;
      Require(i < text.size() && text[i] == '%',
              "the pattern needs one number, like %04d, in the file's name; a '%' is written %%");
    }
    plain += text[i];
  }
  return plain;
}

// Where the first '%' is that is not one of a "%%".
std::size_t FindConversion(std::string_view text) {
  std::size_t at = text.find('%');
  while (at != text.npos && text.substr(at).starts_with("%%")) at = text.find('%', at + 2);
  return at;
}

}  // namespace

bool NaturalLess(std::string_view a, std::string_view b) {
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (IsDigit(a[i]) && IsDigit(b[j])) {
      const std::string_view number_a = TakeNumber(a, i), number_b = TakeNumber(b, j);
      if (number_a.size() != number_b.size()) return number_a.size() < number_b.size();
      if (number_a != number_b) return number_a < number_b;
    } else {
      const auto byte_a = static_cast<unsigned char>(a[i++]),
                 byte_b = static_cast<unsigned char>(b[j++]);
      if (byte_a != byte_b) return byte_a < byte_b;
    }
  }
  if (i < a.size() || j < b.size()) return i == a.size();
  return a < b;
}

NumberedName::NumberedName(const std::filesystem::path& pattern) {
  NamingFile(pattern, [&] {
    const std::string name = pattern.filename().native();
    const std::size_t at = FindConversion(name);
    folder_ = Unescaped(pattern.parent_path().native());
    before_ = Unescaped(name.substr(0, at));
    Require(at != name.npos, "the pattern needs a number, like %04d, in the file's name");
    std::size_t end = at + 1;
    if (name.compare(end, 1, "0") == 0) fill_ = '0';
    const std::string_view width = TakeNumber(name, end);
    if (!width.empty()) std::from_chars(width.data(), width.data() + width.size(), width_);
    Require(width.size() <= 2 && width_ <= kMaxWidth, "a number of more than ", kMaxWidth,
            " digits");
    Require(end < name.size() && std::string_view("diu").find(name[end]) != std::string_view::npos,
            "the pattern needs a number, like %04d or %d; nothing else can follow a '%'");
    Require(FindConversion(std::string_view(name).substr(end + 1)) == std::string_view::npos,
            "the pattern has more than one number");
    after_ = Unescaped(name.substr(end + 1));
  });
}

std::string NumberedName::NameOf(std::int64_t number) const {
  const std::string digits = std::to_string(number);
  const std::size_t missing = width_ > digits.size() ? width_ - digits.size() : 0;
  return before_ + std::string(missing, fill_) + digits + after_;
}

std::vector<std::int64_t> NumberedName::Existing() const {
  std::vector<std::int64_t> numbers;
  const std::filesystem::path folder = folder_.empty() ? "." : folder_;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().native();
    if (name.size() <= before_.size() + after_.size()) continue;
    std::string_view field(name);
    field = field.substr(before_.size(), name.size() - before_.size() - after_.size());
    field.remove_prefix(std::min(field.find_first_not_of(' '), field.size()));
    std::int64_t number = -1;
    const auto parsed = std::from_chars(field.data(), field.data() + field.size(), number);
    // The one way to write the number counts, not "07" for %d.
    if (parsed.ec == std::errc() && number >= 0 && NameOf(number) == name)
      numbers.push_back(number);
  }
  Require(!error, DisplayName(folder), ": cannot read the folder: ", error.message());
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace tessera
