// Text in UTF-8 (RFC 3629) and in Latin-1 (ISO 8859-1).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

// Bytes of the well-formed sequence at the start of `text`; 0 if there is none.
std::size_t Utf8Length(std::string_view text);
// Whether all of it is well-formed.
bool IsUtf8(std::string_view text);

std::string Latin1ToUtf8(std::string_view latin1);
// nullopt if Latin-1 does not have all of its characters. `text` is well-formed.
std::optional<std::string> Utf8ToLatin1(std::string_view text);

}  // namespace tessera
