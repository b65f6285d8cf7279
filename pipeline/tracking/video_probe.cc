#include "pipeline/tracking/video_probe.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>

#include "pipeline/tracking/opencv_video.h"

extern "C" {
#include <libavformat/avformat.h>
}

namespace tessera {
namespace {

struct CloseInput {
  void operator()(AVFormatContext* input) const { ::avformat_close_input(&input); }
};
using Input = std::unique_ptr<AVFormatContext, CloseInput>;

struct FreePacket {
  void operator()(AVPacket* packet) const { ::av_packet_free(&packet); }
};

// Returns FFmpeg's error, negative, or 0.
int OpenInput(const std::string& url, Input& input) {
  SilenceVideoLibraries();
  AVFormatContext* opened = nullptr;
  if (const int error = ::avformat_open_input(&opened, url.c_str(), nullptr, nullptr); error < 0)
    return error;
  input.reset(opened);
  return std::min(0, ::avformat_find_stream_info(opened, nullptr));
}

double Seconds(std::int64_t time, AVRational unit) {
  return static_cast<double>(time) * ::av_q2d(unit);
}

const AVStream* VideoOf(AVFormatContext& input) {
  const int index = ::av_find_best_stream(&input, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  return index < 0 ? nullptr : input.streams[index];
}

// The length that the head announces, in seconds; 0 if none.
double AnnouncedSeconds(const AVFormatContext& input, const AVStream& video) {
  if (input.duration_estimation_method != AVFMT_DURATION_FROM_STREAM) return 0;
  // A head that was never completed may claim any number of frames, and a length to match.
  if (input.pb != nullptr && video.nb_frames > ::avio_size(input.pb)) return 0;
  double seconds = std::max(0.0, Seconds(input.duration, AV_TIME_BASE_Q));
  // FFmpeg's length of an AVI is that of the part that is there.
  if (std::string_view(input.iformat->name) == "avi")
    seconds = std::max(seconds, Seconds(video.nb_frames, video.time_base));
  return seconds;
}

}  // namespace

std::string FileUrl(const std::filesystem::path& path) { return "file:" + path.native(); }

std::string WhyUnreadable(const std::string& url) {
  Input input;
  if (const int error = OpenInput(url, input); error < 0) {
    if (error == AVERROR_INVALIDDATA) return "is no video, or its index is missing";
    char reason[AV_ERROR_MAX_STRING_SIZE] = {};
    ::av_strerror(error, reason, sizeof reason);
    return StrCat("cannot be opened: ", reason);
  }
  return VideoOf(*input) == nullptr ? "holds no video" : "its video cannot be decoded";
}

bool IsCutOff(const std::string& url) {
  Input input;
  if (OpenInput(url, input) < 0) return true;
  const AVStream* video = VideoOf(*input);
  if (video == nullptr) return true;
  const double announced = AnnouncedSeconds(*input, *video);

  const std::unique_ptr<AVPacket, FreePacket> packet(::av_packet_alloc());
  bool incomplete = false;
  double end = 0;
  while (::av_read_frame(input.get(), packet.get()) >= 0) {
    const std::int64_t start = packet->pts != AV_NOPTS_VALUE ? packet->pts : packet->dts;
    if (start != AV_NOPTS_VALUE)
      end = std::max(
          end, Seconds(start + packet->duration, input->streams[packet->stream_index]->time_base));
    incomplete = (packet->flags & AV_PKT_FLAG_CORRUPT) != 0;
    ::av_packet_unref(packet.get());
  }
  if (incomplete || announced == 0) return incomplete;
  const AVRational rate = video->avg_frame_rate;
  return end < announced - std::max(0.2, rate.num > 0 ? 2 / ::av_q2d(rate) : 0);
}

}  // namespace tessera
