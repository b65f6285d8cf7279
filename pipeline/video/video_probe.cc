#include "pipeline/video/video_probe.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "ops/error.h"
#include "pipeline/video/ffmpeg.h"
#include "pipeline/video/file_parts.h"

extern "C" {
#include <libavformat/avformat.h>
#include <libavutil/pixdesc.h>
}

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

// An open file or stream that gives up when a server does not answer, or when it is stopped.
class Input {
 public:
  explicit Input(const std::atomic<bool>* stop) : stop_(stop) {}

  // Returns FFmpeg's error, negative, or 0.
  int Open(const std::string& url) {
    give_up_ = Clock::now() + std::chrono::seconds(3);
    AVFormatContext* context = RequireMemory(::avformat_alloc_context());
    context->interrupt_callback = {.callback = &IsTooLate, .opaque = this};
    // Frees the context if it fails.
    if (const int error = ::avformat_open_input(&context, url.c_str(), nullptr, nullptr); error < 0)
      return error;
    context_.reset(context);
    return std::min(0, ::avformat_find_stream_info(context, nullptr));
  }

  bool Read(AVPacket* packet) {
    give_up_ = Clock::now() + std::chrono::seconds(30);
    return ::av_read_frame(context_.get(), packet) >= 0;
  }

  AVFormatContext& context() const { return *context_; }
  // Null if there is none.
  const AVStream* video() const {
    const int index = ::av_find_best_stream(context_.get(), AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
    return index < 0 ? nullptr : context_->streams[index];
  }

 private:
  static int IsTooLate(void* opaque) {
    const auto& input = *static_cast<Input*>(opaque);
    return Clock::now() > input.give_up_ || (input.stop_ != nullptr && *input.stop_);
  }

  const std::atomic<bool>* const stop_;
  FfmpegPtr<AVFormatContext, &::avformat_close_input> context_;
  Clock::time_point give_up_;
};

double Seconds(std::int64_t time, AVRational unit) {
  return static_cast<double>(time) * ::av_q2d(unit);
}

// The length that the head announces, in seconds; 0 if none.
double AnnouncedSeconds(const AVFormatContext& input, const AVStream& video) {
  if (input.duration_estimation_method != AVFMT_DURATION_FROM_STREAM) return 0;
  // A head that was never completed may claim any number of frames, and a length to match.
  if (input.pb != nullptr && video.nb_frames > ::avio_size(input.pb)) return 0;
  double seconds = std::max(0.0, Seconds(input.duration, {1, AV_TIME_BASE}));
  // FFmpeg's length of an AVI is that of the part that is there.
  if (std::string_view(input.iformat->name) == "avi")
    seconds = std::max(seconds, Seconds(video.nb_frames, video.time_base));
  return seconds;
}

double LargestStep(const std::vector<double>& times) {
  double largest = 0;
  for (std::size_t i = 1; i < times.size(); ++i)
    largest = std::max(largest, times[i] - times[i - 1]);
  return largest;
}

}  // namespace

std::string FileUrl(const std::filesystem::path& path) { return "file:" + path.native(); }

std::string WhyUnreadable(const std::string& url, const std::atomic<bool>* stop) {
  Input input(stop);
  if (const int error = input.Open(url); error < 0) {
    if (error == AVERROR_INVALIDDATA) return "is no video, or its index is missing";
    if (error == AVERROR_EOF || error == AVERROR(EIO))
      return "cannot be opened: it seems to be cut off";
    return StrCat("cannot be opened: ", FfmpegReason(error));
  }
  return input.video() == nullptr ? "holds no video, or its index is cut off"
                                  : "its video cannot be decoded";
}

ColorCoding ColorsOf(const std::string& url, const std::atomic<bool>* stop) {
  Input input(stop);
  if (input.Open(url) < 0 || input.video() == nullptr) return {};
  const AVCodecParameters& codec = *input.video()->codecpar;
  const AVPixFmtDescriptor* pixels =
      ::av_pix_fmt_desc_get(static_cast<AVPixelFormat>(codec.format));
  const bool rgb =
      pixels != nullptr && (pixels->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL)) != 0;
  if (rgb || codec.color_space == AVCOL_SPC_RGB) return kRec601;
  return {
      .primaries = codec.color_primaries, .transfer = codec.color_trc, .matrix = codec.color_space};
}

VideoExtent ExtentOf(const std::filesystem::path& file, const std::atomic<bool>* stop) {
  if (EndsInsideItsParts(file)) return {.cut_off = true};
  Input input(stop);
  if (input.Open(FileUrl(file)) < 0) return {.cut_off = true};
  const AVStream* video = input.video();
  if (video == nullptr) return {.cut_off = true};

  const PacketPtr packet(RequireMemory(::av_packet_alloc()));
  const bool in_order = std::string_view(input.context().iformat->name).starts_with("matroska");
  std::int64_t packet_end = -1, largest_hole = 0;  // bytes of no packet
  bool damaged = false, incomplete = false;
  double end = 0;             // of any stream
  std::vector<double> shown;  // when each frame of the video is
  while (input.Read(packet.get())) {
    const AVStream* stream = input.context().streams[packet->stream_index];
    const std::int64_t time = packet->pts != AV_NOPTS_VALUE ? packet->pts : packet->dts;
    if (time != AV_NOPTS_VALUE) {
      end = std::max(end, Seconds(time + packet->duration, stream->time_base));
      if (stream == video && (packet->flags & AV_PKT_FLAG_DISCARD) == 0)
        shown.push_back(Seconds(time, stream->time_base));
    }
    damaged |= incomplete;
    incomplete = (packet->flags & AV_PKT_FLAG_CORRUPT) != 0;
    if (in_order && packet->pos >= 0) {
      if (packet_end >= 0) largest_hole = std::max(largest_hole, packet->pos - packet_end);
      packet_end = packet->pos + packet->size;
    }
    ::av_packet_unref(packet.get());
  }
  const AVRational rate = video->avg_frame_rate;
  const double frame_seconds = rate.num > 0 ? 1 / ::av_q2d(rate) : 0.1;
  std::sort(shown.begin(), shown.end());
  constexpr std::int64_t kMostOverhead = 1024;  // bytes of Matroska between two packets
  damaged |= largest_hole > kMostOverhead && LargestStep(shown) > 1.5 * frame_seconds;
  return {.cut_off = incomplete || end < AnnouncedSeconds(input.context(), *video) -
                                             std::max(0.2, 2 * frame_seconds),
          .damaged = damaged,
          .seconds = shown.empty() ? 0 : shown.back() - shown.front()};
}

}  // namespace tessera
