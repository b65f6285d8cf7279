// What image_reader.cc and image_writer.cc choose from.
#pragma once

#include <cstdio>
#include <memory>

#include "pipeline/image_reader.h"
#include "pipeline/image_writer.h"

namespace tessera {

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FilePtr = std::unique_ptr<std::FILE, FileCloser>;

std::unique_ptr<ImageReader> OpenPng(FilePtr file, const ReadOptions& options);
std::unique_ptr<ImageReader> OpenJpeg(FilePtr file, const ReadOptions& options);
// BMP, TIFF, WebP, PNM and whatever else this OpenCV was built with.
std::unique_ptr<ImageReader> OpenWithOpenCv(FilePtr file, const ReadOptions& options);

std::unique_ptr<ImageWriter> MakePngWriter(const PictureFormat& picture,
                                           const WriteOptions& options, std::FILE* out);
std::unique_ptr<ImageWriter> MakeJpegWriter(const PictureFormat& picture,
                                            const WriteOptions& options, std::FILE* out);
std::unique_ptr<ImageWriter> MakeOpenCvWriter(ImageFormat format, const PictureFormat& picture,
                                              const WriteOptions& options, std::FILE* out);

// Throws Error for sizes that only a damaged header has.
void CheckInputSize(std::int64_t width, std::int64_t height, const ReadOptions& options);

}  // namespace tessera
