#include "pipeline/display_name.h"

#include <cstddef>

namespace tessera {
namespace {

// Bytes of the well-formed UTF-8 sequence at the start of `s` (RFC 3629); 0 if there is none.
std::size_t Utf8Length(std::string_view s) {
  const auto byte = [&](std::size_t i) {
    return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u;
  };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned b = byte(0);
  if (b < 0x80) return 1;
  if (b >= 0xC2 && b <= 0xDF) return continues(1) ? 2 : 0;
  if (b >= 0xE0 && b <= 0xEF) {
    const bool overlong = b == 0xE0 && byte(1) < 0xA0, surrogate = b == 0xED && byte(1) > 0x9F;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (b >= 0xF0 && b <= 0xF4) {
    const bool overlong = b == 0xF0 && byte(1) < 0x90, beyond = b == 0xF4 && byte(1) > 0x8F;
    return continues(1) && continues(2) && continues(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

std::string Escaped(std::string_view name, bool backslashes) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string shown;
  for (std::size_t i = 0; i < name.size();) {
    const auto c = static_cast<unsigned char>(name[i]);
    const std::size_t length = Utf8Length(name.substr(i));
    if (c == '\n') {
      shown += "\\n";
    } else if (c == '\\' && backslashes) {
      shown += "\\\\";
    } else if (length == 0 || c < 0x20 || c == 0x7F) {
      shown += {'\\', 'x', kHex[c >> 4], kHex[c & 15]};
    } else {
      shown.append(name, i, length);
      i += length;
      continue;
    }
    ++i;
  }
  return shown;
}

}  // namespace

std::string DisplayName(const std::filesystem::path& path) { return Escaped(path.native(), true); }

std::string InputName(const std::filesystem::path& path) {
  return path == "-" ? "standard input" : DisplayName(path);
}

std::string OneLine(std::string_view message) { return Escaped(message, false); }

}  // namespace tessera
