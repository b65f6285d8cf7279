#include "pipeline/file_list.h"

#include <system_error>

#include "ops/error.h"
#include "pipeline/atomic_file.h"
#include "pipeline/display_name.h"
#include "pipeline/file_status.h"
#include "pipeline/folder_walk.h"
#include "pipeline/output_name.h"
#include "pipeline/picture_name.h"
#include "pipeline/settle_outputs.h"

namespace tessera {
namespace {

using std::filesystem::path;
using Status = std::optional<struct stat>;

bool IsStandardStream(const path& path) { return path == "-"; }

// "out/" without the slash.
path WithoutSlash(const path& folder) {
  return folder.has_filename() ? folder : folder.parent_path();
}

ListedFile FileToFile(const ListOptions& options) {
  Require(options.suffix.empty(), "--suffix is for an output folder; the output is a file");
  Require(options.name.empty(), "--name is for an output folder; the output is a file");
  ListedFile file{.input = options.inputs[0], .output = options.output};
  if (IsStandardStream(file.output)) {
    const auto own = FormatOfExtension(file.input);
    file.format = options.format.value_or(own.value_or(ImageFormat::kPng));
    return file;
  }
  const std::optional<ImageFormat> own = FormatOfExtension(file.output);
  // More likely than a file without extension are two folders, one misspelt.
  Require(own || options.format || IsStandardStream(file.input) || StatusOf(file.input),
          DisplayName(file.input), ": there is no such file or folder");
  Require(own || options.format, DisplayName(file.output),
          ": no picture format has this extension; known are ", KnownExtensions());
  file.format = options.format.value_or(own.value_or(ImageFormat::kPng));
  Require(own == file.format || !HasPictureExtension(file.output), DisplayName(file.output),
          ": its extension does not stand for ", Name(file.format));
  return file;
}

void AddFilesIntoFolder(const ListOptions& options, const Status& output,
                        const std::vector<bool>& is_folder, FileList& list) {
  Require(!IsStandardStream(options.output), "-: standard output takes one file");
  Require(!output || IsFolder(output), DisplayName(options.output),
          ": is no folder; several inputs need one");
  // Where the name of the output has been forgotten, the last input would be taken for it.
  Require(output || !options.output.has_filename() || !HasPictureExtension(options.output),
          DisplayName(options.output),
          ": several inputs need a folder; if it is to be one, end it with '/'");
  const OutputName name(options);
  const path folder = WithoutSlash(options.output);
  const auto output_id = output ? std::optional(IdOf(*output)) : std::nullopt;
  for (std::size_t i = 0; i < options.inputs.size(); ++i) {
    const path& input = options.inputs[i];
    Require(!IsStandardStream(input), "-: standard input is a single input, for an output file");
    if (!is_folder[i]) {
      list.files.push_back(name.For(input, folder));
      continue;
    }
    for (const path& found : FindPictures(input, options.recursive, output_id, list))
      list.files.push_back(name.For(input / found, folder / found.parent_path()));
  }
}

}  // namespace

FileList ListFiles(const ListOptions& options) {
  Require(!options.inputs.empty() && !options.output.empty(), "an input and an output are needed");
  std::vector<bool> is_folder;
  for (const path& input : options.inputs) {
    Require(!input.empty(), "an input has an empty name");
    is_folder.push_back(!IsStandardStream(input) && IsFolder(StatusOf(input)));
    Require(input.has_filename() || is_folder.back(), DisplayName(input),
            ": there is no such folder");
  }
  const path& output = options.output;
  const Status output_status =
      IsStandardStream(output) ? std::nullopt : StatusOf(WithoutSlash(output));
  FileList list;
  list.into_folder =
      is_folder.size() > 1 || is_folder[0] || !output.has_filename() || IsFolder(output_status);
  if (list.into_folder) {
    AddFilesIntoFolder(options, output_status, is_folder, list);
  } else {
    list.files.push_back(FileToFile(options));
  }
  SettleOutputs(options.existing, list);
  return list;
}

void PrepareOutputFolders(const ListOptions& options, const FileList& list) {
  if (list.into_folder) {
    std::error_code error;
    std::filesystem::create_directories(WithoutSlash(options.output), error);
    Require(!error, DisplayName(options.output), ": cannot create the folder: ", error.message());
  }
  for (const path& folder : list.output_folders) {
    std::error_code ignored;
    if (list.into_folder) std::filesystem::create_directories(folder, ignored);
    AtomicFile::RemoveStale(folder);
  }
}

}  // namespace tessera
