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

// How the content of a file that starts with `head` (at least 16 bytes, unless the file is
// shorter) is decoded. kOther: whatever OpenCV makes of it.
enum class Decoder : std::uint8_t { kPng, kJpeg, kOther };
Decoder DecoderOf(std::span<const std::byte> head);

// What of `wanted` a file of this format holds: JPEG has neither alpha nor 16 bits, BMP no grey
// with alpha, ... Width and height are kept.
PictureFormat HeldFormat(ImageFormat format, const PictureFormat& wanted);
// The most pixels that a row or a column can have.
std::int64_t MaxDimension(ImageFormat format);

}  // namespace tessera
