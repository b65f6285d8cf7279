#include "pipeline/atomic_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include "ops/error.h"
#include "pipeline/display_name.h"
#include "pipeline/require_system.h"

namespace tessera {
namespace {

// Temporary names that exist. Names are made, renamed and removed under its lock, so that
// AbandonAll leaves none behind.
struct OpenNames {
  std::mutex mutex;
  std::set<std::filesystem::path> names;
};
OpenNames& TheOpenNames() {
  static auto* open_names = new OpenNames;  // outlives every thread
  return *open_names;
}

constexpr std::string_view kPrefix = ".tessera-", kSuffix = ".tmp";
constexpr std::string_view kLetters = "0123456789abcdefghijklmnopqrstuv";
constexpr std::size_t kNumLetters = 10;

// The length does not depend on the target's name: that may be as long as the file system allows.
std::string RandomName() {
  std::random_device random;
  std::string name(kPrefix);
  for (std::size_t i = 0; i < kNumLetters; ++i) name += kLetters[random() % kLetters.size()];
  return name.append(kSuffix);
}

bool IsTemporaryName(std::string_view name) {
  return name.size() == kPrefix.size() + kNumLetters + kSuffix.size() &&
         name.starts_with(kPrefix) && name.ends_with(kSuffix) &&
         name.substr(kPrefix.size(), kNumLetters).find_first_not_of(kLetters) == name.npos;
}

// Creates a file of a new name in `folder` with its lock, which keeps RemoveStale of other programs
// from it. Returns its descriptor; throws Error.
int CreateLocked(const std::filesystem::path& folder, std::filesystem::path& name) {
  while (true) {
    name = folder / RandomName();
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST) continue;
    RequireSystem(fd >= 0, "cannot create a file in its folder");
    // Between the creation and the lock, others may have taken the file for stale. Then they hold
    // the lock and remove it in a moment, or have removed it.
    const bool is_taken = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!is_taken && ::access(name.c_str(), F_OK) == 0) return fd;
    ::close(fd);
    ::unlink(name.c_str());
  }
}

bool RemoveIfStale(const std::filesystem::path& temporary) {
  // Opened for writing where that is allowed: locks of network file systems want it.
  constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  int fd = ::open(temporary.c_str(), O_RDWR | kFlags);
  if (fd < 0) fd = ::open(temporary.c_str(), O_RDONLY | kFlags);
  if (fd < 0) return false;
  // Names are never used twice: if its owner has just completed the file, there is none to remove.
  const bool removed = ::flock(fd, LOCK_EX | LOCK_NB) == 0 && ::unlink(temporary.c_str()) == 0;
  ::close(fd);
  return removed;
}

std::filesystem::path OrCurrent(const std::filesystem::path& folder) {
  return folder.empty() ? "." : folder;
}

// Puts the first file in the second one's place unless that is taken. Returns whether it did, with
// the system's reason in errno.
bool RenameToNew(const char* from, const char* to) {
  if (::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  // The file system or the system does not know how to.
  if (::link(from, to) == 0) {
    ::unlink(from);
    return true;
  }
  if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS) return false;
  // It has no second names for a file either: others have the moment between the two calls.
  struct stat taken = {};
  if (::lstat(to, &taken) == 0) {
    errno = EEXIST;
    return false;
  }
  return ::rename(from, to) == 0;
}

// Best effort: not every file system can.
void SyncFolder(const std::filesystem::path& folder) {
  const int fd = ::open(OrCurrent(folder).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  (void)::fsync(fd);
  ::close(fd);
}

// Links there lead to files that programs have open (/dev/stdout, /dev/fd/3): it is these that are
// meant, and not what has their names.
bool IsInProc(const std::filesystem::path& path) {
  struct statfs system = {};
  return ::statfs(OrCurrent(path.parent_path()).c_str(), &system) == 0 &&
         system.f_type == PROC_SUPER_MAGIC;
}

// What a path leads to.
struct Target {
  std::filesystem::path path;
  std::optional<mode_t> replaced_mode;  // permissions of the file that is there
};

Target Resolve(const std::filesystem::path& path) {
  std::error_code error;
  // Links are followed here, one by one: weakly_canonical stops at one that leads to no file yet.
  std::filesystem::path file = path;
  for (int links = 0; std::filesystem::is_symlink(file, error); ++links) {
    Require(links < 40, "cannot write: too many levels of symbolic links");
    Require(!IsInProc(file), "cannot write: is no file but what a program has open");
    file = file.parent_path() / std::filesystem::read_symlink(file, error);
  }
  Target target{.path = std::filesystem::weakly_canonical(file, error), .replaced_mode = {}};
  Require(!error, "cannot write: ", error.message());
  struct stat old = {};
  if (::stat(target.path.c_str(), &old) != 0) return target;
  Require(!S_ISDIR(old.st_mode), "cannot write: is a folder");
  Require(S_ISREG(old.st_mode), "cannot write: exists and is no ordinary file");
  target.replaced_mode = old.st_mode & 07777;
  return target;
}

constexpr const char* kExistsAlready = "exists already; --overwrite replaces it";

// Throws Error unless a file can be created in `folder`, or with `makes_folder` the folder first.
void CheckFolder(const std::filesystem::path& folder, bool makes_folder) {
  std::filesystem::path there = folder;
  struct stat status = {};
  while (::stat(there.empty() ? "." : there.c_str(), &status) != 0) {
    RequireSystem(errno == ENOENT || errno == ENOTDIR, "cannot create a file in its folder");
    std::error_code ignored;
    Require(!std::filesystem::is_symlink(there, ignored), "its folder is not there, and ",
            DisplayName(there), " is a link to nowhere");
    there = there.parent_path();
  }
  const char* wish = there == folder ? "cannot create a file in its folder"
                                     : "its folder is not there, and cannot be created";
  Require(S_ISDIR(status.st_mode), wish, ": ", DisplayName(there), " is no folder");
  RequireSystem(::access(there.empty() ? "." : there.c_str(), W_OK | X_OK) == 0, wish);
  Require(there == folder || makes_folder, "its folder is not there");
}

}  // namespace

void AtomicFile::CheckTarget(const std::filesystem::path& target, bool makes_folder) {
  CheckFolder(Resolve(target).path.parent_path(), makes_folder);
}

void AtomicFile::CheckOverwrite(const std::filesystem::path& target, bool overwrite) {
  Require(overwrite || !Resolve(target).replaced_mode, kExistsAlready);
}

AtomicFile::AtomicFile(const std::filesystem::path& target, bool overwrite)
    : overwrite_(overwrite) {
  const Target resolved = Resolve(target);
  Require(overwrite || !resolved.replaced_mode, kExistsAlready);
  target_ = resolved.path;
  OpenNames& open_names = TheOpenNames();
  std::lock_guard lock(open_names.mutex);
  lock_fd_ = CreateLocked(target_.parent_path(), temporary_);
  // Best effort: some file systems know no permissions.
  if (resolved.replaced_mode) (void)!::fchmod(lock_fd_, *resolved.replaced_mode);
  // The lock belongs to both descriptors and outlives the stream.
  const int fd = ::fcntl(lock_fd_, F_DUPFD_CLOEXEC, 0);
  if (fd >= 0) stream_ = ::fdopen(fd, "wb");
  if (stream_ == nullptr) {
    if (fd >= 0) ::close(fd);
    ::unlink(temporary_.c_str());
    ::close(lock_fd_);
    throw Error("cannot write: too little memory or too many open files");
  }
  open_names.names.insert(temporary_);
}

AtomicFile::~AtomicFile() {
  if (stream_ != nullptr) std::fclose(stream_);
  OpenNames& open_names = TheOpenNames();
  std::lock_guard lock(open_names.mutex);
  if (open_names.names.erase(temporary_) != 0) ::unlink(temporary_.c_str());
  ::close(lock_fd_);
}

void AtomicFile::Commit() {
  // A failed write of earlier is remembered by the stream, its errno is not.
  Require(!std::ferror(stream_), "cannot write: the disk took only a part");
  RequireSystem(std::fflush(stream_) == 0, "cannot write");
  // Pipes and some network file systems have no fsync.
  RequireSystem(::fsync(::fileno(stream_)) == 0 || errno == EINVAL || errno == ENOSYS,
                "cannot write");
  const int closed = std::fclose(stream_);
  stream_ = nullptr;
  RequireSystem(closed == 0, "cannot write");

  {
    OpenNames& open_names = TheOpenNames();
    std::lock_guard lock(open_names.mutex);
    const bool renamed = overwrite_ ? ::rename(temporary_.c_str(), target_.c_str()) == 0
                                    : RenameToNew(temporary_.c_str(), target_.c_str());
    Require(renamed || overwrite_ || errno != EEXIST, kExistsAlready);
    RequireSystem(renamed, "cannot write");
    open_names.names.erase(temporary_);
  }
  SyncFolder(target_.parent_path());
}

void AtomicFile::AbandonAll() {
  OpenNames& open_names = TheOpenNames();
  open_names.mutex.lock();  // for ever
  for (const std::filesystem::path& name : open_names.names) ::unlink(name.c_str());
}

std::size_t AtomicFile::RemoveStale(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> temporaries;
  std::error_code error;
  for (std::filesystem::directory_iterator it(OrCurrent(folder), error), end; !error && it != end;
       it.increment(error))
    if (IsTemporaryName(it->path().filename().native())) temporaries.push_back(it->path());
  return static_cast<std::size_t>(
      std::count_if(temporaries.begin(), temporaries.end(), RemoveIfStale));
}

}  // namespace tessera
