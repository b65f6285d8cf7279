#include "pipeline/tiff_tags.h"

#include <string_view>

namespace tessera {
namespace {

// Reads numbers in the file's byte order; 0 beyond its end.
class Numbers {
 public:
  Numbers(std::span<const std::byte> bytes, bool big_endian)
      : bytes_(bytes), big_endian_(big_endian) {}

  std::uint32_t Read(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value = value << 8 |
              std::to_integer<std::uint32_t>(bytes_[at + (big_endian_ ? i : size - 1 - i)]);
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  bool big_endian_;
};

}  // namespace

std::optional<std::uint16_t> TiffShort(std::span<const std::byte> tiff, std::uint16_t tag) {
  constexpr std::uint32_t kShort = 3;
  constexpr std::size_t kEntryBytes = 12;
  if (tiff.size() < 8) return std::nullopt;
  const std::string_view order(reinterpret_cast<const char*>(tiff.data()), 2);
  if (order != "II" && order != "MM") return std::nullopt;
  const Numbers numbers(tiff, order == "MM");
  if (numbers.Read(2, 2) != 42) return std::nullopt;
  const std::size_t directory = numbers.Read(4, 4);
  const std::size_t entries = numbers.Read(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * kEntryBytes;
    if (numbers.Read(entry, 2) != tag || numbers.Read(entry + 2, 2) != kShort) continue;
    const std::uint32_t count = numbers.Read(entry + 4, 4);
    if (count == 0) return std::nullopt;
    // Up to two of them lie in the entry itself.
    const std::size_t at = count <= 2 ? entry + 8 : numbers.Read(entry + 8, 4);
    return static_cast<std::uint16_t>(numbers.Read(at, 2));
  }
  return std::nullopt;
}

}  // namespace tessera
