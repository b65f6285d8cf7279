// The window of `track --display`.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>

#include "pipeline/tracking/draw_track.h"
#include "pipeline/tracking/track_record.h"
#include "pipeline/tracking/track_video.h"
#include "pipeline/video/frame_source.h"

namespace tessera {

// Throws Error, which asks for --init, if no window can be opened here. To be called by the main
// thread, before any window is made.
void ConnectToDisplay();

// Used by the main thread.
class TrackWindow {
 public:
  // Shows no more frames a second, unless that is 0. Whatever waits for the user ends when `stop`
  // is set.
  TrackWindow(double frames_per_second, const std::atomic<bool>& stop);
  ~TrackWindow();
  TrackWindow(const TrackWindow&) = delete;
  TrackWindow& operator=(const TrackWindow&) = delete;

  // The box that the user draws with the mouse, in pixels of the frame; nullopt for none.
  std::optional<Box> Select(const Frame& frame);

  // Shows the frame with the track, and returns what the user wants: kStartAnew to draw a box.
  TrackEvents::Wish Show(const Frame& frame, const TrackRecord& record);

  // To be called again and again while there is no frame to be shown. False if the user wants none.
  bool Wait();

 private:
  // What the mouse has drawn so far.
  struct Drawn {
    cv::Point from, to;
    bool down = false;

    Box Within(const cv::Mat& picture) const;
  };

  static void OnMouse(int event, int x, int y, int flags, void* window);
  void Open(const cv::Mat& picture);
  bool IsClosed() const;
  // What the user wants until then, kGoOn if that is nothing.
  TrackEvents::Wish WishBefore(std::chrono::steady_clock::time_point end) const;

  const std::chrono::duration<double> interval_;
  const std::atomic<bool>& stop_;
  bool opened_ = false;
  Drawn drawn_;
  TrackPainter painter_;
  cv::Mat shown_;
  bool draws_anew_ = false;  // with the next frame
  std::chrono::steady_clock::time_point next_ = {};
};

}  // namespace tessera
