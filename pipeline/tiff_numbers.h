// Numbers of TIFF files, and of EXIF blocks, which are built like them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tessera {

// A directory is a count of two bytes, entries of twelve (tag, type, count, and the value or where
// it is), and where the next directory is (TIFF 6.0, section 2).
inline constexpr std::size_t kTiffEntryBytes = 12;
inline constexpr std::uint32_t kTiffTypeShort = 3, kTiffTypeLong = 4, kTiffTypeRational = 5;

// Reads numbers in the byte order of the data; 0 beyond their end.
class TiffNumbers {
 public:
  // nullopt if `tiff` does not start with the header of a TIFF file.
  static std::optional<TiffNumbers> Open(std::span<const std::byte> tiff) {
    if (tiff.size() < 8) return std::nullopt;
    const std::string_view order(reinterpret_cast<const char*>(tiff.data()), 2);
    if (order != "II" && order != "MM") return std::nullopt;
    const TiffNumbers numbers(tiff, order == "MM");
    if (numbers.Read(2, 2) != 42) return std::nullopt;
    return numbers;
  }

  std::uint32_t Read(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value = value << 8 |
              std::to_integer<std::uint32_t>(bytes_[at + (big_endian_ ? i : size - 1 - i)]);
    return value;
  }

  bool big_endian() const { return big_endian_; }
  std::size_t FirstDirectory() const { return Read(4, 4); }
  std::size_t Entries(std::size_t directory) const { return Read(directory, 2); }
  static std::size_t Entry(std::size_t directory, std::size_t i) {
    return directory + 2 + i * kTiffEntryBytes;
  }

 private:
  TiffNumbers(std::span<const std::byte> bytes, bool big_endian)
      : bytes_(bytes), big_endian_(big_endian) {}

  std::span<const std::byte> bytes_;
  bool big_endian_;
};

}  // namespace tessera
