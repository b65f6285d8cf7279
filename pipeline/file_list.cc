#include "pipeline/file_list.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "ops/error.h"
#include "pipeline/atomic_file.h"
#include "pipeline/display_name.h"
#include "pipeline/file_status.h"
#include "pipeline/folder_walk.h"
#include "pipeline/output_name.h"
#include "pipeline/picture_name.h"

namespace tessera {
namespace {

using std::filesystem::path;
using Status = std::optional<struct stat>;

bool IsStandardStream(const path& path) { return path == "-"; }

Status StatusOfInput(const path& input) {
  if (!IsStandardStream(input)) return StatusOf(input);
  struct stat status = {};
  if (::fstat(STDIN_FILENO, &status) != 0) return std::nullopt;
  return status;
}

// "a, b, c and 5 more"
std::string FirstOf(const std::vector<path>& names) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i)
    text += (i == 0 ? "" : ", ") + DisplayName(names[i]);
  if (names.size() > kShown) text += StrCat(" and ", names.size() - kShown, " more");
  return text;
}

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
  Require(own || options.format || StatusOfInput(file.input), DisplayName(file.input),
          ": there is no such file or folder");
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

// Where files really are: folders may be links.
class RealPaths {
 public:
  path Of(const path& file) {
    std::error_code error;
    if (std::filesystem::is_symlink(file, error)) {
      if (path real = std::filesystem::canonical(file, error); !error) return real;
    }
    const path folder = file.parent_path();
    const auto [known, is_new] = folders_.try_emplace(folder.native());
    if (is_new) known->second = std::filesystem::weakly_canonical(folder, error);
    return known->second / file.filename();
  }

 private:
  std::unordered_map<std::string, path> folders_;
};

// What was named twice is done once; two inputs for one output are an Error.
void RequireOwnOutputs(FileList& list) {
  RealPaths real_paths;
  std::unordered_map<std::string, const path*> input_of;  // by output
  std::vector<ListedFile> files;
  files.reserve(list.files.size());  // input_of points into it
  for (ListedFile& file : list.files) {
    const auto [other, is_new] = input_of.try_emplace(real_paths.Of(file.output).native(), nullptr);
    if (!is_new) {
      Require(other->second->native() == file.input.native(), DisplayName(*other->second), " and ",
              DisplayName(file.input), " would both become ", DisplayName(file.output));
      continue;
    }
    other->second = &files.emplace_back(std::move(file)).input;
  }
  list.files = std::move(files);
}

bool IsUpToDate(const Status& output, const Status& input) {
  if (!output || !S_ISREG(output->st_mode) || !input) return false;
  if (!S_ISREG(input->st_mode)) return true;  // a pipe has no date
  const timespec &made = output->st_mtim, &changed = input->st_mtim;
  return std::pair(made.tv_sec, made.tv_nsec) >= std::pair(changed.tv_sec, changed.tv_nsec);
}

// A file and what the system says of it.
struct Candidate {
  ListedFile file;
  Status input, output;
  bool Exists() const { return output.has_value(); }
  bool InPlace() const { return input && output && IdOf(*input) == IdOf(*output); }
};

// Inputs that are the outputs of others: what an earlier run has written beside its inputs.
void LeaveOutResults(std::vector<Candidate>& candidates, Existing existing, FileList& list) {
  std::map<FileId, const Candidate*> made_by;
  for (const Candidate& candidate : candidates)
    if (candidate.Exists()) made_by.emplace(IdOf(*candidate.output), &candidate);
  const auto is_result = [&](const Candidate& candidate) {
    if (!candidate.input || candidate.InPlace()) return false;
    const auto found = made_by.find(IdOf(*candidate.input));
    if (found == made_by.end()) return false;
    Require(existing == Existing::kSkip, DisplayName(candidate.file.input),
            " is an input, and would be overwritten with the result of ",
            DisplayName(found->second->file.input));
    return true;
  };
  std::vector<bool> results;
  for (const Candidate& candidate : candidates) results.push_back(is_result(candidate));
  std::size_t i = 0;
  list.results += std::erase_if(candidates, [&](const Candidate&) { return results[i++]; });
}

// Decides on outputs that exist.
void SettleExisting(Existing existing, FileList& list) {
  std::vector<Candidate> candidates;
  candidates.reserve(list.files.size());
  std::vector<path> there, in_place;
  for (ListedFile& file : list.files) {
    Candidate candidate{.file = std::move(file), .input = {}, .output = {}};
    if (!IsStandardStream(candidate.file.output))
      candidate.output = StatusOf(candidate.file.output);
    if (candidate.Exists()) {
      there.push_back(candidate.file.output);
      candidate.input = StatusOfInput(candidate.file.input);
      if (candidate.InPlace()) in_place.push_back(candidate.file.output);
    }
    candidates.push_back(std::move(candidate));
  }
  Require(in_place.empty() || existing == Existing::kOverwrite, FirstOf(in_place),
          ": would replace its own input; --overwrite allows that");
  Require(there.empty() || existing != Existing::kStop, FirstOf(there),
          there.size() == 1 ? " exists" : " exist",
          " already; --skip-existing keeps what is there, --overwrite replaces it");
  if (!there.empty()) {
    for (Candidate& candidate : candidates)
      if (!candidate.input) candidate.input = StatusOfInput(candidate.file.input);
    LeaveOutResults(candidates, existing, list);
  }
  list.files.clear();
  for (Candidate& candidate : candidates) {
    if (existing == Existing::kSkip && IsUpToDate(candidate.output, candidate.input)) {
      ++list.up_to_date;
    } else {
      list.files.push_back(std::move(candidate.file));
    }
  }
}

void ListOutputFolders(FileList& list) {
  std::set<std::string> folders;
  for (const ListedFile& file : list.files) {
    if (IsStandardStream(file.output)) continue;
    const path folder = file.output.parent_path();
    folders.insert(folder.empty() ? "." : folder.native());
  }
  list.output_folders.assign(folders.begin(), folders.end());
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
  RequireOwnOutputs(list);
  SettleExisting(options.existing, list);
  ListOutputFolders(list);
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
