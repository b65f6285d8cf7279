// From the files and folders that a user names to the files that are to be read and written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/image_format.h"

namespace tessera {

// What becomes of outputs that are there already.
enum class Existing : std::uint8_t {
  kStop,       // nothing is done
  kSkip,       // those at least as new as their input are kept, the others are made again
  kOverwrite,  // all are replaced; the only way to let a file replace its own input
};

struct ListOptions {
  // Files and folders. "-", which has to be the only one, is standard input.
  std::vector<std::filesystem::path> inputs = {};
  // A file for one file, else a folder: if it is one, or ends with "/", or there are several
  // inputs, or a folder among them. "-" is standard output.
  std::filesystem::path output = {};
  bool recursive = false;  // folders within input folders too
  // Of the outputs. Default: what the name of the output file or `name` ends with; else what the
  // input's name ends with, if that can be written; else PNG.
  std::optional<ImageFormat> format = std::nullopt;
  // Names in an output folder; neither goes with an output file. The name is the input's, with
  // `suffix` before the extension, or as the pattern `name` says: {stem} is the input's name
  // without its extension, {ext} the extension with its dot, {scale} and {suffix} the texts here.
  // It ends with {ext} or an extension that can be written. "" is "{stem}{suffix}{ext}".
  //
  // What counts as extension of an input is that of a picture; "v1.2" has none. It is kept as it
  // is written if it stands for the output's format ("a.JPG", "a.jpeg"), otherwise replaced.
  std::string suffix = {};
  std::string name = {};
  std::string scale = {};
  Existing existing = Existing::kStop;
};

struct ListedFile {
  std::filesystem::path input, output;  // "-" as in ListOptions
  ImageFormat format = ImageFormat::kPng;
};

// A folder that could not be read, wholly or in part.
struct UnreadFolder {
  std::filesystem::path path;
  std::string reason;
};

struct FileList {
  std::vector<ListedFile> files;  // in the order of the inputs; within a folder by their bytes
  bool into_folder = false;       // the output is a folder, there or not
  // Where the outputs will be, those that are up to date too, each once; not necessarily there.
  // None for standard output.
  std::vector<std::filesystem::path> output_folders;
  std::vector<UnreadFolder> unread;

  // What was found in input folders, or asked for, and is not among `files`.
  std::size_t hidden = 0;  // files and folders; Thumbs.db and desktop.ini too
  // By their names or, where these do not tell, by their content. What has none to tell because it
  // cannot be read is taken: it fails by its name.
  std::size_t not_pictures = 0;
  std::size_t subfolders = 0;  // not looked into, without `recursive`
  std::size_t loops = 0;       // ways through links to a folder that is read already
  std::size_t results = 0;     // outputs of other inputs, of an earlier run: Existing::kSkip
  std::size_t up_to_date = 0;  // their outputs are there: Existing::kSkip
};

// Looks for the files; creates nothing. Throws Error if the wish makes no sense or cannot come out
// right, whichever file it is that stands in the way: two inputs with one output, an output that is
// the input of another file or has to be a folder for another output, a name too long, outputs that
// exist, ...
//
// A file that is named is taken, there or not, picture or not. Links are followed, also to nowhere:
// that such a file cannot be read shows when its turn comes. Each folder within an input folder is
// read once: by its own name if it has one there, else by that of the first link to it, where links
// that are in folders go before those that are reached through links. An output folder within an
// input folder is not read.
FileList ListFiles(const ListOptions& options);

// Creates the output folders, if the output is one, and removes temporary files that a killed run
// left in them (AtomicFile::RemoveStale). Throws Error if the output folder itself cannot be
// created. A folder within it that cannot be shows when a file is to be written there, with the
// reason (AtomicFile::CheckTarget, which also tells before the folders are made).
void PrepareOutputFolders(const ListOptions& options, const FileList& list);

}  // namespace tessera
