// Which files are pictures, before one is opened as such.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace tessera {

// The extension, in any case, is one of a format that can be read.
bool HasPictureExtension(const std::filesystem::path& path);

// A file starts with `head` (16 bytes, fewer if it is shorter) as one of a format that can be read.
bool StartsAsPicture(std::span<const std::byte> head);

}  // namespace tessera
