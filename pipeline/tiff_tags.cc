#include "pipeline/tiff_tags.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

namespace tessera {

std::size_t TiffTypeBytes(std::uint16_t type) {
  constexpr std::array<std::uint8_t, 19> kBytes{0, 1, 1, 2, 4, 8, 1, 1, 2, 4,
                                                8, 4, 8, 4, 0, 0, 8, 8, 8};
  return type < kBytes.size() ? kBytes[type] : 0;
}

TiffSource TiffInMemory(std::span<const std::byte> bytes) {
  return [bytes](std::uint64_t at, std::span<std::byte> to) {
    if (at > bytes.size() || to.size() > bytes.size() - at) return false;
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), to.size(), to.begin());
    return true;
  };
}

std::uint64_t TiffNumber(std::span<const std::byte> bytes, bool big_endian) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    value =
        value << 8 | std::to_integer<std::uint64_t>(bytes[big_endian ? i : bytes.size() - 1 - i]);
  return value;
}

void AppendTiffNumber(std::string& bytes, std::uint64_t value, std::size_t size, bool big_endian) {
  for (std::size_t i = 0; i < size; ++i)
    bytes += static_cast<char>(value >> 8 * (big_endian ? size - 1 - i : i) & 0xFF);
}

std::optional<TiffDirectories> TiffDirectories::Open(TiffSource source) {
  TiffDirectories tiff(std::move(source));
  std::array<std::byte, 2> order;
  if (!tiff.source_(0, order) || order[0] != order[1]) return std::nullopt;
  if (order[0] != std::byte{'I'} && order[0] != std::byte{'M'}) return std::nullopt;
  tiff.big_endian_ = order[0] == std::byte{'M'};
  const auto version = tiff.NumberAt(2, 2);
  if (version != 42 && version != 43) return std::nullopt;
  tiff.big_tiff_ = version == 43;
  const auto first = tiff.big_tiff_ ? tiff.NumberAt(8, 8) : tiff.NumberAt(4, 4);
  if (!first) return std::nullopt;
  tiff.first_ = *first;
  return tiff;
}

std::optional<std::uint64_t> TiffDirectories::NumberAt(std::uint64_t at, std::size_t size) {
  std::array<std::byte, 8> bytes;
  const std::span number(bytes.data(), size);
  if (!source_(at, number)) return std::nullopt;
  return TiffNumber(number, big_endian_);
}

std::optional<TiffEntry> TiffDirectories::ReadEntry(std::uint64_t at) {
  const auto tag = NumberAt(at, 2), type = NumberAt(at + 2, 2);
  const auto count = NumberAt(at + 4, big_tiff_ ? 8 : 4);
  if (!tag || !type || !count) return std::nullopt;
  TiffEntry entry{.tag = static_cast<std::uint16_t>(*tag),
                  .type = static_cast<std::uint16_t>(*type),
                  .count = static_cast<std::uint32_t>(*count),
                  .value = {}};
  const std::size_t size = TiffTypeBytes(entry.type);
  if (size == 0 || *count == 0 || *count > bytes_left_ / size) return std::nullopt;
  const std::size_t bytes = *count * size;
  const std::size_t inside = big_tiff_ ? 8 : 4;  // what fits into the entry lies there
  std::uint64_t value_at = at + (big_tiff_ ? 12 : 8);
  if (bytes > inside) {
    const auto offset = NumberAt(value_at, inside);
    if (!offset) return std::nullopt;
    value_at = *offset;
  }
  entry.value.resize(bytes);
  if (!source_(value_at, std::as_writable_bytes(std::span(entry.value)))) return std::nullopt;
  bytes_left_ -= bytes;
  return entry;
}

std::vector<TiffEntry> TiffDirectories::Read(std::uint64_t offset,
                                             const std::function<bool(std::uint16_t)>& wanted) {
  std::vector<TiffEntry> entries;
  const std::size_t count_bytes = big_tiff_ ? 8 : 2, entry_bytes = big_tiff_ ? 20 : 12;
  const auto count = NumberAt(offset, count_bytes);
  if (!count || *count > 0xFFFF || offset > UINT64_MAX / 2) {
    damaged_ = true;
    return entries;
  }
  for (std::uint64_t i = 0; i < *count; ++i) {
    const std::uint64_t at = offset + count_bytes + i * entry_bytes;
    const auto tag = NumberAt(at, 2);
    if (!tag) {
      damaged_ = true;
      break;
    }
    if (!wanted(static_cast<std::uint16_t>(*tag))) continue;
    if (auto entry = ReadEntry(at)) {
      entries.push_back(std::move(*entry));
    } else {
      damaged_ = true;
    }
  }
  return entries;
}

std::uint64_t TiffDirectories::Integer(const TiffEntry& entry, std::size_t i) const {
  const bool rational = entry.type == kTiffRational || entry.type == kTiffSignedRational;
  const std::size_t size = rational ? 4 : TiffTypeBytes(entry.type);
  if (size == 0 || i >= entry.value.size() / size) return 0;
  return TiffNumber(std::as_bytes(std::span(entry.value)).subspan(i * size, size), big_endian_);
}

int TiffOrientation(std::span<const std::byte> tiff) {
  auto directories = TiffDirectories::Open(TiffInMemory(tiff));
  if (!directories) return 1;
  for (const TiffEntry& entry :
       directories->ReadFirst([](std::uint16_t tag) { return tag == kTiffOrientation; })) {
    // Some writers make it a LONG.
    if (entry.type != kTiffShort && entry.type != kTiffLong) continue;
    const std::uint64_t value = directories->Integer(entry);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace tessera
