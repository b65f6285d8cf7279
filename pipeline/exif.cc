#include "pipeline/exif.h"

#include <cstddef>
#include <span>

#include "pipeline/tiff_tags.h"

namespace tessera {
namespace {

constexpr std::uint16_t kImageWidth = 256, kImageLength = 257;
constexpr std::uint16_t kXResolution = 282, kYResolution = 283, kResolutionUnit = 296;
constexpr std::uint16_t kPixelXDimension = 40962, kPixelYDimension = 40963;

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

// Where things are in a block. A directory is a count of two bytes, entries of twelve (tag, type,
// count, and the value or where it is), and where the next directory is (TIFF 6.0, section 2).
class Layout {
 public:
  // nullopt if the block does not start with the header of a TIFF file.
  static std::optional<Layout> Of(std::string_view block) {
    if (!block.starts_with(kLittleEndian) && !block.starts_with(kBigEndian)) return std::nullopt;
    return Layout(block);
  }

  // 0 beyond the end.
  std::size_t Number(std::size_t at, std::size_t size) const {
    if (at > block_.size() || size > block_.size() - at) return 0;
    return TiffNumber(Bytes(block_.substr(at, size)), big_endian());
  }
  bool big_endian() const { return block_.front() == 'M'; }
  std::size_t FirstDirectory() const { return Number(4, 4); }
  std::size_t NumEntries(std::size_t directory) const { return Number(directory, 2); }
  static std::size_t Entry(std::size_t directory, std::size_t i) { return directory + 2 + 12 * i; }
  // Of its entries.
  std::size_t End(std::size_t directory) const { return Entry(directory, NumEntries(directory)); }
  bool IsWhole(std::size_t directory) const {
    return directory >= 8 && directory + 2 <= block_.size() && End(directory) <= block_.size();
  }
  // The value of a tag that is there, read as a LONG.
  std::optional<std::size_t> Pointer(std::size_t directory, std::size_t tag) const {
    for (std::size_t i = 0; i < NumEntries(directory); ++i) {
      const std::size_t entry = Entry(directory, i);
      if (Number(entry, 2) == tag) return Number(entry + 8, 4);
    }
    return std::nullopt;
  }
  // Where the directory behind this one in the list is, or nullopt if there is none. Some writers
  // leave the number out where the list ends: what is in its place then belongs to something else.
  std::optional<std::size_t> Next(std::size_t directory) const {
    const std::size_t end = End(directory), next = Number(end, 4);
    if (!IsWhole(next) || LeadsInto(directory, end)) return std::nullopt;
    for (const std::uint16_t tag : {kTiffExifDirectory, kTiffGpsDirectory}) {
      const auto other = Pointer(directory, tag);
      if (other && IsWhole(*other) && LeadsInto(*other, end)) return std::nullopt;
    }
    return next;
  }

 private:
  // Whether values or directories that the entries lead to begin in the four bytes there.
  bool LeadsInto(std::size_t directory, std::size_t at) const {
    for (std::size_t i = 0; i < NumEntries(directory); ++i) {
      const std::size_t entry = Entry(directory, i), tag = Number(entry, 2);
      const std::size_t type_bytes =
          TiffTypeBytes(static_cast<std::uint16_t>(Number(entry + 2, 2)));
      const bool leads = type_bytes * Number(entry + 4, 4) > 4 || tag == kTiffExifDirectory ||
                         tag == kTiffGpsDirectory || tag == kTiffInteroperabilityDirectory;
      const std::size_t to = Number(entry + 8, 4);
      if (leads && to >= at && to < at + 4) return true;
    }
    return false;
  }

  static constexpr std::string_view kLittleEndian{"II*\0", 4}, kBigEndian{"MM\0*", 4};

  explicit Layout(std::string_view block) : block_(block) {}

  std::string_view block_;
};

// The entries of a directory, which is known to lie within the block, to be changed.
class Directory {
 public:
  Directory(std::string& block, const Layout& layout, std::size_t at)
      : block_(block), layout_(layout), at_(at) {}

  // A tag that is there gets this one value, in the entry itself. It stays a SHORT if that holds
  // it.
  void Set(std::uint16_t tag, std::int64_t value) {
    for (std::size_t i = 0; i < layout_.NumEntries(at_); ++i) {
      const std::size_t entry = Layout::Entry(at_, i);
      if (layout_.Number(entry, 2) != tag) continue;
      const bool is_short = layout_.Number(entry + 2, 2) == kTiffShort && value <= 0xFFFF;
      Write(entry + 2, 2, is_short ? kTiffShort : kTiffLong);
      Write(entry + 4, 4, 1);
      Write(entry + 8, 4, 0);
      Write(entry + 8, is_short ? 2 : 4, static_cast<std::uint64_t>(value));
    }
  }
  // Makes it the last one in the list of directories.
  void EndList() { Write(layout_.End(at_), 4, 0); }

 private:
  void Write(std::size_t at, std::size_t size, std::uint64_t value) {
    std::string bytes;
    AppendTiffNumber(bytes, value, size, layout_.big_endian());
    bytes.copy(block_.data() + at, size);
  }

  std::string& block_;
  const Layout& layout_;
  std::size_t at_;
};

}  // namespace

std::optional<Metadata::Density> ExifDensity(std::string_view exif) {
  auto directories = TiffDirectories::Open(TiffInMemory(Bytes(exif)));
  if (!directories) return std::nullopt;
  constexpr std::uint64_t kInch = 2, kCentimetre = 3;
  std::uint64_t unit = kInch;
  Metadata::Density density;
  for (const TiffEntry& entry : directories->ReadFirst([](std::uint16_t tag) {
         return tag == kXResolution || tag == kYResolution || tag == kResolutionUnit;
       })) {
    if (entry.tag == kResolutionUnit) unit = directories->Integer(entry);
    if (entry.type != kTiffRational) continue;
    const auto numerator = static_cast<double>(directories->Integer(entry, 0));
    const auto denominator = static_cast<double>(directories->Integer(entry, 1));
    (entry.tag == kXResolution ? density.x : density.y) =
        denominator == 0 ? 0 : numerator / denominator;
  }
  if ((unit != kInch && unit != kCentimetre) || density.x <= 0 || density.y <= 0)
    return std::nullopt;
  const double per_metre = unit == kInch ? 1 / 0.0254 : 100;
  return Metadata::Density{.x = density.x * per_metre, .y = density.y * per_metre};
}

bool PatchExif(std::string& exif, std::int64_t width, std::int64_t height) {
  const std::optional<Layout> layout = Layout::Of(exif);
  if (!layout) return false;
  const std::size_t first = layout->FirstDirectory();
  if (!layout->IsWhole(first)) return false;
  Directory image(exif, *layout, first);
  if (const auto second = layout->Pointer(first, kTiffExifDirectory)) {
    const bool before = layout->End(*second) <= first, behind = *second >= layout->End(first);
    if (!layout->IsWhole(*second) || (!before && !behind)) return false;
    Directory details(exif, *layout, *second);
    details.Set(kPixelXDimension, width);
    details.Set(kPixelYDimension, height);
  }
  const bool has_thumbnail = layout->Next(first).has_value();
  image.Set(kTiffOrientation, 1);
  image.Set(kImageWidth, width);
  image.Set(kImageLength, height);
  // The second directory of the list is that of the thumbnail.
  if (has_thumbnail) image.EndList();
  return true;
}

}  // namespace tessera
