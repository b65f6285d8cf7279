// Metadata in segments of JPEG files (JFIF 1.02; see jpeg_segments.h).
#pragma once

#include <cstddef>
#include <cstdio>
//
#include <jpeglib.h>

#include <string>
#include <vector>

#include "pipeline/metadata.h"

namespace tessera {

// These two may fail as libjpeg does, by what it was told to do with errors.

// To be called before jpeg_read_header.
void KeepJpegMetadata(jpeg_decompress_struct& jpeg);
// To be called behind jpeg_start_compress, for what fits (see AdaptMetadata).
void WriteJpegMetadata(jpeg_compress_struct& jpeg, const Metadata& metadata);

// What the header says, once it is read, but for the ICC profile.
Metadata ParseJpegMetadata(const jpeg_decompress_struct& jpeg, std::vector<std::string>& warnings);

// To be called between jpeg_set_defaults and jpeg_start_compress.
void SetJpegDensity(jpeg_compress_struct& jpeg, const Metadata::Density& density);

}  // namespace tessera
