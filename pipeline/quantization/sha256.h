// Fingerprints of files.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

// SHA-256 (FIPS 180-4) of the bytes: 32 of them, and as 64 hexadecimal digits.
std::string Sha256(std::string_view bytes);
std::string Sha256Hex(std::string_view bytes);

}  // namespace tessera
