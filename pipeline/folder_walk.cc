#include "pipeline/folder_walk.h"

#include <fcntl.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "pipeline/picture_name.h"

namespace tessera {
namespace {

using std::filesystem::directory_entry;
using std::filesystem::path;

// What systems and programs put beside pictures. Our own temporary files begin with a dot, too.
bool IsHidden(const path& name) {
  return name.native().starts_with('.') || ::strcasecmp(name.c_str(), "Thumbs.db") == 0 ||
         ::strcasecmp(name.c_str(), "desktop.ini") == 0;
}

bool HoldsPicture(const path& file) {
  // A pipe that took the file's place must not be waited for.
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  std::array<std::byte, 16> head;
  const ssize_t size = ::read(fd, head.data(), head.size());
  ::close(fd);
  return size > 0 && StartsAsPicture(std::span(head.data(), static_cast<std::size_t>(size)));
}

class Walk {
 public:
  Walk(bool recursive, const std::optional<FileId>& output, FileList& list)
      : recursive_(recursive), output_(output), list_(list) {}

  // `relative`: to the folder where the walk began.
  void Read(const path& folder, const path& relative) {
    if (const auto status = StatusOf(folder)) {
      const FileId id = IdOf(*status);
      if (!above_.empty() && id == output_) return;
      if (std::find(above_.begin(), above_.end(), id) != above_.end()) {
        ++list_.loops;
        return;
      }
      above_.push_back(id);
      for (const directory_entry& entry : SortedEntries(folder))
        Take(entry, relative / entry.path().filename());
      above_.pop_back();
    } else {
      SortedEntries(folder);  // tells why not
    }
  }

  std::vector<path> TakeFound() { return std::move(found_); }

 private:
  // Closed before the folders within are opened: depth costs no file descriptors.
  std::vector<directory_entry> SortedEntries(const path& folder) {
    std::vector<directory_entry> entries;
    std::error_code error;
    for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
         it.increment(error))
      entries.push_back(*it);
    if (error) list_.unread.push_back({.path = folder, .reason = error.message()});
    std::sort(entries.begin(), entries.end(),
              [](const auto& a, const auto& b) { return a.path().native() < b.path().native(); });
    return entries;
  }

  // The system tells kinds along with names: only links are looked at.
  void Take(const directory_entry& entry, path relative) {
    std::error_code ignored;
    if (IsHidden(relative.filename())) {
      ++list_.hidden;
    } else if (entry.is_directory(ignored)) {
      if (recursive_) {
        Read(entry.path(), relative);
      } else {
        ++list_.subfolders;
      }
    } else if (!entry.is_other(ignored) &&  // to open a pipe would wait for its writer
               (HasPictureExtension(relative) ||
                (entry.is_regular_file(ignored) && HoldsPicture(entry.path())))) {
      found_.push_back(std::move(relative));
    } else {
      ++list_.not_pictures;
    }
  }

  bool recursive_;
  std::optional<FileId> output_;
  FileList& list_;
  std::vector<FileId> above_;  // the folder that is read and those that it is in
  std::vector<path> found_;
};

}  // namespace

std::vector<path> FindPictures(const path& folder, bool recursive,
                               const std::optional<FileId>& output, FileList& list) {
  Walk walk(recursive, output, list);
  walk.Read(folder, {});
  return walk.TakeFound();
}

}  // namespace tessera
