// JPEG files of many kinds, made through libjpeg, for tests.
#pragma once

#include <cstddef>
#include <cstdio>
//
#include <jpeglib.h>

#include <filesystem>
#include <functional>
#include <vector>

#include "pipeline/picture.h"

namespace tessera {

// Writes the samples of `picture`, of which there may be four a pixel, as `set_up` says: it is
// called behind jpeg_set_defaults. `write` is called where segments may be written.
inline void WriteJpegFile(const std::filesystem::path& path, const Picture& picture,
                          J_COLOR_SPACE colours,
                          const std::function<void(jpeg_compress_struct&)>& set_up,
                          const std::function<void(jpeg_compress_struct&)>& write = {}) {
  FILE* out = std::fopen(path.c_str(), "wb");
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  jpeg_stdio_dest(&jpeg, out);
  jpeg.image_width = static_cast<JDIMENSION>(picture.width());
  jpeg.image_height = static_cast<JDIMENSION>(picture.height());
  jpeg.input_components = picture.format().channels;
  jpeg.in_color_space = colours;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 95, TRUE);
  if (set_up) set_up(jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  if (write) write(jpeg);
  for (std::int64_t y = 0; y < picture.height(); ++y) {
    JSAMPROW row = picture.Row<JSAMPLE>(y);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::fclose(out);
}

}  // namespace tessera
