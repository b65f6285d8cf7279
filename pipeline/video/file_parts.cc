#include "pipeline/video/file_parts.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace tessera {
namespace {

constexpr std::uint64_t kToTheEnd = std::numeric_limits<std::uint64_t>::max();
// Of the longest beginning of a part: a box's with 64 bits for its size.
constexpr std::size_t kMaxHead = 16;

std::uint64_t BigEndian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

// A part's bytes by its head (at most kMaxHead bytes), the head's included; nullopt: this is none.

std::optional<std::uint64_t> ChunkBytes(std::string_view head) {
  if (head.size() < 8 || !head.starts_with("RIFF")) return std::nullopt;
  std::string size(head.substr(4, 4));
  std::reverse(size.begin(), size.end());
  const std::uint64_t bytes = BigEndian(size);
  // What those write who cannot go back to the head.
  if (bytes == 0 || bytes == 0xFFFFFFFF) return kToTheEnd;
  return 8 + bytes;
}

std::optional<std::uint64_t> BoxBytes(std::string_view head) {
  if (head.size() < 8) return std::nullopt;
  std::uint64_t bytes = BigEndian(head.substr(0, 4));
  if (bytes == 0) return kToTheEnd;
  if (bytes == 1) bytes = BigEndian(head.substr(8));
  if (bytes < 8) return std::nullopt;
  return std::min(bytes, kToTheEnd - 1);
}

std::optional<std::uint64_t> ElementBytes(std::string_view head) {
  // The first byte's leading zeros tell how many bytes follow, of the element's id and of its size.
  const auto length = [&](std::size_t at) -> std::size_t {
    return at < head.size() ? std::countl_zero(static_cast<unsigned char>(head[at])) + 1u : 9;
  };
  const std::size_t id = length(0);
  if (id > 4) return std::nullopt;
  const std::size_t size = length(id);
  if (size > 8 || id + size > head.size()) return std::nullopt;
  const std::uint64_t all_ones = (std::uint64_t{1} << 7 * size) - 1;
  const std::uint64_t bytes = BigEndian(head.substr(id, size)) & all_ones;
  return bytes == all_ones ? kToTheEnd : id + size + bytes;
}

using PartBytes = std::optional<std::uint64_t> (*)(std::string_view head);

// By how the file begins. Null if it is of another kind.
PartBytes KindOf(std::string_view head) {
  if (head.starts_with("RIFF")) return &ChunkBytes;
  if (head.starts_with("\x1A\x45\xDF\xA3")) return &ElementBytes;
  for (const char* type : {"ftyp", "moov", "mdat", "free", "skip", "wide"})
    if (head.size() >= 8 && head.substr(4, 4) == type) return &BoxBytes;
  return nullptr;
}

// The bytes from there on, fewer at the file's end, none if it cannot be read.
std::string BytesAt(std::ifstream& stream, std::uint64_t at, std::size_t count) {
  std::string bytes(count, '\0');
  stream.clear();
  stream.seekg(static_cast<std::streamoff>(at));
  stream.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<std::size_t>(stream.gcount()));
  return bytes;
}

// 0 if it is no transport stream.
std::size_t PacketBytes(std::ifstream& stream) {
  constexpr std::size_t kPackets = 3;  // that have to begin as they should
  for (const std::size_t time_bytes : {0, 4}) {
    const std::size_t packet = 188 + time_bytes;
    const std::string bytes = BytesAt(stream, 0, kPackets * packet);
    bool all = bytes.size() == kPackets * packet;
    for (std::size_t at = time_bytes; all && at < bytes.size(); at += packet)
      all = bytes[at] == '\x47';
    if (all) return packet;
  }
  return 0;
}

}  // namespace

bool EndsInsideItsParts(const std::filesystem::path& file) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(file, error);
  std::ifstream stream(file, std::ios::binary);
  if (error) return false;
  PartBytes part_bytes = nullptr;
  for (std::uint64_t at = 0; at < size;) {
    const std::string head = BytesAt(stream, at, kMaxHead);
    if (at == 0) part_bytes = KindOf(head);
    if (part_bytes == nullptr) return false;
    const std::optional<std::uint64_t> bytes = part_bytes(head);
    if (!bytes || *bytes == kToTheEnd) return false;
    if (*bytes > size - at) return true;
    at += *bytes;
  }
  return false;
}

bool LacksItsEnd(const std::filesystem::path& file) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(file, error);
  std::ifstream stream(file, std::ios::binary);
  if (error) return false;
  if (BytesAt(stream, 0, 4) == "GIF8") return BytesAt(stream, size - 1, 1) != ";";
  const std::size_t packet = PacketBytes(stream);
  return packet != 0 && size % packet != 0;
}

}  // namespace tessera
