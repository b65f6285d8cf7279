#include "pipeline/quantization/input_list.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>

#include "ops/error.h"
#include "pipeline/folder_walk.h"
#include "pipeline/image_format.h"
#include "pipeline/input_stream.h"
#include "pipeline/picture_name.h"
#include "pipeline/quantization/frame_samples.h"
#include "pipeline/quantization/picture_samples.h"
#include "pipeline/quantization/raw_samples.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> RawFilesIn(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (IsRawSpec(it->path().string())) files.push_back(it->path().string());
  }
  std::ranges::sort(files);
  return files;
}

std::vector<std::string> FilesIn(const fs::path& folder) {
  std::vector<std::string> files = RawFilesIn(folder);
  if (!files.empty()) return files;
  FileList found;
  for (const fs::path& picture : FindPictures(folder, false, std::nullopt, found))
    files.push_back((folder / picture).string());
  if (!found.unread.empty())
    throw FileError(StrCat(DisplayName(found.unread[0].path), ": ", found.unread[0].reason));
  if (files.empty()) throw FileError(StrCat(DisplayName(folder), ": holds no pictures"));
  return files;
}

bool IsPicture(const std::string& file) {
  if (HasPictureExtension(file)) return true;
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return false;
  FilePtr stream = OpenInput(file);
  const std::string head = Peek(stream, kFormatHeadBytes);
  return StartsAsPicture(std::as_bytes(std::span(head)));
}

std::vector<Sample> SampleFile(const std::string& file, const Shape& tile, int count) {
  return NamingFile(file, [&] {
    if (!IsPicture(file)) return NamingClip(file, [&] { return SampleFrames(file, tile, count); });
    PictureInput input(file);
    return SampleTiles(input, tile, count);
  });
}

}  // namespace

std::vector<std::string> ListInputs(const std::vector<std::string>& inputs) {
  std::vector<std::string> files;
  for (const std::string& input : inputs) {
    std::error_code error;
    if (fs::is_directory(input, error)) {
      for (std::string& file : FilesIn(input)) files.push_back(std::move(file));
    } else {
      files.push_back(input);
    }
  }
  return files;
}

std::vector<Sample> SampleInputs(const std::vector<std::string>& inputs, const Shape& tile,
                                 int count) {
  const std::size_t files = std::min(inputs.size(), static_cast<std::size_t>(count));
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < files; ++i) {
    // The count from here on, shared by the files from here on.
    const auto left = static_cast<std::size_t>(count) - samples.size(), rest = files - i;
    const auto share = static_cast<int>((left + rest - 1) / rest);
    for (Sample& sample : SampleFile(inputs[i * inputs.size() / files], tile, share))
      samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace tessera
