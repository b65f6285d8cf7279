// File formats of pictures: which there are, how they are told apart, what each can hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "pipeline/picture.h"

namespace tessera {

enum class ImageFormat : std::uint8_t { kPng, kJpeg, kWebp, kTiff, kBmp, kPnm };

std::string_view Name(ImageFormat format);  // "PNG", ...
// What a file of the format is called, whatever the picture in it: ".png", ..., ".pnm".
std::string_view Extension(ImageFormat format);

// The format that a name's extension asks for (any case), or nullopt if it is none of ours.
std::optional<ImageFormat> FormatOfExtension(const std::filesystem::path& path);
// The extensions that FormatOfExtension knows: "png, jpg, jpeg, ...".
std::string_view KnownExtensions();

// The format of that name: an extension without its dot, any case. Throws Error that lists the
// known ones.
ImageFormat ParseFormat(std::string_view name);

// How the content of a file that starts with `head` (kFormatHeadBytes, unless the file is shorter)
// is decoded. kOther: by OpenCV, or not at all.
enum class Decoder : std::uint8_t { kPng, kJpeg, kWebp, kTiff, kGif, kOther };
Decoder DecoderOf(std::span<const std::byte> head);
inline constexpr std::size_t kFormatHeadBytes = 16;

// What of `wanted` a file of this format holds: JPEG has neither alpha nor 16 bits, WebP no grey,
// ... Width and height are kept.
PictureFormat HeldFormat(ImageFormat format, const PictureFormat& wanted);
// The most pixels that a row or a column can have.
std::int64_t MaxDimension(ImageFormat format);
// Throws Error that says how large the result is and what the format can hold, if that is less:
// MaxDimension, and of BMP files 4 GB.
void RequireHeldSize(ImageFormat format, const PictureFormat& picture);

}  // namespace tessera
