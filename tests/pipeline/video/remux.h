// Videos in other containers, for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>

extern "C" {
#include <libavformat/avformat.h>
#include <libavutil/display.h>
}

namespace tessera {

struct RemuxOptions {
  std::string format_options = {};  // as av_dict_parse_string reads them: "movflags=faststart"
  double degrees = 0;               // counterclockwise, that players have to turn it by
  // Packets of these numbers, from 0, lose what they hold.
  std::set<int> blank = {};
  // From a frame's time to its new one, both in seconds. Must not change their order.
  std::function<double(double)> new_time = [](double seconds) { return seconds; };
};

// The same frames, not encoded anew, in the container that the output's name stands for.
inline void Remux(const std::filesystem::path& from, const std::filesystem::path& to,
                  const RemuxOptions& options = {}) {
  AVFormatContext *in = nullptr, *out = nullptr;
  ASSERT_GE(::avformat_open_input(&in, from.c_str(), nullptr, nullptr), 0);
  ASSERT_GE(::avformat_find_stream_info(in, nullptr), 0);
  ASSERT_GE(::avformat_alloc_output_context2(&out, nullptr, nullptr, to.c_str()), 0);
  const AVStream* source = in->streams[0];
  AVStream* target = ::avformat_new_stream(out, nullptr);
  ASSERT_GE(::avcodec_parameters_copy(target->codecpar, source->codecpar), 0);
  target->codecpar->codec_tag = 0;
  target->avg_frame_rate = source->avg_frame_rate;
  target->time_base = {1, 90000};
  if (options.degrees != 0) {
    auto* matrix = ::av_stream_new_side_data(target, AV_PKT_DATA_DISPLAYMATRIX, 9 * 4);
    ::av_display_rotation_set(reinterpret_cast<std::int32_t*>(matrix), options.degrees);
  }
  AVDictionary* dictionary = nullptr;
  ::av_dict_parse_string(&dictionary, options.format_options.c_str(), "=", ":", 0);
  ASSERT_GE(::avio_open(&out->pb, to.c_str(), AVIO_FLAG_WRITE), 0);
  ASSERT_GE(::avformat_write_header(out, &dictionary), 0);
  ::av_dict_free(&dictionary);

  AVPacket* packet = ::av_packet_alloc();
  for (int i = 0; ::av_read_frame(in, packet) >= 0; ++i) {
    if (options.blank.contains(i)) std::fill_n(packet->data, packet->size, std::uint8_t{0});
    const auto moved = [&](std::int64_t time) {
      const double seconds = static_cast<double>(time) * ::av_q2d(source->time_base);
      return std::llround(options.new_time(seconds) / ::av_q2d(target->time_base));
    };
    packet->pts = moved(packet->pts);
    packet->dts = moved(packet->dts);
    packet->duration = ::av_rescale_q(packet->duration, source->time_base, target->time_base);
    packet->pos = -1;
    ASSERT_GE(::av_interleaved_write_frame(out, packet), 0);
  }
  ::av_packet_free(&packet);
  ASSERT_GE(::av_write_trailer(out), 0);
  ::avio_closep(&out->pb);
  ::avformat_free_context(out);
  ::avformat_close_input(&in);
}

}  // namespace tessera
