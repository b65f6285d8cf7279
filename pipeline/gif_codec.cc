// GIF by giflib: the first frame, on its canvas (GIF89a specification).
#include <gif_lib.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/error.h"
#include "pipeline/codecs.h"

namespace tessera {
namespace {

struct GifCloser {
  void operator()(GifFileType* gif) const { DGifCloseFile(gif, nullptr); }
};

int ReadGif(GifFileType* gif, GifByteType* to, int size) {
  auto* file = static_cast<std::FILE*>(gif->UserData);
  return static_cast<int>(std::fread(to, 1, static_cast<std::size_t>(size), file));
}

std::string Reason(int error) {
  if (error == D_GIF_ERR_READ_FAILED || error == D_GIF_ERR_EOF_TOO_SOON)
    return "the file ends too soon";
  const char* text = GifErrorString(error);
  return StrCat("damaged: ", text == nullptr ? "unknown error" : text);
}

class GifReader final : public ImageReader {
 public:
  GifReader(FilePtr file, const ReadOptions& options) : file_(std::move(file)) {
    int error = 0;
    gif_.reset(DGifOpen(file_.get(), ReadGif, &error));
    Require(gif_ != nullptr, Reason(error));
    Require(NextFrame(), "it has no frame");
    Check(DGifGetImageDesc(gif_.get()));
    const GifImageDesc& frame = gif_->Image;
    const ColorMapObject* colours = frame.ColorMap != nullptr ? frame.ColorMap : gif_->SColorMap;
    Require(colours != nullptr, "it has no colour table");
    for (std::size_t i = 0; i < static_cast<std::size_t>(colours->ColorCount); ++i)
      palette_[i] = {colours->Colors[i].Red, colours->Colors[i].Green, colours->Colors[i].Blue,
                     255};
    if (transparent_) palette_[*transparent_][3] = 0;

    // Viewers enlarge a canvas that its first frame does not fit on.
    format_.width = std::max<std::int64_t>(gif_->SWidth, frame.Left + std::int64_t{frame.Width});
    format_.height = std::max<std::int64_t>(gif_->SHeight, frame.Top + std::int64_t{frame.Height});
    Require(frame.Width > 0 && frame.Height > 0, "its frame is empty");
    CheckInputSize(format_.width, format_.height, options);
    const bool covers = frame.Width == format_.width && frame.Height == format_.height;
    format_.channels = transparent_ || !covers ? 4 : 3;
    line_.resize(static_cast<std::size_t>(frame.Width));
  }

  std::size_t HeldBytes() const override {
    return gif_->Image.Interlace ? line_.size() * static_cast<std::size_t>(gif_->Image.Height) : 0;
  }

  void ReadRow(std::byte* row) override {
    const GifImageDesc& frame = gif_->Image;
    const std::int64_t y = next_row_++ - frame.Top;
    std::memset(row, 0, format_.RowBytes());
    if (y < 0 || y >= frame.Height) return;
    const GifPixelType* line = frame.Interlace ? InterlacedLine(y) : NextLine();
    const auto channels = static_cast<std::size_t>(format_.channels);
    std::byte* to = row + static_cast<std::size_t>(frame.Left) * channels;
    for (std::size_t x = 0; x < line_.size(); ++x, to += channels)
      std::memcpy(to, palette_[line[x]].data(), channels);
  }

  void Finish() override {
    try {
      if (NextFrame()) warnings_.emplace_back("animated: only the first frame is used");
    } catch (const Error& error) {
      // The picture is complete.
      warnings_.emplace_back(StrCat("after its first frame: ", error.what()));
    }
  }

 private:
  void Check(int status) const { Require(status == GIF_OK, Reason(gif_->Error)); }

  // Goes on to the next frame; false if there is none.
  bool NextFrame() {
    GifRecordType record = UNDEFINED_RECORD_TYPE;
    for (Check(DGifGetRecordType(gif_.get(), &record)); record != TERMINATE_RECORD_TYPE;
         Check(DGifGetRecordType(gif_.get(), &record))) {
      if (record == IMAGE_DESC_RECORD_TYPE) return true;
      if (record == EXTENSION_RECORD_TYPE) ReadExtension();
    }
    return false;
  }

  void ReadExtension() {
    int code = 0;
    GifByteType* block = nullptr;  // its length, then its bytes
    Check(DGifGetExtension(gif_.get(), &code, &block));
    GraphicsControlBlock control = {};
    if (code == GRAPHICS_EXT_FUNC_CODE && block != nullptr &&
        DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) {
      transparent_.reset();
      if (control.TransparentColor != NO_TRANSPARENT_COLOR)
        transparent_ = static_cast<std::size_t>(control.TransparentColor);
    }
    while (block != nullptr) Check(DGifGetExtensionNext(gif_.get(), &block));
  }

  const GifPixelType* NextLine() {
    Check(DGifGetLine(gif_.get(), line_.data(), static_cast<int>(line_.size())));
    return line_.data();
  }

  // Rows come in four passes: every 8th, the 8th ones in between, every 4th and every 2nd one
  // between those. They are kept as they come, so that a file takes no more memory than it has
  // rows.
  const GifPixelType* InterlacedLine(std::int64_t y) {
    const std::int64_t height = gif_->Image.Height;
    if (lines_.empty()) {
      for (std::int64_t i = 0; i < height; ++i) {
        NextLine();
        lines_.insert(lines_.end(), line_.begin(), line_.end());
      }
    }
    const auto rows = [&](std::int64_t first, std::int64_t step) {
      return (height - first + step - 1) / step;
    };
    std::int64_t line = 0;
    if (y % 8 == 0) {
      line = y / 8;
    } else if (y % 8 == 4) {
      line = rows(0, 8) + y / 8;
    } else if (y % 4 == 2) {
      line = rows(0, 8) + rows(4, 8) + y / 4;
    } else {
      line = rows(0, 8) + rows(4, 8) + rows(2, 4) + y / 2;
    }
    return lines_.data() + static_cast<std::size_t>(line) * line_.size();
  }

  FilePtr file_;
  std::unique_ptr<GifFileType, GifCloser> gif_;
  std::optional<std::size_t> transparent_;  // of the palette
  std::array<std::array<GifByteType, 4>, 256> palette_ = {};
  std::vector<GifPixelType> line_;   // of the frame
  std::vector<GifPixelType> lines_;  // all of them, if interlaced
  std::int64_t next_row_ = 0;
};

}  // namespace

std::unique_ptr<ImageReader> OpenGif(FilePtr file, const ReadOptions& options) {
  return std::make_unique<GifReader>(std::move(file), options);
}

}  // namespace tessera
