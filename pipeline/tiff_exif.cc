#include "pipeline/tiff_exif.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace tessera {
namespace {

// A directory at offset bytes.size() of a block, its values behind it.
void AppendDirectory(std::string& block, std::vector<TiffEntry> entries, bool big_endian) {
  std::sort(entries.begin(), entries.end(),
            [](const TiffEntry& a, const TiffEntry& b) { return a.tag < b.tag; });
  const auto append = [&](std::uint64_t value, std::size_t size) {
    AppendTiffNumber(block, value, size, big_endian);
  };
  std::string values;
  const std::size_t values_at = block.size() + 2 + 12 * entries.size() + 4;
  append(entries.size(), 2);
  for (const TiffEntry& entry : entries) {
    append(entry.tag, 2);
    append(entry.type, 2);
    append(entry.count, 4);
    if (entry.value.size() <= 4) {
      block += entry.value;
      block.append(4 - entry.value.size(), '\0');
      continue;
    }
    append(values_at + values.size(), 4);
    values += entry.value;
    if (values.size() % 2 != 0) values += '\0';  // values begin at even offsets
  }
  append(0, 4);  // no further directory
  block += values;
}

std::size_t DirectoryBytes(const std::vector<TiffEntry>& entries) {
  std::string bytes;
  AppendDirectory(bytes, entries, false);
  return bytes.size();
}

}  // namespace

bool IsDescriptiveTag(std::uint16_t tag) {
  constexpr std::array<std::uint16_t, 7> kTags{270,  271,  // ImageDescription, Make
                                               272,  305,  // Model, Software
                                               306,  315,  // DateTime, Artist
                                               33432};     // Copyright
  return std::find(kTags.begin(), kTags.end(), tag) != kTags.end();
}

CollectedExif CollectExif(const TiffSource& tiff) {
  auto directories = TiffDirectories::Open(tiff);
  if (!directories) return {};
  std::vector<TiffEntry> first = directories->ReadFirst([](std::uint16_t tag) {
    return IsDescriptiveTag(tag) || tag == kTiffExifDirectory || tag == kTiffGpsDirectory;
  });
  // Takes the pointer to a directory out of the first one, and reads what it points to.
  const auto read = [&](std::uint16_t pointer) {
    std::vector<TiffEntry> entries;
    const auto found = std::find_if(first.begin(), first.end(),
                                    [&](const TiffEntry& entry) { return entry.tag == pointer; });
    if (found == first.end()) return entries;
    entries = directories->Read(directories->Integer(*found), [](std::uint16_t tag) {
      return tag != kTiffInteroperabilityDirectory;
    });
    std::erase_if(first, [&](const TiffEntry& entry) { return entry.tag == pointer; });
    std::erase_if(entries, [](const TiffEntry& entry) { return entry.type > kTiffDouble; });
    return entries;
  };
  const std::vector<TiffEntry> exif = read(kTiffExifDirectory), gps = read(kTiffGpsDirectory);
  std::erase_if(first, [](const TiffEntry& entry) { return entry.type > kTiffDouble; });
  CollectedExif collected{.block = {}, .damaged = directories->damaged()};
  if (first.empty() && exif.empty() && gps.empty()) return collected;

  const bool big_endian = directories->big_endian();
  const auto add_pointer = [&](std::uint16_t tag, std::size_t offset) {
    TiffEntry entry{.tag = tag, .type = kTiffLong, .count = 1, .value = {}};
    AppendTiffNumber(entry.value, offset, 4, big_endian);
    first.push_back(std::move(entry));
  };
  std::string& block = collected.block;
  block = big_endian ? std::string("MM\0*", 4) : std::string("II*\0", 4);
  AppendTiffNumber(block, 8, 4, big_endian);
  const std::size_t pointers = (exif.empty() ? 0u : 1u) + (gps.empty() ? 0u : 1u);
  const std::size_t exif_at = block.size() + DirectoryBytes(first) + 12 * pointers;
  const std::size_t gps_at = exif_at + (exif.empty() ? 0 : DirectoryBytes(exif));
  if (!exif.empty()) add_pointer(kTiffExifDirectory, exif_at);
  if (!gps.empty()) add_pointer(kTiffGpsDirectory, gps_at);
  AppendDirectory(block, std::move(first), big_endian);
  if (!exif.empty()) AppendDirectory(block, exif, big_endian);
  if (!gps.empty()) AppendDirectory(block, gps, big_endian);
  return collected;
}

}  // namespace tessera
