// The outermost parts of a video file.
#pragma once

#include <filesystem>

namespace tessera {

// The file, an AVI (RIFF chunks), MP4 or MOV (ISO/IEC 14496-12: boxes), Matroska or WebM (RFC 8794:
// EBML elements), ends before the last of its outermost parts does by the size that stands at its
// beginning. False for other files, for parts that reach to the end wherever that is, and where
// something else follows the parts. Reads a few bytes of each part.
bool EndsInsideItsParts(const std::filesystem::path& file);

// The file is of a kind that tells no length, and does not end as such do: an MPEG transport stream
// (ISO/IEC 13818-1) that is no whole number of packets, of 188 bytes or 192 with a time, or a GIF
// without its trailer. False for other files. Reads a few bytes.
bool LacksItsEnd(const std::filesystem::path& file);

}  // namespace tessera
