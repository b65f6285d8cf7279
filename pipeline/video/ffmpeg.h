// What all callers of FFmpeg's libraries need.
#pragma once

#include <memory>
#include <string>

#include "ops/error.h"

extern "C" {
#include <libavcodec/packet.h>
#include <libavutil/error.h>
}

namespace tessera {

// Frees what FFmpeg allocated, by a function of it that sets the pointer to null.
template <auto kFree>
struct FfmpegFree {
  template <typename T>
  void operator()(T* pointer) const {
    kFree(&pointer);
  }
};
template <typename T, auto kFree>
using FfmpegPtr = std::unique_ptr<T, FfmpegFree<kFree>>;
using PacketPtr = FfmpegPtr<AVPacket, &::av_packet_free>;

// What FFmpeg's allocating functions return; throws Error if it is null.
template <typename T>
T* RequireMemory(T* pointer) {
  Require(pointer != nullptr, "too little memory");
  return pointer;
}

// FFmpeg's error, a negative number, in words.
inline std::string FfmpegReason(int error) {
  char reason[AV_ERROR_MAX_STRING_SIZE] = {};
  ::av_strerror(error, reason, sizeof reason);
  return reason;
}

// Throws Error if a call of FFmpeg returned an error.
inline void RequireFfmpeg(int result, const char* what) {
  if (result < 0) throw Error(StrCat(what, ": ", FfmpegReason(result)));
}

}  // namespace tessera
