#include "pipeline/settle_outputs.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ops/error.h"
#include "pipeline/display_name.h"
#include "pipeline/file_status.h"

namespace tessera {
namespace {

using std::filesystem::path;
using Status = std::optional<struct stat>;

// A file and what the system says of it.
struct Candidate {
  ListedFile file;
  Status input, output;
  bool Exists() const { return output.has_value(); }
  bool InPlace() const { return input && output && IdOf(*input) == IdOf(*output); }
};
using Candidates = std::vector<Candidate>;

Status StatusOfInput(const path& input) {
  if (input != "-") return StatusOf(input);
  struct stat status = {};
  if (::fstat(STDIN_FILENO, &status) != 0) return std::nullopt;
  return status;
}

// Inputs are looked at only if there are outputs that they can be compared with.
Candidates LookAt(std::vector<ListedFile> files) {
  Candidates candidates;
  candidates.reserve(files.size());
  bool any_exists = false;
  for (ListedFile& file : files) {
    const Status output = file.output == "-" ? std::nullopt : StatusOf(file.output);
    any_exists |= output.has_value();
    candidates.push_back({.file = std::move(file), .input = {}, .output = output});
  }
  if (any_exists)
    for (Candidate& candidate : candidates) candidate.input = StatusOfInput(candidate.file.input);
  return candidates;
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

// Inputs that are the outputs of others: what an earlier run has written beside its inputs.
class Results {
 public:
  // Has to outlive this.
  explicit Results(const Candidates& candidates) {
    for (const Candidate& candidate : candidates)
      if (candidate.Exists() && !candidate.InPlace())
        made_by_.emplace(IdOf(*candidate.output), &candidate);
  }

  // The candidate that the input is the output of, or nullptr.
  const Candidate* MakerOf(const Candidate& candidate) const {
    if (!candidate.input) return nullptr;
    const auto found = made_by_.find(IdOf(*candidate.input));
    return found == made_by_.end() ? nullptr : found->second;
  }

 private:
  std::map<FileId, const Candidate*> made_by_;
};

// Returns how many.
std::size_t LeaveOutResults(Candidates& candidates) {
  Candidates own;
  own.reserve(candidates.size());
  const Results results(candidates);
  for (const Candidate& candidate : candidates)
    if (results.MakerOf(candidate) == nullptr) own.push_back(candidate);
  const std::size_t left_out = candidates.size() - own.size();
  candidates = std::move(own);
  return left_out;
}

void RequireNoResults(const Candidates& candidates) {
  const Results results(candidates);
  for (const Candidate& candidate : candidates) {
    const Candidate* maker = results.MakerOf(candidate);
    if (maker == nullptr) continue;
    throw Error(StrCat(DisplayName(candidate.file.input),
                       " is an input, and would be overwritten with the result of ",
                       DisplayName(maker->file.input),
                       "; if an earlier run has made it, remove it, or leave it out with "
                       "--skip-existing"));
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
    return OfFolder(file.parent_path()) / file.filename();
  }
  const path& OfFolder(const path& folder) {
    const auto [known, is_new] = folders_.try_emplace(folder.native());
    std::error_code error;
    if (is_new) known->second = std::filesystem::weakly_canonical(folder, error);
    return known->second;
  }

 private:
  std::unordered_map<std::string, path> folders_;
};

// What was named twice is done once; two inputs for one output are an Error.
void RequireOwnOutputs(Candidates& candidates, RealPaths& real_paths) {
  std::unordered_map<std::string, const Candidate*> by_output;
  Candidates unique;
  unique.reserve(candidates.size());  // by_output points into it
  for (Candidate& candidate : candidates) {
    const ListedFile& file = candidate.file;
    const auto [known, is_new] = by_output.try_emplace(real_paths.Of(file.output).native());
    if (is_new) {
      known->second = &unique.emplace_back(std::move(candidate));
      continue;
    }
    const Candidate& other = *known->second;
    if (other.file.input.native() == file.input.native()) continue;
    const std::string output = DisplayName(file.output);
    std::string way_out;
    if (candidate.InPlace() != other.InPlace())
      way_out = StrCat("; if an earlier run has made ", output, ", --skip-existing leaves it out");
    throw Error(StrCat(DisplayName(other.file.input), " and ", DisplayName(file.input),
                       " would both become ", output, way_out));
  }
  candidates = std::move(unique);
}

// Names that are to be a file and a folder are an Error.
void RequireFilesOrFolders(const Candidates& candidates, RealPaths& real_paths) {
  std::unordered_map<std::string, const ListedFile*> in_folder;  // one of those below it
  for (const Candidate& candidate : candidates) {
    const ListedFile& file = candidate.file;
    path folder = real_paths.OfFolder(file.output.parent_path());
    while (folder.has_relative_path() && in_folder.try_emplace(folder.native(), &file).second)
      folder = folder.parent_path();
  }
  for (const Candidate& candidate : candidates) {
    const ListedFile& file = candidate.file;
    const auto found = in_folder.find(real_paths.Of(file.output).native());
    if (found == in_folder.end()) continue;
    const ListedFile& below = *found->second;
    throw Error(StrCat(DisplayName(file.input), " would become ", DisplayName(file.output),
                       ", which has to be a folder for ", DisplayName(below.output),
                       ", the result of ", DisplayName(below.input)));
  }
}

void ListOutputFolders(const Candidates& candidates, FileList& list) {
  std::set<std::string> folders;
  for (const Candidate& candidate : candidates) {
    if (candidate.file.output == "-") continue;
    const path folder = candidate.file.output.parent_path();
    folders.insert(folder.empty() ? "." : folder.native());
  }
  list.output_folders.assign(folders.begin(), folders.end());
}

void RequireLeaveToReplace(const Candidates& candidates, Existing existing) {
  std::vector<path> there, in_place;
  for (const Candidate& candidate : candidates) {
    if (candidate.Exists()) there.push_back(candidate.file.output);
    if (candidate.InPlace()) in_place.push_back(candidate.file.output);
  }
  Require(in_place.empty() || existing == Existing::kOverwrite, FirstOf(in_place),
          ": would replace its own input; --overwrite allows that");
  Require(there.empty() || existing != Existing::kStop, FirstOf(there),
          there.size() == 1 ? " exists" : " exist",
          " already; --skip-existing keeps what is there, --overwrite replaces it");
}

bool IsUpToDate(const Candidate& candidate) {
  const Status &output = candidate.output, &input = candidate.input;
  if (!output || !S_ISREG(output->st_mode) || !input) return false;
  if (!S_ISREG(input->st_mode)) return true;  // a pipe has no date
  const timespec &made = output->st_mtim, &changed = input->st_mtim;
  return std::pair(made.tv_sec, made.tv_nsec) >= std::pair(changed.tv_sec, changed.tv_nsec);
}

}  // namespace

void SettleOutputs(Existing existing, FileList& list) {
  Candidates candidates = LookAt(std::move(list.files));
  if (existing == Existing::kSkip) list.results = LeaveOutResults(candidates);
  RealPaths real_paths;
  RequireOwnOutputs(candidates, real_paths);
  RequireFilesOrFolders(candidates, real_paths);
  ListOutputFolders(candidates, list);
  RequireLeaveToReplace(candidates, existing);
  RequireNoResults(candidates);
  list.files.clear();
  for (Candidate& candidate : candidates) {
    if (existing == Existing::kSkip && IsUpToDate(candidate)) {
      ++list.up_to_date;
    } else {
      list.files.push_back(std::move(candidate.file));
    }
  }
}

}  // namespace tessera
