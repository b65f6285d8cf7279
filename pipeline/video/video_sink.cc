#include "pipeline/video/video_sink.h"

#include <opencv2/imgproc.hpp>
#include <optional>

#include "ops/error.h"
#include "pipeline/atomic_file.h"
#include "pipeline/display_name.h"
#include "pipeline/video/opencv_video.h"
#include "pipeline/video/video_encoder.h"

namespace tessera {
namespace {

class VideoSink : public FrameSink {
 public:
  VideoSink(const std::filesystem::path& path, const SinkOptions& options)
      : path_(path), frames_per_second_(options.frames_per_second), colors_(options.colors) {
    AtomicFile::RemoveStale(path_.parent_path());
    NamingFile(path_, [&] { file_.emplace(path_, options.overwrite); });
  }

  void Write(const Frame& frame) override {
    NamingFile(path_, [&] {
      if (!encoder_) {
        size_ = frame.pixels.size();
        encoder_.emplace(path_, file_->stream(), size_, frames_per_second_, colors_);
        if (!encoder_->note().empty())
          notes_.Add(StrCat(DisplayName(path_), ": written as ", encoder_->codec(), ": ",
                            encoder_->note()));
      }
      if (frame.pixels.size() == size_) {
        encoder_->Write(frame.pixels);
      } else {
        CallingOpenCv([&] { cv::resize(frame.pixels, scaled_, size_, 0, 0, cv::INTER_AREA); });
        encoder_->Write(scaled_);
      }
    });
  }

  void Close() override {
    NamingFile(path_, [&] {
      Require(encoder_.has_value(), "there was no frame to write");
      encoder_->Finish();
      file_->Commit();
    });
  }

 private:
  std::filesystem::path path_;
  double frames_per_second_;
  ColorCoding colors_;
  std::optional<AtomicFile> file_;
  std::optional<VideoEncoder> encoder_;  // from the first frame on
  cv::Size size_;
  cv::Mat scaled_;
};

}  // namespace

std::unique_ptr<FrameSink> MakeVideoSink(const std::filesystem::path& path,
                                         const SinkOptions& options) {
  return std::make_unique<VideoSink>(path, options);
}

}  // namespace tessera
