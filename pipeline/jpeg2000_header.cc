#include "pipeline/jpeg2000_header.h"

#include <algorithm>
#include <optional>
#include <span>

#include "ops/error.h"
#include "pipeline/tiff_tags.h"

namespace tessera {
namespace {

constexpr std::string_view kCodestream{"\xFF\x4F\xFF\x51", 4};  // SOC, SIZ
constexpr std::string_view kJp2{"\0\0\0\x0CjP  \r\n\x87\n", 12};

std::optional<std::int64_t> Number(std::string_view bytes, std::size_t at, std::size_t size) {
  if (at > bytes.size() || size > bytes.size() - at) return std::nullopt;
  return static_cast<std::int64_t>(
      TiffNumber(std::as_bytes(std::span(bytes)).subspan(at, size), true));
}

// Of a JP2 file: what the first box of the name holds (section I.4). Empty if there is none.
std::string_view CodestreamBox(std::string_view file) {
  while (true) {
    const std::string_view type = file.substr(std::min<std::size_t>(4, file.size()), 4);
    auto length = Number(file, 0, 4);
    std::size_t header = 8;
    if (length == 1) {
      length = Number(file, 8, 8);
      header = 16;
    }
    if (!length || file.size() < header) return {};
    if (type == "jp2c") return file.substr(header);
    const auto size = static_cast<std::size_t>(*length);
    if (size < header || size > file.size()) return {};
    file.remove_prefix(size);
  }
}

}  // namespace

bool IsJpeg2000(std::string_view file) {
  return file.starts_with(kCodestream) || file.starts_with(kJp2);
}

// The SIZ segment (section A.5.1), which comes first.
Jpeg2000Header ParseJpeg2000Header(std::string_view file) {
  const std::string_view codestream = file.starts_with(kJp2) ? CodestreamBox(file) : file;
  const auto number = [&](std::size_t at, std::size_t size) {
    const auto value = Number(codestream, at, size);
    Require(value.has_value(), "its header is damaged");
    return *value;
  };
  Require(codestream.starts_with(kCodestream), "its header is damaged");
  Jpeg2000Header header{.width = number(8, 4),
                        .height = number(12, 4),
                        .components = static_cast<int>(number(40, 2))};
  for (const std::size_t origin : {16u, 20u, 32u, 36u})
    Require(number(origin, 4) == 0, "JPEG 2000 files with an origin beside 0 are not supported");
  const std::int64_t tile_width = number(24, 4), tile_height = number(28, 4);
  Require(tile_width > 0 && tile_height > 0, "its header is damaged");
  header.tiles = ((header.width + tile_width - 1) / tile_width) *
                 ((header.height + tile_height - 1) / tile_height);
  for (std::size_t c = 0; c < static_cast<std::size_t>(header.components); ++c) {
    const auto precision = static_cast<int>(number(42 + 3 * c, 1));
    Require(precision < 128, "signed samples are not supported");
    header.bits = std::max(header.bits, precision + 1);
    Require(number(43 + 3 * c, 1) == 1 && number(44 + 3 * c, 1) == 1,
            "JPEG 2000 files with subsampled components are not supported");
  }
  return header;
}

}  // namespace tessera
