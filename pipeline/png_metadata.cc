#include "pipeline/png_metadata.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "ops/error.h"
#include "pipeline/input_stream.h"
#include "pipeline/jpeg_segments.h"
#include "pipeline/require_system.h"
#include "pipeline/utf8.h"

namespace tessera {
namespace {

constexpr std::string_view kXmpKeyword = "XML:com.adobe.xmp";
constexpr double kPerUnit = 100000;  // gAMA and cHRM

std::uint32_t Number(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = at; i < at + 4; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::string Bytes(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16 & 0xFF),
          static_cast<char>(value >> 8 & 0xFF), static_cast<char>(value & 0xFF)};
}

// nullopt if the data are damaged. Throws Error if they are longer than `limit`.
std::optional<std::string> Inflate(std::string_view data, std::size_t limit) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> end(&stream, inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  std::string inflated;
  std::vector<char> buffer(1 << 16);
  while (true) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    const int status = inflate(&stream, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END) return std::nullopt;
    inflated.append(buffer.data(), buffer.size() - stream.avail_out);
    Require(inflated.size() <= limit, "too large");
    if (status == Z_STREAM_END) return inflated;
  }
}

std::string Deflate(std::string_view data) {
  uLongf size = compressBound(static_cast<uLong>(data.size()));
  std::string deflated(size, '\0');
  const int status = compress2(reinterpret_cast<Bytef*>(deflated.data()), &size,
                               reinterpret_cast<const Bytef*>(data.data()),
                               static_cast<uLong>(data.size()), Z_BEST_COMPRESSION);
  if (status != Z_OK) throw std::bad_alloc();
  deflated.resize(size);
  return deflated;
}

// Takes apart what a chunk holds. Throws Error if it is too short.
class Fields {
 public:
  explicit Fields(std::string_view data) : rest_(data) {}

  // Up to a zero, which is skipped.
  std::string_view String() {
    const std::size_t end = rest_.find('\0');
    Require(end != rest_.npos, "damaged");
    const std::string_view string = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return string;
  }
  int Byte() {
    Require(!rest_.empty(), "damaged");
    const int value = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

// Programs that are older than eXIf and iTXt have blocks in hexadecimal, as texts: a line feed, the
// kind, the length, and the digits in lines. nullopt if it is not like that.
std::optional<std::string> RawProfile(std::string_view text) {
  std::string block;
  for (int line = 0; line < 3; ++line) {
    const std::size_t end = text.find('\n');
    if (end == text.npos) return std::nullopt;
    text.remove_prefix(end + 1);
  }
  int digits = 0, value = 0;
  for (const char c : text) {
    if (c == '\n' || c == ' ') continue;
    const std::size_t digit = std::string_view("0123456789abcdef").find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    value = (value << 4 | static_cast<int>(digit)) & 0xFF;
    if (++digits % 2 == 0) block += static_cast<char>(value);
  }
  return block;
}

class Parser {
 public:
  explicit Parser(std::vector<std::string>& warnings) : warnings_(warnings) {}

  void Parse(const PngChunk& chunk) {
    try {
      Spend(chunk.data.size());
      Dispatch(chunk.name, chunk.data);
    } catch (const Error& error) {
      std::string warning = StrCat("its ", chunk.name, " chunk is ", error.what(), ": left out");
      // Of thousands of damaged chunks, one is to be told of.
      if (!std::ranges::count(warnings_, warning)) warnings_.push_back(std::move(warning));
    }
  }
  Metadata Take() { return std::move(metadata_); }

 private:
  void Dispatch(std::string_view name, std::string_view data) {
    if (name == "gAMA") Gamma(data);
    if (name == "cHRM") Chromaticity(data);
    if (name == "sRGB") Srgb(data);
    if (name == "cICP") Cicp(data);
    if (name == "iCCP") Icc(data);
    if (name == "pHYs") Density(data);
    if (name == "eXIf") Exif(data);
    if (name == "tEXt") Text(data);
    if (name == "zTXt") PackedText(data);
    if (name == "iTXt") InternationalText(data);
    if (name == "acTL") warnings_.emplace_back("animated: only the first frame is used");
  }

  void Gamma(std::string_view data) {
    Require(data.size() == 4 && Number(data, 0) > 0, "damaged");
    if (!metadata_.gamma) metadata_.gamma = Number(data, 0) / kPerUnit;
  }
  void Chromaticity(std::string_view data) {
    Require(data.size() == 32, "damaged");
    if (metadata_.chromaticity) return;
    metadata_.chromaticity.emplace();
    for (std::size_t i = 0; i < 8; ++i)
      (*metadata_.chromaticity)[i] = Number(data, 4 * i) / kPerUnit;
  }
  void Srgb(std::string_view data) {
    Require(data.size() == 1 && data[0] >= 0 && data[0] <= 3, "damaged");
    if (!metadata_.srgb_intent) metadata_.srgb_intent = data[0];
  }
  void Cicp(std::string_view data) {
    // RGB has no matrix.
    Require(data.size() == 4 && data[2] == 0, "damaged");
    if (metadata_.cicp) return;
    metadata_.cicp.emplace();
    data.copy(reinterpret_cast<char*>(metadata_.cicp->data()), data.size());
  }
  void Icc(std::string_view data) {
    Fields fields(data);
    fields.String();
    Require(fields.Byte() == 0, "packed in an unknown way");
    if (metadata_.icc.empty()) metadata_.icc = Unpack(fields.rest());
  }
  void Density(std::string_view data) {
    Require(data.size() == 9, "damaged");
    constexpr char kMetre = 1;
    if (data[8] != kMetre || metadata_.density) return;
    const Metadata::Density density{.x = static_cast<double>(Number(data, 0)),
                                    .y = static_cast<double>(Number(data, 4))};
    Require(density.x > 0 && density.y > 0, "damaged");
    metadata_.density = density;
  }
  void Exif(std::string_view data) {
    // Some writers keep what it begins with in JPEG files.
    if (data.starts_with(kJpegExif)) data.remove_prefix(kJpegExif.size());
    if (metadata_.exif.empty()) metadata_.exif = data;
  }

  void Text(std::string_view data) {
    Fields fields(data);
    const std::string_view keyword = fields.String();
    AddLatin1(keyword, fields.rest());
  }
  void PackedText(std::string_view data) {
    Fields fields(data);
    const std::string_view keyword = fields.String();
    Require(fields.Byte() == 0, "packed in an unknown way");
    AddLatin1(keyword, Unpack(fields.rest()));
  }
  void InternationalText(std::string_view data) {
    Fields fields(data);
    const std::string_view keyword = fields.String();
    const int packed = fields.Byte(), method = fields.Byte();
    Require(packed == 0 || (packed == 1 && method == 0), "packed in an unknown way");
    fields.String();  // the language
    fields.String();  // the keyword in that language
    std::string value = packed ? Unpack(fields.rest()) : std::string(fields.rest());
    if (keyword == kXmpKeyword) {
      if (metadata_.xmp.empty()) metadata_.xmp = std::move(value);
      return;
    }
    Require(IsUtf8(value), "not UTF-8");
    AddText(keyword, std::move(value));
  }
  void AddLatin1(std::string_view keyword, std::string_view value) {
    if (!AddRawProfile(keyword, value)) AddText(keyword, Latin1ToUtf8(value));
  }
  // Of these, what is known is to be corrected: it goes where such data belong.
  bool AddRawProfile(std::string_view keyword, std::string_view value) {
    constexpr std::string_view kPrefix = "Raw profile type ";
    if (!keyword.starts_with(kPrefix)) return false;
    const std::string_view kind = keyword.substr(kPrefix.size());
    if (kind != "exif" && kind != "APP1" && kind != "xmp") return false;
    const std::optional<std::string> block = RawProfile(value);
    Require(block.has_value(), "damaged");
    if (block->starts_with(kJpegExif)) {
      Exif(*block);
    } else if (kind == "xmp" && metadata_.xmp.empty()) {
      metadata_.xmp = *block;
    }
    return true;
  }
  void AddText(std::string_view keyword, std::string value) {
    Require(!keyword.empty() && keyword.size() <= kMaxKeywordBytes, "damaged");
    Spend(kTextBytes);
    metadata_.text.push_back({.keyword = std::string(keyword), .value = std::move(value)});
  }

  std::string Unpack(std::string_view data) {
    std::optional<std::string> unpacked = Inflate(data, left_);
    Require(unpacked.has_value(), "damaged");
    Spend(unpacked->size());
    return *std::move(unpacked);
  }
  void Spend(std::size_t bytes) {
    Require(bytes <= left_, "too large");
    left_ -= bytes;
  }

  static constexpr std::size_t kMaxKeywordBytes = 79;
  static constexpr std::size_t kTextBytes = 64;  // that a text takes however short it is

  Metadata metadata_;
  std::vector<std::string>& warnings_;
  std::size_t left_ = kMaxPngMetadataBytes;
};

PngChunk TextChunk(const Metadata::Text& text) {
  constexpr std::size_t kWorthPacking = 1024;
  const std::string keyword = text.keyword + '\0';
  if (const std::optional<std::string> latin1 = Utf8ToLatin1(text.value)) {
    if (latin1->size() < kWorthPacking) return {.name = "tEXt", .data = keyword + *latin1};
    return {.name = "zTXt", .data = keyword + '\0' + Deflate(*latin1)};
  }
  const bool pack = text.value.size() >= kWorthPacking;
  // Whether and how it is packed; no language, no keyword in it.
  const std::string head{pack ? '\1' : '\0', '\0', '\0', '\0'};
  return {.name = "iTXt", .data = keyword + head + (pack ? Deflate(text.value) : text.value)};
}

}  // namespace

bool IsPngMetadata(std::string_view name) {
  for (std::size_t at = 0; at < kPngMetadataChunks.size(); at += 5)
    if (name == kPngMetadataChunks.substr(at, 4)) return true;
  return false;
}

Metadata ParsePngMetadata(const std::vector<PngChunk>& chunks, std::vector<std::string>& warnings) {
  Parser parser(warnings);
  for (const PngChunk& chunk : chunks) parser.Parse(chunk);
  return parser.Take();
}

std::vector<PngChunk> MakePngMetadata(const Metadata& metadata) {
  const auto in_units = [](double value, double units) {
    return Bytes(static_cast<std::uint32_t>(std::clamp(
        std::round(value * units), 0.0, 1.0 * std::numeric_limits<std::int32_t>::max())));
  };
  std::vector<PngChunk> chunks;
  if (metadata.gamma) chunks.push_back({"gAMA", in_units(*metadata.gamma, kPerUnit)});
  if (metadata.chromaticity) {
    PngChunk chunk{.name = "cHRM", .data = {}};
    for (const double value : *metadata.chromaticity) chunk.data += in_units(value, kPerUnit);
    chunks.push_back(chunk);
  }
  if (metadata.cicp)
    chunks.push_back({"cICP", std::string(metadata.cicp->begin(), metadata.cicp->end())});
  // A file is to have one of the two.
  if (!metadata.icc.empty()) {
    chunks.push_back({"iCCP", std::string("icc\0\0", 5) + Deflate(metadata.icc)});
  } else if (metadata.srgb_intent) {
    chunks.push_back({"sRGB", std::string(1, static_cast<char>(*metadata.srgb_intent))});
  }
  if (metadata.density) {
    chunks.push_back(
        {"pHYs", in_units(metadata.density->x, 1) + in_units(metadata.density->y, 1) + '\1'});
  }
  if (!metadata.exif.empty()) chunks.push_back({"eXIf", metadata.exif});
  if (!metadata.xmp.empty()) {
    chunks.push_back({"iTXt", std::string(kXmpKeyword) + std::string(5, '\0') + metadata.xmp});
  }
  for (const Metadata::Text& text : metadata.text) chunks.push_back(TextChunk(text));
  return chunks;
}

std::optional<PngScan> ScanPng(std::FILE* file, std::vector<std::string>& warnings) {
  if (!IsSeekable(file)) return std::nullopt;
  const auto end = static_cast<off_t>(FileSize(file));
  constexpr off_t kSignatureBytes = 8, kHeadBytes = 8, kChecksumBytes = 4;
  PngScan scan;
  std::size_t left = kMaxPngMetadataBytes;
  bool too_large = false;
  for (off_t at = kSignatureBytes; at + kHeadBytes <= end;) {
    std::array<char, kHeadBytes> head;
    RequireSystem(fseeko(file, at, SEEK_SET) == 0, "cannot seek");
    if (std::fread(head.data(), 1, head.size(), file) != head.size()) break;
    const std::string_view name(head.data() + 4, 4);
    const std::uint32_t length = Number({head.data(), 4}, 0);
    at += kHeadBytes;
    if (name == "IDAT") scan.image_bytes += std::min<off_t>(length, end - at);
    if (name == "IEND") break;
    if (IsPngMetadata(name) && at + length + kChecksumBytes <= end) {
      if (length + sizeof(PngChunk) > left) {
        too_large = true;
      } else {
        left -= length + sizeof(PngChunk);
        // The checksum is that of name and data.
        std::string bytes(name);
        bytes.resize(4 + length + kChecksumBytes);
        if (std::fread(bytes.data() + 4, 1, bytes.size() - 4, file) != bytes.size() - 4) break;
        const uLong checksum =
            crc32(crc32(0, nullptr, 0), reinterpret_cast<const Bytef*>(bytes.data()), 4 + length);
        // libpng, which reads over it again, warns of a wrong one.
        if (Number(bytes, 4 + length) == checksum)
          scan.metadata.push_back({.name = bytes.substr(0, 4), .data = bytes.substr(4, length)});
      }
    }
    at += static_cast<off_t>(length) + kChecksumBytes;
  }
  if (too_large) warnings.emplace_back(kTooMuchPngMetadata);
  RequireSystem(fseeko(file, 0, SEEK_SET) == 0, "cannot seek");
  return scan;
}

}  // namespace tessera
