#include "pipeline/display_name.h"

#include <cstddef>

#include "pipeline/utf8.h"

namespace tessera {
namespace {

// What would steer a terminal: C1 control characters, and those that turn the direction of writing.
bool Steers(std::string_view character) {
  if (character.size() == 2)
    return character[0] == '\xC2' && static_cast<unsigned char>(character[1]) < 0xA0;
  return (character >= "\xE2\x80\xAA" && character <= "\xE2\x80\xAE") ||
         (character >= "\xE2\x81\xA6" && character <= "\xE2\x81\xA9");
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
    } else if (length == 0 || c < 0x20 || c == 0x7F || Steers(name.substr(i, length))) {
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
