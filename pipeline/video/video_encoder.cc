#include "pipeline/video/video_encoder.h"

#include <strings.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "engine/cpu_budget.h"
#include "ops/error.h"
#include "pipeline/video/ffmpeg.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
#include <libswscale/swscale.h>
}

namespace tessera {
namespace {

struct FreeOutput {
  void operator()(AVFormatContext* output) const { ::avformat_free_context(output); }
};
struct FreeStream {
  void operator()(AVIOContext* stream) const {
    ::av_freep(&stream->buffer);
    ::avio_context_free(&stream);
  }
};
struct FreeScaler {
  void operator()(SwsContext* scaler) const { ::sws_freeContext(scaler); }
};

struct Container {
  const char* extension;
  const char* format;  // FFmpeg's name
};
constexpr Container kContainers[] = {{".mp4", "mp4"},      {".m4v", "mp4"}, {".mov", "mov"},
                                     {".mkv", "matroska"}, {".avi", "avi"}, {".webm", "webm"}};

const Container* ContainerOf(const std::filesystem::path& path) {
  const std::string extension = path.extension().native();
  const auto* found = std::find_if(std::begin(kContainers), std::end(kContainers), [&](auto& each) {
    return ::strcasecmp(extension.c_str(), each.extension) == 0;
  });
  return found != std::end(kContainers) ? found : nullptr;
}

struct Codec {
  const char* name;     // for people
  const char* encoder;  // FFmpeg's name
  bool even;            // takes even sizes only
  AVPixelFormat pixels;
  // FFmpeg's options: quality that does not show the coding, and not the slowest way to it. Of
  // MPEG-4 and JPEG it is a quantiser, 3 of 1 (best) to 31, in the unit QP2LAMBDA.
  const char* options;
};
constexpr Codec kH264 = {"H.264", "libx264", true, AV_PIX_FMT_YUV420P, "preset=veryfast:crf=18"};
constexpr Codec kMpeg4 = {"MPEG-4", "mpeg4", false, AV_PIX_FMT_YUV420P,
                          "flags=+qscale:global_quality=3*QP2LAMBDA"};
constexpr Codec kJpeg = {"Motion JPEG", "mjpeg", false, AV_PIX_FMT_YUVJ420P,
                         "flags=+qscale:global_quality=3*QP2LAMBDA"};
constexpr Codec kVp9 = {"VP9", "libvpx-vp9", false, AV_PIX_FMT_YUV420P,
                        "deadline=realtime:cpu-used=7:crf=24:b=0"};
constexpr Codec kVp8 = {"VP8", "libvpx", false, AV_PIX_FMT_YUV420P,
                        "deadline=realtime:cpu-used=7:crf=8:b=20000000"};

std::vector<Codec> CodecsFor(const Container& container) {
  const std::string format = container.format;
  if (format == "webm") return {kVp9, kVp8};
  // Frames in an AVI have no times, which streams with B frames need.
  if (format == "avi") return {kMpeg4, kJpeg};
  return {kH264, kMpeg4, kJpeg};
}

// What FFmpeg hands to WriteBytes.
#if LIBAVFORMAT_VERSION_MAJOR >= 61
using WrittenByte = const std::uint8_t;
#else
using WrittenByte = std::uint8_t;
#endif

int WriteBytes(void* out, WrittenByte* bytes, int size) {
  errno = 0;
  const auto count = static_cast<std::size_t>(size);
  if (std::fwrite(bytes, 1, count, static_cast<std::FILE*>(out)) == count) return size;
  return AVERROR(errno != 0 ? errno : EIO);
}

std::int64_t Seek(void* out, std::int64_t offset, int whence) {
  auto* file = static_cast<std::FILE*>(out);
  if (whence == AVSEEK_SIZE) return AVERROR(ENOSYS);
  if (::fseeko(file, offset, whence & ~AVSEEK_FORCE) != 0) return AVERROR(errno);
  return ::ftello(file);
}

using CodecPtr = FfmpegPtr<AVCodecContext, &::avcodec_free_context>;

struct Dictionary {
  AVDictionary* entries = nullptr;
  ~Dictionary() { ::av_dict_free(&entries); }
};

// Null if there is no such encoder, or it does not take such frames.
CodecPtr OpenEncoder(const Codec& codec, cv::Size size, AVRational rate, const ColorCoding& colors,
                     bool global_header) {
  const AVCodec* encoder = ::avcodec_find_encoder_by_name(codec.encoder);
  if (encoder == nullptr) return nullptr;
  CodecPtr context(RequireMemory(::avcodec_alloc_context3(encoder)));
  context->width = size.width;
  context->height = size.height;
  context->pix_fmt = codec.pixels;
  context->framerate = rate;
  context->time_base = ::av_inv_q(rate);
  context->color_primaries = static_cast<AVColorPrimaries>(colors.primaries);
  context->color_trc = static_cast<AVColorTransferCharacteristic>(colors.transfer);
  context->colorspace = static_cast<AVColorSpace>(colors.matrix);
  context->color_range = codec.pixels == AV_PIX_FMT_YUVJ420P ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
  // It takes longer than all that is done to make the frames. More threads hold more frames.
  constexpr int kMaxThreads = 16;
  context->thread_count = std::min(AvailableCpus(), kMaxThreads);
  if (global_header) context->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  Dictionary options;
  RequireFfmpeg(::av_dict_parse_string(&options.entries, codec.options, "=", ":", 0),
                "encoder's options");
  if (::avcodec_open2(context.get(), encoder, &options.entries) < 0) return nullptr;
  // What it did not take is left.
  const AVDictionaryEntry* unknown =
      ::av_dict_get(options.entries, "", nullptr, AV_DICT_IGNORE_SUFFIX);
  Require(unknown == nullptr, "FFmpeg's encoder ", codec.encoder, " does not know the option ",
          unknown != nullptr ? unknown->key : "");
  return context;
}

}  // namespace

bool HasVideoExtension(const std::filesystem::path& path) { return ContainerOf(path) != nullptr; }

std::string KnownVideoExtensions() {
  std::string all;
  for (const Container& each : kContainers)
    all += StrCat(all.empty() ? "" : ", ", each.extension + 1);
  return all;
}

struct VideoEncoder::Impl {
  void Drain();

  std::unique_ptr<AVIOContext, FreeStream> stream;
  std::unique_ptr<AVFormatContext, FreeOutput> output;
  CodecPtr encoder;
  std::unique_ptr<SwsContext, FreeScaler> scaler;
  FfmpegPtr<AVFrame, &::av_frame_free> frame;
  PacketPtr packet;
  std::string codec, note;
};

// Writes what the encoder has ready.
void VideoEncoder::Impl::Drain() {
  while (true) {
    const int received = ::avcodec_receive_packet(encoder.get(), packet.get());
    if (received == AVERROR(EAGAIN) || received == AVERROR_EOF) return;
    RequireFfmpeg(received, "cannot encode");
    AVStream* video = output->streams[0];
    if (packet->duration == 0) packet->duration = 1;
    ::av_packet_rescale_ts(packet.get(), encoder->time_base, video->time_base);
    packet->stream_index = video->index;
    RequireFfmpeg(::av_interleaved_write_frame(output.get(), packet.get()), "cannot write");
    RequireFfmpeg(stream->error, "cannot write");
  }
}

VideoEncoder::VideoEncoder(const std::filesystem::path& path, std::FILE* out, cv::Size size,
                           double frames_per_second, const ColorCoding& colors)
    : impl_(std::make_unique<Impl>()) {
  const Container* container = ContainerOf(path);
  Require(container != nullptr, "no video format has this extension; known are ",
          KnownVideoExtensions());
  const AVRational rate = ::av_d2q(frames_per_second, 65535);
  Require(rate.num > 0 && rate.den > 0, "a video cannot have ", frames_per_second,
          " frames per second");

  AVFormatContext* output = nullptr;
  RequireFfmpeg(::avformat_alloc_output_context2(&output, nullptr, container->format, nullptr),
                "no videos of this kind can be written");
  impl_->output.reset(output);
  const bool even = size.width % 2 == 0 && size.height % 2 == 0;
  const bool global_header = (output->oformat->flags & AVFMT_GLOBALHEADER) != 0;
  for (const Codec& codec : CodecsFor(*container)) {
    if (codec.even && !even) {
      impl_->note = StrCat(codec.name, " has no odd sizes like ", size.width, "x", size.height);
      continue;
    }
    impl_->encoder = OpenEncoder(codec, size, rate, colors, global_header);
    impl_->codec = codec.name;
    if (impl_->encoder != nullptr) break;
    if (impl_->note.empty()) impl_->note = StrCat("there is no encoder of ", codec.name, " for it");
  }
  Require(impl_->encoder != nullptr, "no encoder makes a ", container->extension + 1, " of ",
          size.width, "x", size.height, " pixels");
  AVCodecContext* encoder = impl_->encoder.get();

  AVStream* video = RequireMemory(::avformat_new_stream(output, nullptr));
  RequireFfmpeg(::avcodec_parameters_from_context(video->codecpar, encoder), "cannot encode");
  video->time_base = encoder->time_base;
  video->avg_frame_rate = rate;
  impl_->packet.reset(RequireMemory(::av_packet_alloc()));
  impl_->frame.reset(RequireMemory(::av_frame_alloc()));
  AVFrame* frame = impl_->frame.get();
  frame->format = encoder->pix_fmt;
  frame->width = size.width;
  frame->height = size.height;
  frame->quality = encoder->global_quality;
  frame->pts = 0;
  RequireFfmpeg(::av_frame_get_buffer(frame, 0), "too little memory");
  impl_->scaler.reset(RequireMemory(::sws_getContext(size.width, size.height, AV_PIX_FMT_BGR24,
                                                     size.width, size.height, encoder->pix_fmt,
                                                     SWS_BICUBIC, nullptr, nullptr, nullptr)));

  constexpr int kBufferBytes = 1 << 16;
  impl_->stream.reset(RequireMemory(
      ::avio_alloc_context(static_cast<unsigned char*>(RequireMemory(::av_malloc(kBufferBytes))),
                           kBufferBytes, 1, out, nullptr, &WriteBytes, &Seek)));
  output->pb = impl_->stream.get();
  RequireFfmpeg(::avformat_write_header(output, nullptr), "cannot write");
}

VideoEncoder::~VideoEncoder() = default;

void VideoEncoder::Write(const cv::Mat& pixels) {
  AVFrame* frame = impl_->frame.get();
  RequireFfmpeg(::av_frame_make_writable(frame), "too little memory");
  const std::uint8_t* const rows[] = {pixels.data};
  const int row_bytes[] = {static_cast<int>(pixels.step[0])};
  ::sws_scale(impl_->scaler.get(), rows, row_bytes, 0, pixels.rows, frame->data, frame->linesize);
  RequireFfmpeg(::avcodec_send_frame(impl_->encoder.get(), frame), "cannot encode");
  ++frame->pts;
  impl_->Drain();
}

void VideoEncoder::Finish() {
  RequireFfmpeg(::avcodec_send_frame(impl_->encoder.get(), nullptr), "cannot encode");
  impl_->Drain();
  RequireFfmpeg(::av_write_trailer(impl_->output.get()), "cannot write");
  ::avio_flush(impl_->stream.get());
  RequireFfmpeg(impl_->stream->error, "cannot write");
}

const std::string& VideoEncoder::codec() const { return impl_->codec; }
const std::string& VideoEncoder::note() const { return impl_->note; }

}  // namespace tessera
