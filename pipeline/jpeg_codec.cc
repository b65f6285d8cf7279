// JPEG by libjpeg-turbo.
#include <cstddef>
#include <cstdio>
//
#include <jpeglib.h>
//
#include <jerror.h>

#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ops/error.h"
#include "pipeline/codecs.h"
#include "pipeline/jpeg_metadata.h"
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
  bool may_lack_end = false;  // the file's end marker, which libjpeg puts where the file ends
  bool ended = false;         // without one

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

[[noreturn]] void OnEarlyEnd(j_common_ptr jpeg) {
  ErrorsOf(jpeg).message = "the file ends too soon";
  std::longjmp(ErrorsOf(jpeg).jump, 1);  // NOLINT(cert-err52-cpp)
}

// Level -1 are libjpeg's warnings. It goes on with grey or garbled blocks where data are missing;
// that is no picture to us. Only what harms no pixel is let through.
void OnMessage(j_common_ptr jpeg, int level) {
  if (level >= 0) return;
  JpegErrors& errors = ErrorsOf(jpeg);
  switch (jpeg->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_JFIF_MAJOR:
    case JWRN_ADOBE_XFORM:
    case JWRN_BOGUS_ICC:
      break;
    case JWRN_JPEG_EOF:
      if (!errors.may_lack_end) OnEarlyEnd(jpeg);
      if (!errors.ended) errors.warnings->emplace_back("the file has no end marker");
      errors.ended = true;
      return;
    default:
      // That something is missing shows when it is needed.
      if (errors.ended) OnEarlyEnd(jpeg);
      OnError(jpeg);
  }
  if (errors.warnings == nullptr) return;
  char text[JMSG_LENGTH_MAX];
  jpeg->err->format_message(jpeg, text);
  errors.warnings->emplace_back(text);
}

jpeg_error_mgr* SetUp(JpegErrors& errors) {
  jpeg_std_error(&errors.manager);
  errors.manager.error_exit = OnError;
  errors.manager.emit_message = OnMessage;
  return &errors.manager;
}

// A scan may be a few bytes, but takes time for each block of the picture. Files have about ten.
constexpr int kMaxScans = 500;

void LimitScans(j_common_ptr jpeg) {
  if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number <= kMaxScans) return;
  ErrorsOf(jpeg).message = StrCat("has more than ", kMaxScans, " scans");
  std::longjmp(ErrorsOf(jpeg).jump, 1);  // NOLINT(cert-err52-cpp)
}

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

  std::size_t HeldBytes() const override { return coefficient_bytes_; }

  // The first row takes the whole file, if it has several scans.
  void ReadRow(std::byte* row) override {
    JSAMPROW out = cmyk_.empty() ? reinterpret_cast<JSAMPROW>(row) : cmyk_.data();
    errors_.Guard([&] {
      if (!started_) jpeg_start_decompress(&jpeg_);
      started_ = true;
      jpeg_read_scanlines(&jpeg_, &out, 1);
    });
    if (!cmyk_.empty()) CmykToRgb(reinterpret_cast<JSAMPLE*>(row));
  }

  void Finish() override {
    errors_.Guard([&] { jpeg_finish_decompress(&jpeg_); });
  }

 private:
  void ReadHeader(const ReadOptions& options) {
    bool several_scans = false;
    std::optional<std::size_t> file_bytes;
    if (IsSeekable(file_.get())) file_bytes = FileSize(file_.get());
    errors_.Guard([&] {
      jpeg_create_decompress(&jpeg_);
      progress_.progress_monitor = LimitScans;
      jpeg_.progress = &progress_;
      jpeg_stdio_src(&jpeg_, file_.get());
      KeepJpegMetadata(jpeg_);
      jpeg_read_header(&jpeg_, TRUE);
      several_scans = jpeg_has_multiple_scans(&jpeg_) != FALSE;
    });
    CheckInputSize(jpeg_.image_width, jpeg_.image_height, options);
    CountBlocks(several_scans, file_bytes);
    // Whole scans may be missing, or the last bits of one; but arithmetic decoding, which reads
    // beyond its data anyway, does not tell.
    errors_.may_lack_end = !several_scans && !jpeg_.arith_code;
    ReadMetadata();
    const bool grey = jpeg_.jpeg_color_space == JCS_GRAYSCALE;
    const bool cmyk = jpeg_.jpeg_color_space == JCS_CMYK || jpeg_.jpeg_color_space == JCS_YCCK;
    // libjpeg refuses what it cannot convert. YCCK it converts to CMYK; the rest is ours.
    jpeg_.out_color_space = grey ? JCS_GRAYSCALE : cmyk ? JCS_CMYK : JCS_RGB;
    format_ = {.width = jpeg_.image_width,
               .height = jpeg_.image_height,
               .channels = grey ? 1 : 3,
               .bit_depth = 8};
    if (cmyk) cmyk_.resize(static_cast<std::size_t>(format_.width) * 4);
  }

  // Also finds out whether the file can hold what its header claims.
  void CountBlocks(bool several_scans, std::optional<std::size_t> file_bytes) {
    std::int64_t most = 0, all = 0;
    for (int c = 0; c < jpeg_.num_components; ++c) {
      const jpeg_component_info& component = jpeg_.comp_info[c];
      const std::int64_t blocks =
          std::int64_t{component.width_in_blocks} * component.height_in_blocks;
      most = std::max(most, blocks);
      all += blocks;
    }
    // A Huffman code has a bit at least, and a block a code; arithmetic codes take less.
    Require(!file_bytes || jpeg_.arith_code || static_cast<std::size_t>(most) / 8 <= *file_bytes,
            "its header claims ", jpeg_.image_width, "x", jpeg_.image_height, " pixels, more than ",
            file_bytes.value_or(0), " bytes can hold");
    if (several_scans) coefficient_bytes_ = static_cast<std::size_t>(all) * sizeof(JBLOCK);
  }

  void ReadMetadata() {
    metadata_ = ParseJpegMetadata(jpeg_, warnings_);
    JOCTET* profile = nullptr;
    unsigned size = 0;
    errors_.Guard([&] { jpeg_read_icc_profile(&jpeg_, &profile, &size); });
    const std::unique_ptr<JOCTET, decltype(&std::free)> owner(profile, std::free);
    if (profile != nullptr) metadata_.icc.assign(reinterpret_cast<const char*>(profile), size);
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
  jpeg_progress_mgr progress_{};
  bool started_ = false;
  std::size_t coefficient_bytes_ = 0;  // that libjpeg collects if there are several scans
  std::vector<JSAMPLE> cmyk_;          // a row, if the file is CMYK
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
        if (options.metadata.density) SetJpegDensity(jpeg_, *options.metadata.density);
        jpeg_start_compress(&jpeg_, TRUE);
        WriteJpegMetadata(jpeg_, options.metadata);
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
  auto reader = std::make_unique<JpegReader>(std::move(file), options);
  const int orientation = TiffOrientation(std::as_bytes(std::span(reader->metadata().exif)));
  return TurnReader(std::move(reader), orientation);
}

std::unique_ptr<ImageWriter> MakeJpegWriter(const PictureFormat& picture,
                                            const WriteOptions& options, std::FILE* out) {
  return std::make_unique<JpegWriter>(picture, options, out);
}

}  // namespace tessera
