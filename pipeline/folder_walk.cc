#include "pipeline/folder_walk.h"

#include <fcntl.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <set>
#include <span>
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

// What is there and cannot be read may be one: when its turn comes, it fails by its name.
bool MayHoldPicture(const path& file) {
  // A pipe that took the file's place must not be waited for.
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return errno != ENOENT && errno != ENOTDIR && errno != ELOOP;
  std::array<std::byte, 16> head;
  const ssize_t size = ::read(fd, head.data(), head.size());
  ::close(fd);
  return size < 0 || StartsAsPicture(std::span(head.data(), static_cast<std::size_t>(size)));
}

class Walk {
 public:
  Walk(const path& top, bool recursive, const std::optional<FileId>& output, FileList& list)
      : top_(top), recursive_(recursive), output_(output), list_(list) {}

  std::vector<path> Find() {
    Read({});
    // Only now is known which folders have been read by their own names. More links may be found.
    for (; !links_.empty(); links_.pop_front()) {
      through_link_ = true;
      Read(links_.front());
    }
    std::sort(found_.begin(), found_.end());
    return std::move(found_);
  }

 private:
  // `relative`: to the top, which is read in any case.
  void Read(const path& relative) {
    const path folder = relative.empty() ? top_ : top_ / relative;
    if (const auto status = StatusOf(folder)) {
      const FileId id = IdOf(*status);
      if (!relative.empty() && id == output_) return;
      // Own names cannot loop, and file systems exist that give folders the same number.
      if (!read_.insert(id).second && through_link_) {
        ++list_.loops;
        return;
      }
    }
    for (const directory_entry& entry : SortedEntries(folder))
      Take(entry, relative / entry.path().filename());
  }

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
      if (!recursive_) {
        ++list_.subfolders;
      } else if (entry.is_symlink(ignored)) {
        links_.push_back(std::move(relative));
      } else {
        Read(relative);
      }
    } else if (!entry.is_other(ignored) &&  // to open a pipe would wait for its writer
               (HasPictureExtension(relative) || MayHoldPicture(entry.path()))) {
      found_.push_back(std::move(relative));
    } else {
      ++list_.not_pictures;
    }
  }

  const path& top_;
  bool recursive_;
  std::optional<FileId> output_;
  FileList& list_;
  std::set<FileId> read_;
  std::deque<path> links_;     // to folders, not yet followed
  bool through_link_ = false;  // what is read now was reached through one
  std::vector<path> found_;
};

}  // namespace

std::vector<path> FindPictures(const path& folder, bool recursive,
                               const std::optional<FileId>& output, FileList& list) {
  return Walk(folder, recursive, output, list).Find();
}

}  // namespace tessera
