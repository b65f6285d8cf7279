#include "pipeline/exif.h"

#include <cstddef>
#include <span>

#include "pipeline/tiff_tags.h"

namespace tessera {
namespace {

constexpr std::uint32_t kImageWidth = 256, kImageLength = 257;
constexpr std::uint32_t kXResolution = 282, kYResolution = 283;
constexpr std::uint16_t kResolutionUnit = 296;
constexpr std::uint32_t kExifDirectory = 34665;
constexpr std::uint32_t kPixelXDimension = 40962, kPixelYDimension = 40963;

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

// A directory is a count of two bytes, entries of twelve (tag, type, count, and the value or where
// it is), and where the next directory is (TIFF 6.0, section 2).
constexpr std::size_t kEntryBytes = 12;
constexpr std::uint32_t kShort = 3, kLong = 4, kRational = 5;  // types

// Reads numbers in the byte order of the data; 0 beyond their end.
class Numbers {
 public:
  // nullopt if `tiff` does not start with the header of a TIFF file.
  static std::optional<Numbers> Open(std::span<const std::byte> tiff) {
    if (tiff.size() < 8) return std::nullopt;
    const std::string_view order(reinterpret_cast<const char*>(tiff.data()), 2);
    if (order != "II" && order != "MM") return std::nullopt;
    const Numbers numbers(tiff, order == "MM");
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
    return directory + 2 + i * kEntryBytes;
  }

 private:
  Numbers(std::span<const std::byte> bytes, bool big_endian)
      : bytes_(bytes), big_endian_(big_endian) {}

  std::span<const std::byte> bytes_;
  bool big_endian_;
};

// Where the entry of `tag` is, if there is one.
std::optional<std::size_t> FindEntry(const Numbers& numbers, std::size_t directory,
                                     std::uint32_t tag) {
  for (std::size_t i = 0; i < numbers.Entries(directory); ++i) {
    const std::size_t entry = Numbers::Entry(directory, i);
    if (numbers.Read(entry, 2) == tag) return entry;
  }
  return std::nullopt;
}

// 0 if it is not there.
double Rational(const Numbers& numbers, std::uint32_t tag) {
  const auto entry = FindEntry(numbers, numbers.FirstDirectory(), tag);
  if (!entry || numbers.Read(*entry + 2, 2) != kRational) return 0;
  const std::size_t at = numbers.Read(*entry + 8, 4);
  const std::uint32_t denominator = numbers.Read(at + 4, 4);
  return denominator == 0 ? 0 : static_cast<double>(numbers.Read(at, 4)) / denominator;
}

// The entries of a directory, which is known to lie within the block, to be changed.
class Directory {
 public:
  Directory(std::string& block, const Numbers& numbers, std::size_t at)
      : block_(block), numbers_(numbers), at_(at) {}

  // A tag that is there gets this one value, in the entry itself. It stays a SHORT if that holds
  // it.
  void Set(std::uint32_t tag, std::int64_t value) {
    for (std::size_t i = 0; i < numbers_.Entries(at_); ++i) {
      const std::size_t entry = Numbers::Entry(at_, i);
      if (numbers_.Read(entry, 2) != tag) continue;
      const bool is_short = numbers_.Read(entry + 2, 2) == kShort && value <= 0xFFFF;
      Write(entry + 2, 2, is_short ? kShort : kLong);
      Write(entry + 4, 4, 1);
      Write(entry + 8, 4, 0);
      Write(entry + 8, is_short ? 2 : 4, static_cast<std::uint32_t>(value));
    }
  }
  // Makes it the last one in the list of directories.
  void EndList() { Write(Numbers::Entry(at_, numbers_.Entries(at_)), 4, 0); }

 private:
  void Write(std::size_t at, std::size_t size, std::uint32_t value) {
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t shift = 8 * (numbers_.big_endian() ? size - 1 - i : i);
      block_[at + i] = static_cast<char>(value >> shift & 0xFF);
    }
  }

  std::string& block_;
  const Numbers& numbers_;
  std::size_t at_;
};

}  // namespace

int ExifOrientation(std::string_view exif) {
  const int value = TiffShort(Bytes(exif), kTiffOrientation).value_or(1);
  return value >= 1 && value <= 8 ? value : 1;
}

std::optional<Metadata::Density> ExifDensity(std::string_view exif) {
  const std::optional<Numbers> numbers = Numbers::Open(Bytes(exif));
  if (!numbers) return std::nullopt;
  constexpr int kInch = 2, kCentimetre = 3;
  const int unit = TiffShort(Bytes(exif), kResolutionUnit).value_or(kInch);
  if (unit != kInch && unit != kCentimetre) return std::nullopt;
  const double per_metre = unit == kInch ? 1 / 0.0254 : 100;
  const Metadata::Density density{.x = Rational(*numbers, kXResolution) * per_metre,
                                  .y = Rational(*numbers, kYResolution) * per_metre};
  if (density.x <= 0 || density.y <= 0) return std::nullopt;
  return density;
}

bool PatchExif(std::string& exif, std::int64_t width, std::int64_t height) {
  const std::optional<Numbers> numbers = Numbers::Open(Bytes(exif));
  if (!numbers) return false;
  const auto end_of = [&](std::size_t directory) {
    return Numbers::Entry(directory, numbers->Entries(directory));
  };
  const auto is_whole = [&](std::size_t directory) {
    return directory >= 8 && directory + 2 <= exif.size() && end_of(directory) <= exif.size();
  };
  const std::size_t first = numbers->FirstDirectory();
  if (!is_whole(first)) return false;
  Directory image(exif, *numbers, first);
  // Some writers leave out where the next directory is behind the last one.
  std::size_t next = exif.size();
  if (const auto pointer = FindEntry(*numbers, first, kExifDirectory)) {
    const std::size_t second = numbers->Read(*pointer + 8, 4);
    const bool before = end_of(second) <= first, behind = second >= end_of(first);
    if (!is_whole(second) || (!before && !behind)) return false;
    if (behind) next = second;
    Directory details(exif, *numbers, second);
    details.Set(kPixelXDimension, width);
    details.Set(kPixelYDimension, height);
  }
  image.Set(kTiffOrientation, 1);
  image.Set(kImageWidth, width);
  image.Set(kImageLength, height);
  // The second directory of the list is that of the thumbnail.
  if (end_of(first) + 4 <= next) image.EndList();
  return true;
}

}  // namespace tessera
