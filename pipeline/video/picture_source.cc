#include "pipeline/video/picture_source.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "ops/error.h"
#include "pipeline/display_name.h"
#include "pipeline/file_list.h"
#include "pipeline/folder_walk.h"
#include "pipeline/image_reader.h"
#include "pipeline/video/file_number.h"
#include "pipeline/video/opencv_video.h"

namespace tessera {
namespace {

std::uint8_t ToByte(std::uint8_t sample) { return sample; }
// The nearest: 257 steps of 16 bits are one of 8.
std::uint8_t ToByte(std::uint16_t sample) {
  return static_cast<std::uint8_t>((sample + 128) / 257);
}

// A row of 1 to 4 channels, R before B, to B, G, R.
template <typename T>
void ToBgr(const T* src, int channels, int width, std::uint8_t* dst) {
  const int green = channels >= 3 ? 1 : 0, blue = 2 * green;
  for (int x = 0; x < width; ++x, src += channels, dst += 3) {
    dst[0] = ToByte(src[blue]);
    dst[1] = ToByte(src[green]);
    dst[2] = ToByte(src[0]);
  }
}

class PictureSource : public FrameSource {
 public:
  // `note`: if not empty, the first of its notes.
  PictureSource(std::vector<std::filesystem::path> files, const SourceOptions& options,
                std::string note)
      : files_(std::move(files)),
        options_(options),
        next_(static_cast<std::size_t>(options.start)),
        every_(static_cast<std::size_t>(options.every)) {
    if (options.end) files_.resize(std::min(files_.size(), static_cast<std::size_t>(*options.end)));
    if (!note.empty()) notes_.Add(std::move(note));
    info_.pictures = true;
    info_.colors = kRec601;
    info_.frames = static_cast<std::int64_t>((files_.size() - next_ - 1) / every_ + 1);
  }

  bool Read(Frame& frame) override {
    if (options_.stopped() || next_ >= files_.size()) return false;
    const std::filesystem::path& file = files_[next_];
    frame.number = static_cast<std::int64_t>(next_);
    frame.seconds = 0;
    frame.name = file.filename().native();
    next_ += every_;
    NamingFile(file, [&] { Decode(file, frame.pixels); });
    return true;
  }

 private:
  void Decode(const std::filesystem::path& file, cv::Mat& pixels) {
    const std::unique_ptr<ImageReader> reader = OpenImage(file);
    const PictureFormat& format = reader->format();
    const int width = static_cast<int>(format.width), height = static_cast<int>(format.height);
    CallingOpenCv([&] { pixels.create(height, width, CV_8UC3); });
    row_.resize(format.RowBytes() / sizeof(std::uint16_t) + 1);
    for (int y = 0; y < height; ++y) {
      reader->ReadRow(reinterpret_cast<std::byte*>(row_.data()));
      if (format.bit_depth == 8) {
        ToBgr(reinterpret_cast<const std::uint8_t*>(row_.data()), format.channels, width,
              pixels.ptr(y));
      } else {
        ToBgr(row_.data(), format.channels, width, pixels.ptr(y));
      }
    }
    reader->Finish();
    for (const std::string& warning : reader->warnings())
      notes_.Add(StrCat(DisplayName(file), ": ", warning));
  }

  std::vector<std::filesystem::path> files_;
  SourceOptions options_;
  std::size_t next_, every_;
  std::vector<std::uint16_t> row_;  // as it is in the file, in samples of 8 or 16 bits
};

}  // namespace

std::vector<std::filesystem::path> PicturesOfFolder(const std::filesystem::path& folder) {
  FileList list;
  std::vector<std::filesystem::path> files = FindPictures(folder, false, std::nullopt, list);
  if (!list.unread.empty())
    throw Error(
        StrCat(DisplayName(folder), ": cannot read the folder: ", list.unread.front().reason));
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return NaturalLess(a.native(), b.native()); });
  for (std::filesystem::path& file : files) file = folder / file;
  return files;
}

PatternPictures PicturesOfPattern(const std::filesystem::path& pattern) {
  const NumberedName name(pattern);
  const std::vector<std::int64_t> numbers = name.Existing();
  PatternPictures pictures;
  for (const std::int64_t number : numbers) {
    if (number != numbers[0] + std::ssize(pictures.files)) break;
    pictures.files.push_back(name.Of(number));
  }
  pictures.left_out = numbers.size() - pictures.files.size();
  return pictures;
}

std::unique_ptr<FrameSource> MakePictureSource(std::vector<std::filesystem::path> files,
                                               const std::string& shown_name,
                                               const SourceOptions& options, std::size_t left_out) {
  Require(!files.empty(), shown_name, ": holds no pictures");
  Require(static_cast<std::size_t>(options.start) < files.size(), shown_name, ": has ",
          files.size(), " frames; frame ", options.start, " is beyond the last");
  std::string note;
  if (left_out > 0) {
    note = StrCat(shown_name, ": ends at the first gap in the numbers, after ", files.size(),
                  " pictures; ", left_out, " more are left out");
  }
  return std::make_unique<PictureSource>(std::move(files), options, std::move(note));
}

}  // namespace tessera
