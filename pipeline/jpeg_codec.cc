// JPEG by libjpeg-turbo.
#include <cstddef>
#include <cstdio>
//
#include <jpeglib.h>
//
#include <jerror.h>

#include <csetjmp>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/error.h"
#include "pipeline/codecs.h"
#include "pipeline/tiff_tags.h"

namespace tessera {
namespace {

// libjpeg reports errors by longjmp. Every call into it that may fail happens inside Guard, whose
// callables hold nothing with a destructor. `manager` comes first: libjpeg's pointer to it is one
// to the whole.
struct JpegErrors {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
  std::string message;
  std::vector<std::string>* warnings = nullptr;

  template <typename F>
  void Guard(F&& call) {
    if (setjmp(jump)) throw Error(message);  // NOLINT(cert-err52-cpp)
    call();
  }
};

JpegErrors& ErrorsOf(j_common_ptr jpeg) { return *reinterpret_cast<JpegErrors*>(jpeg->err); }

[[noreturn]] void OnError(j_common_ptr jpeg) {
  char text[JMSG_LENGTH_MAX];
  jpeg->err->format_message(jpeg, text);
  ErrorsOf(jpeg).message = text;
  std::longjmp(ErrorsOf(jpeg).jump, 1);  // NOLINT(cert-err52-cpp)
}

// Level -1 are libjpeg's warnings. It goes on with grey or garbled blocks where data are missing;
// that is no picture to us. Only what harms no pixel is let through.
void OnMessage(j_common_ptr jpeg, int level) {
  if (level >= 0) return;
  switch (jpeg->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_JFIF_MAJOR:
    case JWRN_ADOBE_XFORM:
    case JWRN_BOGUS_ICC:
      break;
    case JWRN_JPEG_EOF:
      ErrorsOf(jpeg).message = "the file ends too soon";
      std::longjmp(ErrorsOf(jpeg).jump, 1);  // NOLINT(cert-err52-cpp)
    default:
      OnError(jpeg);
  }
  if (ErrorsOf(jpeg).warnings == nullptr) return;
  char text[JMSG_LENGTH_MAX];
  jpeg->err->format_message(jpeg, text);
  ErrorsOf(jpeg).warnings->emplace_back(text);
}

jpeg_error_mgr* SetUp(JpegErrors& errors) {
  jpeg_std_error(&errors.manager);
  errors.manager.error_exit = OnError;
  errors.manager.emit_message = OnMessage;
  return &errors.manager;
}

constexpr int kExifMarker = JPEG_APP0 + 1;

class JpegReader final : public ImageReader {
 public:
  JpegReader(FilePtr file, const ReadOptions& options) : file_(std::move(file)) {
    errors_.warnings = &warnings_;
    jpeg_.err = SetUp(errors_);
    try {
      ReadHeader(options);
    } catch (...) {
      jpeg_destroy_decompress(&jpeg_);
      throw;
    }
  }
  ~JpegReader() override { jpeg_destroy_decompress(&jpeg_); }

  void ReadRow(std::byte* row) override {
    if (turned_.bytes() == 0) {
      ReadStoredRow(row);
    } else {
      std::memcpy(row, turned_.Row(next_turned_row_++), format_.RowBytes());
    }
  }

  void Finish() override {
    errors_.Guard([&] { jpeg_finish_decompress(&jpeg_); });
  }

 private:
  void ReadStoredRow(std::byte* row) {
    JSAMPROW out = cmyk_.empty() ? reinterpret_cast<JSAMPROW>(row) : cmyk_.data();
    errors_.Guard([&] { jpeg_read_scanlines(&jpeg_, &out, 1); });
    if (!cmyk_.empty()) CmykToRgb(reinterpret_cast<JSAMPLE*>(row));
  }

  void ReadHeader(const ReadOptions& options) {
    errors_.Guard([&] {
      jpeg_create_decompress(&jpeg_);
      jpeg_stdio_src(&jpeg_, file_.get());
      jpeg_save_markers(&jpeg_, kExifMarker, 0xFFFF);
      jpeg_read_header(&jpeg_, TRUE);
    });
    CheckInputSize(jpeg_.image_width, jpeg_.image_height, options);
    const bool grey = jpeg_.jpeg_color_space == JCS_GRAYSCALE;
    const bool cmyk = jpeg_.jpeg_color_space == JCS_CMYK || jpeg_.jpeg_color_space == JCS_YCCK;
    errors_.Guard([&] {
      // libjpeg refuses what it cannot convert. YCCK it converts to CMYK; the rest is ours.
      jpeg_.out_color_space = grey ? JCS_GRAYSCALE : cmyk ? JCS_CMYK : JCS_RGB;
      jpeg_start_decompress(&jpeg_);
    });
    format_ = {.width = jpeg_.output_width,
               .height = jpeg_.output_height,
               .channels = grey ? 1 : 3,
               .bit_depth = 8};
    if (cmyk) cmyk_.resize(static_cast<std::size_t>(format_.width) * 4);
    if (const int orientation = Orientation(); orientation != 1) {
      Picture stored(format_);
      for (std::int64_t y = 0; y < format_.height; ++y) ReadStoredRow(stored.Row(y));
      turned_ = Oriented(stored, orientation);
      format_ = turned_.format();
    }
  }

  // What the EXIF block says (Exif 2.32, section 4.7.2), or 1.
  int Orientation() const {
    constexpr std::string_view kExif("Exif\0\0", 6);
    for (auto marker = jpeg_.marker_list; marker != nullptr; marker = marker->next) {
      const std::span block(reinterpret_cast<const std::byte*>(marker->data), marker->data_length);
      if (marker->marker != kExifMarker || block.size() < kExif.size() ||
          std::memcmp(block.data(), kExif.data(), kExif.size()) != 0)
        continue;
      const int value = TiffShort(block.subspan(kExif.size()), kTiffOrientation).value_or(1);
      return value >= 1 && value <= 8 ? value : 1;
    }
    return 1;
  }

  // Without an ICC profile CMYK says how much ink covers white paper. Adobe writes it inverted, as
  // the paper that shines through, and says so by its marker.
  void CmykToRgb(JSAMPLE* rgb) const {
    const int flip = jpeg_.saw_Adobe_marker ? 0 : 255;
    for (std::size_t x = 0; x < static_cast<std::size_t>(format_.width); ++x) {
      const int k = cmyk_[4 * x + 3] ^ flip;
      for (std::size_t c = 0; c < 3; ++c)
        rgb[3 * x + c] = static_cast<JSAMPLE>(((cmyk_[4 * x + c] ^ flip) * k + 127) / 255);
    }
  }

  FilePtr file_;
  JpegErrors errors_;
  jpeg_decompress_struct jpeg_{};
  std::vector<JSAMPLE> cmyk_;  // a row, if the file is CMYK
  Picture turned_;             // the whole picture, if its orientation is not that of the file
  std::int64_t next_turned_row_ = 0;
};

class JpegWriter final : public ImageWriter {
 public:
  JpegWriter(const PictureFormat& format, const WriteOptions& options, std::FILE* out) {
    jpeg_.err = SetUp(errors_);
    const int quality = options.quality.value_or(95);
    try {
      errors_.Guard([&] {
        jpeg_create_compress(&jpeg_);
        jpeg_stdio_dest(&jpeg_, out);
        jpeg_.image_width = static_cast<JDIMENSION>(format.width);
        jpeg_.image_height = static_cast<JDIMENSION>(format.height);
        jpeg_.input_components = format.channels;
        jpeg_.in_color_space = format.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
        jpeg_set_defaults(&jpeg_);
        jpeg_set_quality(&jpeg_, quality, TRUE);
        jpeg_.comp_info[0].h_samp_factor = 1;
        jpeg_.comp_info[0].v_samp_factor = 1;
        jpeg_start_compress(&jpeg_, TRUE);
      });
    } catch (...) {
      jpeg_destroy_compress(&jpeg_);
      throw;
    }
  }
  ~JpegWriter() override { jpeg_destroy_compress(&jpeg_); }

  void WriteStrip(const Picture& picture, std::int64_t begin, std::int64_t end,
                  const PackedStrip& /*packed*/) override {
    errors_.Guard([&] {
      for (std::int64_t y = begin; y < end; ++y) {
        JSAMPROW row = picture.Row<JSAMPLE>(y);
        jpeg_write_scanlines(&jpeg_, &row, 1);
      }
    });
  }

  void Finish() override {
    errors_.Guard([&] { jpeg_finish_compress(&jpeg_); });
  }

 private:
  JpegErrors errors_;
  jpeg_compress_struct jpeg_{};
};

}  // namespace

std::unique_ptr<ImageReader> OpenJpeg(FilePtr file, const ReadOptions& options) {
  return std::make_unique<JpegReader>(std::move(file), options);
}

std::unique_ptr<ImageWriter> MakeJpegWriter(const PictureFormat& picture,
                                            const WriteOptions& options, std::FILE* out) {
  return std::make_unique<JpegWriter>(picture, options, out);
}

}  // namespace tessera
