// WebP by libwebp. The library works on whole pictures: rows are handed in and out of those.
#include <webp/decode.h>
#include <webp/demux.h>
#include <webp/encode.h>
#include <webp/mux.h>

#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "ops/error.h"
#include "pipeline/codecs.h"
#include "pipeline/jpeg_segments.h"
#include "pipeline/require_system.h"
#include "pipeline/tiff_tags.h"

namespace tessera {
namespace {

template <auto kDelete>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    kDelete(object);
  }
};
using Demuxer = std::unique_ptr<WebPDemuxer, Deleter<WebPDemuxDelete>>;
using Mux = std::unique_ptr<WebPMux, Deleter<WebPMuxDelete>>;

WebPData DataOf(const std::string& bytes) {
  return {.bytes = reinterpret_cast<const std::uint8_t*>(bytes.data()), .size = bytes.size()};
}

const char* Reason(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return "there is not enough memory to decode it";
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return "the file ends too soon";
    default:
      return "its data are damaged";
  }
}

// The first frame of an animation may cover a part of its canvas only; around it nothing is to be
// seen. A still picture is one frame on a canvas of its size.
class WebpReader final : public ImageReader {
 public:
  WebpReader(FilePtr file, const ReadOptions& options)
      : file_(ReadToEnd(file.get(), kMaxFileInMemory)) {
    const WebPData data = DataOf(file_);
    demuxer_.reset(WebPDemux(&data));
    Require(demuxer_ != nullptr, "the file ends too soon, or is damaged");
    const std::uint32_t width = WebPDemuxGetI(demuxer_.get(), WEBP_FF_CANVAS_WIDTH),
                        height = WebPDemuxGetI(demuxer_.get(), WEBP_FF_CANVAS_HEIGHT);
    CheckInputSize(width, height, options);
    WebPIterator frame = {};
    Require(WebPDemuxGetFrame(demuxer_.get(), 1, &frame) != 0, "it has no frame");
    frame_rect_ = {
        .x = frame.x_offset, .y = frame.y_offset, .width = frame.width, .height = frame.height};
    frame_data_ = frame.fragment;
    const bool alpha = frame.has_alpha != 0, several = frame.num_frames > 1;
    WebPDemuxReleaseIterator(&frame);

    const Rect canvas{.x = 0, .y = 0, .width = width, .height = height};
    format_ = {
        .width = width, .height = height, .channels = alpha || frame_rect_ != canvas ? 4 : 3};
    if (several) warnings_.emplace_back("animated: only the first frame is used");
    metadata_.icc = Chunk("ICCP");
    metadata_.xmp = Chunk("XMP ");
    metadata_.exif = Chunk("EXIF");
    // Some programs write the block as JPEG has it.
    if (metadata_.exif.starts_with(kJpegExif)) metadata_.exif.erase(0, kJpegExif.size());
  }

  // The frame, and of lossless files the library's own copy.
  std::size_t HeldBytes() const override {
    return static_cast<std::size_t>(frame_rect_.width * frame_rect_.height) *
               (format_.BytesPerPixel() + 4) +
           file_.size();
  }

  void ReadRow(std::byte* row) override {
    if (next_row_ == 0) Decode();
    const std::int64_t y = next_row_++ - frame_rect_.y;
    std::memset(row, 0, format_.RowBytes());
    if (y < 0 || y >= frame_rect_.height) return;
    const std::size_t begin = static_cast<std::size_t>(frame_rect_.x) * format_.BytesPerPixel();
    std::memcpy(row + begin, frame_.Row(y), frame_.format().RowBytes());
  }

 private:
  std::string Chunk(const char* name) const {
    WebPChunkIterator chunk = {};
    std::string bytes;
    if (WebPDemuxGetChunk(demuxer_.get(), name, 1, &chunk) != 0)
      bytes.assign(reinterpret_cast<const char*>(chunk.chunk.bytes), chunk.chunk.size);
    WebPDemuxReleaseChunkIterator(&chunk);
    return bytes;
  }

  void Decode() {
    PictureFormat format = format_;
    format.width = frame_rect_.width;
    format.height = frame_rect_.height;
    frame_ = Picture(format);
    WebPDecoderConfig config;
    if (WebPInitDecoderConfig(&config) == 0) throw Error("another version of libwebp is installed");
    config.output.colorspace = format.channels == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA = {.rgba = frame_.Row<std::uint8_t>(0),
                            .stride = static_cast<int>(format.RowBytes()),
                            .size = frame_.bytes()};
    const VP8StatusCode status = WebPDecode(frame_data_.bytes, frame_data_.size, &config);
    Require(status == VP8_STATUS_OK, Reason(status));
    demuxer_.reset();
    std::string().swap(file_);
  }

  std::string file_;
  Demuxer demuxer_;
  Rect frame_rect_;
  WebPData frame_data_ = {};  // in file_
  Picture frame_;             // once the first row is asked for
  std::int64_t next_row_ = 0;
};

const char* Reason(WebPEncodingError error) {
  switch (error) {
    case VP8_ENC_ERROR_OUT_OF_MEMORY:
    case VP8_ENC_ERROR_BITSTREAM_OUT_OF_MEMORY:
      return "there is not enough memory to encode it";
    case VP8_ENC_ERROR_PARTITION0_OVERFLOW:
    case VP8_ENC_ERROR_PARTITION_OVERFLOW:
    case VP8_ENC_ERROR_FILE_TOO_BIG:
      return "the result is too large for a WebP file";
    default:
      return "the picture cannot be encoded as WebP";
  }
}

class WebpWriter final : public ImageWriter {
 public:
  WebpWriter(const PictureFormat& format, const WriteOptions& options, std::FILE* out)
      : format_(format), metadata_(options.metadata), out_(out) {
    bool same_version = WebPConfigInit(&config_) != 0 && WebPPictureInit(&picture_) != 0;
    if (options.quality) {
      config_.quality = static_cast<float>(*options.quality);
    } else {
      // Lossless: higher levels take many times as long for the last percents.
      constexpr int kLevel = 3;
      same_version = same_version && WebPConfigLosslessPreset(&config_, kLevel) != 0;
    }
    Require(same_version, "another version of libwebp is installed");
    config_.exact = 1;  // keeps the colour of transparent pixels
    picture_.use_argb = 1;
    picture_.width = static_cast<int>(format.width);
    picture_.height = static_cast<int>(format.height);
    if (WebPPictureAlloc(&picture_) == 0) throw std::bad_alloc();
  }
  ~WebpWriter() override { WebPPictureFree(&picture_); }

  void WriteStrip(const Picture& picture, std::int64_t begin, std::int64_t end,
                  const PackedStrip& /*packed*/) override {
    for (std::int64_t y = begin; y < end; ++y) {
      const std::uint8_t* from = picture.Row<std::uint8_t>(y);
      std::uint32_t* to = picture_.argb + y * picture_.argb_stride;
      for (std::int64_t x = 0; x < format_.width; ++x, from += format_.channels) {
        const std::uint32_t alpha = format_.channels == 4 ? from[3] : 255u;
        to[x] = alpha << 24 | static_cast<std::uint32_t>(from[0] << 16 | from[1] << 8 | from[2]);
      }
    }
  }

  void Finish() override {
    std::string encoded;
    picture_.custom_ptr = &encoded;
    picture_.writer = [](const std::uint8_t* bytes, std::size_t size, const WebPPicture* picture) {
      try {
        static_cast<std::string*>(picture->custom_ptr)
            ->append(reinterpret_cast<const char*>(bytes), size);
      } catch (const std::bad_alloc&) {
        return 0;
      }
      return 1;
    };
    Require(WebPEncode(&config_, &picture_) != 0, Reason(picture_.error_code));
    WebPPictureFree(&picture_);
    if (metadata_.icc.empty() && metadata_.exif.empty() && metadata_.xmp.empty()) {
      Write(encoded.data(), encoded.size());
    } else {
      WriteWithMetadata(encoded);
    }
  }

 private:
  void WriteWithMetadata(const std::string& encoded) {
    const Mux mux(WebPMuxNew());
    if (mux == nullptr) throw std::bad_alloc();
    const WebPData image = DataOf(encoded);
    bool fine = WebPMuxSetImage(mux.get(), &image, 0) == WEBP_MUX_OK;
    for (const auto& [name, bytes] :
         {std::pair("ICCP", &metadata_.icc), std::pair("EXIF", &metadata_.exif),
          std::pair("XMP ", &metadata_.xmp)}) {
      const WebPData chunk = DataOf(*bytes);
      if (chunk.size > 0) fine = fine && WebPMuxSetChunk(mux.get(), name, &chunk, 0) == WEBP_MUX_OK;
    }
    WebPData file = {};
    fine = fine && WebPMuxAssemble(mux.get(), &file) == WEBP_MUX_OK;
    const std::unique_ptr<WebPData, Deleter<WebPDataClear>> owner(&file);
    Require(fine, "its metadata do not fit into a WebP file");
    Write(file.bytes, file.size);
  }

  void Write(const void* bytes, std::size_t size) {
    RequireSystem(std::fwrite(bytes, 1, size, out_) == size, "cannot write");
  }

  PictureFormat format_;
  Metadata metadata_;
  std::FILE* out_;
  WebPConfig config_;
  WebPPicture picture_;
};

}  // namespace

std::unique_ptr<ImageReader> OpenWebp(FilePtr file, const ReadOptions& options) {
  auto reader = std::make_unique<WebpReader>(std::move(file), options);
  const int orientation = TiffOrientation(std::as_bytes(std::span(reader->metadata().exif)));
  return TurnReader(std::move(reader), orientation);
}

std::unique_ptr<ImageWriter> MakeWebpWriter(const PictureFormat& picture,
                                            const WriteOptions& options, std::FILE* out) {
  return std::make_unique<WebpWriter>(picture, options, out);
}

std::size_t WebpWriterBytes(const PictureFormat& picture) {
  // The picture and its encoded form take 4 bytes a pixel each; the rest is the lossless encoder's.
  constexpr std::size_t kBytesPerPixel = 40;
  return static_cast<std::size_t>(picture.width * picture.height) * kBytesPerPixel;
}

}  // namespace tessera
