// Tags of TIFF files (TIFF 6.0, section 2; BigTIFF), and of EXIF blocks, which are built like them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tessera {

inline constexpr std::uint16_t kTiffOrientation = 274;
inline constexpr std::uint16_t kTiffExifDirectory = 34665;
inline constexpr std::uint16_t kTiffGpsDirectory = 34853;
// Its value is an offset into the file that it was in. Nothing in it is of use to another one.
inline constexpr std::uint16_t kTiffInteroperabilityDirectory = 40965;

enum TiffType : std::uint16_t {
  kTiffByte = 1,
  kTiffAscii = 2,
  kTiffShort = 3,
  kTiffLong = 4,
  kTiffRational = 5,
  kTiffSignedByte = 6,
  kTiffUndefined = 7,
  kTiffSignedShort = 8,
  kTiffSignedLong = 9,
  kTiffSignedRational = 10,
  kTiffFloat = 11,
  kTiffDouble = 12,
  kTiffIfd = 13,
  kTiffLong8 = 16,
  kTiffIfd8 = 18
};

// Bytes of a value; 0 for unknown types.
std::size_t TiffTypeBytes(std::uint16_t type);

struct TiffEntry {
  std::uint16_t tag = 0, type = 0;
  std::uint32_t count = 0;  // of values
  std::string value;        // all of them, in the byte order of the file
};

// Where the bytes come from: fills `to` with what begins at offset `at`; false if that is not
// there.
using TiffSource = std::function<bool(std::uint64_t at, std::span<std::byte> to)>;
TiffSource TiffInMemory(std::span<const std::byte> bytes);  // has to outlive the source

// The directories of a TIFF file. Whatever its offsets and counts claim, no more than a MiB is read
// in all; entries that are damaged or do not fit are left out.
class TiffDirectories {
 public:
  // nullopt if that is no TIFF file.
  static std::optional<TiffDirectories> Open(TiffSource source);

  bool big_endian() const { return big_endian_; }
  // The directory at that offset, or the first one: of its entries those with wanted(tag).
  std::vector<TiffEntry> Read(std::uint64_t offset,
                              const std::function<bool(std::uint16_t)>& wanted);
  std::vector<TiffEntry> ReadFirst(const std::function<bool(std::uint16_t)>& wanted) {
    return Read(first_, wanted);
  }
  // Value i of an entry of integers; the numbers of rationals follow each other, as unsigned ones.
  std::uint64_t Integer(const TiffEntry& entry, std::size_t i = 0) const;
  // Whether anything was left out.
  bool damaged() const { return damaged_; }

 private:
  explicit TiffDirectories(TiffSource source) : source_(std::move(source)) {}
  std::optional<std::uint64_t> NumberAt(std::uint64_t at, std::size_t size);
  std::optional<TiffEntry> ReadEntry(std::uint64_t at);

  TiffSource source_;
  bool big_endian_ = false, big_tiff_ = false, damaged_ = false;
  std::uint64_t first_ = 0;
  std::size_t bytes_left_ = std::size_t{1} << 20;
};

// A number of `size` bytes.
std::uint64_t TiffNumber(std::span<const std::byte> bytes, bool big_endian);
void AppendTiffNumber(std::string& bytes, std::uint64_t value, std::size_t size, bool big_endian);

// The orientation that an EXIF block asks for (Exif 2.32, section 4.6.4): 1 to 8; 1 if it does not
// say or makes no sense.
int TiffOrientation(std::span<const std::byte> tiff);

}  // namespace tessera
