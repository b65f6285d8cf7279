#include "pipeline/tiff_tags.h"

#include "pipeline/tiff_numbers.h"

namespace tessera {

std::optional<std::uint16_t> TiffShort(std::span<const std::byte> tiff, std::uint16_t tag) {
  const std::optional<TiffNumbers> numbers = TiffNumbers::Open(tiff);
  if (!numbers) return std::nullopt;
  const std::size_t directory = numbers->FirstDirectory();
  for (std::size_t i = 0; i < numbers->Entries(directory); ++i) {
    const std::size_t entry = TiffNumbers::Entry(directory, i);
    if (numbers->Read(entry, 2) != tag || numbers->Read(entry + 2, 2) != kTiffTypeShort) continue;
    const std::uint32_t count = numbers->Read(entry + 4, 4);
    if (count == 0) return std::nullopt;
    // Up to two of them lie in the entry itself.
    const std::size_t at = count <= 2 ? entry + 8 : numbers->Read(entry + 8, 4);
    return static_cast<std::uint16_t>(numbers->Read(at, 2));
  }
  return std::nullopt;
}

}  // namespace tessera
