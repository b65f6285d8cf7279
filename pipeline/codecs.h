// What image_reader.cc and image_writer.cc choose from.
#pragma once

#include <cstdio>
#include <memory>

#include "pipeline/image_reader.h"
#include "pipeline/image_writer.h"
#include "pipeline/input_stream.h"

namespace tessera {

// These read streams from one end to the other.
std::unique_ptr<ImageReader> OpenPng(FilePtr file, const ReadOptions& options);
std::unique_ptr<ImageReader> OpenJpeg(FilePtr file, const ReadOptions& options);
std::unique_ptr<ImageReader> OpenWebp(FilePtr file, const ReadOptions& options);
std::unique_ptr<ImageReader> OpenGif(FilePtr file, const ReadOptions& options);
// The file has to be seekable.
std::unique_ptr<ImageReader> OpenTiff(FilePtr file, const ReadOptions& options);
// PNM, BMP, Sun raster, JPEG 2000.
std::unique_ptr<ImageReader> OpenWithOpenCv(FilePtr file, const ReadOptions& options);

std::unique_ptr<ImageWriter> MakePngWriter(const PictureFormat& picture,
                                           const WriteOptions& options, std::FILE* out);
std::unique_ptr<ImageWriter> MakeJpegWriter(const PictureFormat& picture,
                                            const WriteOptions& options, std::FILE* out);
std::unique_ptr<ImageWriter> MakeWebpWriter(const PictureFormat& picture,
                                            const WriteOptions& options, std::FILE* out);
std::unique_ptr<ImageWriter> MakeTiffWriter(const PictureFormat& picture,
                                            const WriteOptions& options, std::FILE* out);
std::unique_ptr<ImageWriter> MakeBmpWriter(const PictureFormat& picture,
                                           const WriteOptions& options, std::FILE* out);
std::unique_ptr<ImageWriter> MakePnmWriter(const PictureFormat& picture, std::FILE* out);

// Rows of a strip of such a picture.
std::int64_t TiffStripRows(const PictureFormat& picture);
// What the encoder takes, an estimate from above.
std::size_t WebpWriterBytes(const PictureFormat& picture);
// What a BMP file of the picture takes; the format counts them in 32 bits.
std::int64_t BmpFileBytes(const PictureFormat& picture);

// Throws Error for sizes that only a damaged header has.
void CheckInputSize(std::int64_t width, std::int64_t height, const ReadOptions& options);
// Throws Error if the file has fewer bytes than that many pixels take at the least.
void CheckFileSize(std::size_t file_bytes, std::size_t least_bytes);

// Shows a picture as an orientation tag says (see Oriented); reads all of it when the first row is
// asked for. Orientation 1 gives back the reader itself.
std::unique_ptr<ImageReader> TurnReader(std::unique_ptr<ImageReader> stored, int orientation);

// Of formats that files of 2 GB and more are not made in.
inline constexpr std::size_t kMaxFileInMemory = 0x7FFFFFFF;

}  // namespace tessera
