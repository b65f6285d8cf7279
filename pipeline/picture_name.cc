#include "pipeline/picture_name.h"

#include <strings.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "pipeline/image_format.h"

namespace tessera {
namespace {

// Those that are read and not written.
constexpr const char* kReadExtensions[] = {".jpe", ".jfif", ".apng", ".dib", ".pbm",
                                           ".pam", ".gif",  ".jp2",  ".ras", ".sr"};

// First bytes of what DecoderOf leaves to OpenCV; '?' stands for any.
using namespace std::string_view_literals;
constexpr std::string_view kBeginnings[] = {
    "RIFF????WEBP"sv,
    "II*\0"sv,  // TIFF
    "MM\0*"sv,
    "II+\0"sv,  // BigTIFF
    "MM\0+"sv,
    "BM????\0\0\0\0"sv,  // BMP: "BM" alone begins texts, too
    "P7\nWIDTH"sv,       // PAM
    "GIF87a"sv,
    "GIF89a"sv,
    "\0\0\0\x0CjP  \r\n\x87\n"sv,  // JPEG 2000
    "\x59\xA6\x6A\x95"sv,          // Sun raster
};

bool StartsWith(std::string_view head, std::string_view beginning) {
  return head.size() >= beginning.size() &&
         std::equal(beginning.begin(), beginning.end(), head.begin(),
                    [](char want, char is) { return want == '?' || want == is; });
}

// "P1" to "P6", a line end or blank, and a number or a comment; less would take texts for pictures.
bool StartsAsPnm(std::string_view head) {
  return head.size() >= 4 && head[0] == 'P' && head[1] >= '1' && head[1] <= '6' &&
         " \t\r\n"sv.find(head[2]) != head.npos &&
         "0123456789# \t\r\n"sv.find(head[3]) != head.npos;
}

}  // namespace

bool HasPictureExtension(const std::filesystem::path& path) {
  if (FormatOfExtension(path)) return true;
  const std::filesystem::path extension = path.extension();
  return std::any_of(std::begin(kReadExtensions), std::end(kReadExtensions),
                     [&](const char* read) { return ::strcasecmp(extension.c_str(), read) == 0; });
}

bool StartsAsPicture(std::span<const std::byte> head) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return DecoderOf(head) != Decoder::kOther || StartsAsPnm(text) ||
         std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                     [&](std::string_view beginning) { return StartsWith(text, beginning); });
}

}  // namespace tessera
