#include "pipeline/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <system_error>

#include "ops/error.h"
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

// The length does not depend on the target's name: that may be as long as the file system allows.
std::string RandomName() {
  constexpr char kLetters[] = "0123456789abcdefghijklmnopqrstuv";
  std::random_device random;
  std::string name = ".tessera-";
  for (int i = 0; i < 10; ++i) name += kLetters[random() % 32];
  return name + ".tmp";
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

}  // namespace

void AtomicFile::CheckTarget(const std::filesystem::path& target) {
  const Target resolved = Resolve(target);
  const std::filesystem::path folder = resolved.path.parent_path();
  RequireSystem(::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0,
                "cannot create a file in its folder");
}

AtomicFile::AtomicFile(const std::filesystem::path& target) {
  const Target resolved = Resolve(target);
  target_ = resolved.path;
  OpenNames& open_names = TheOpenNames();
  std::lock_guard lock(open_names.mutex);
  int fd = -1;
  do {
    temporary_ = target_.parent_path() / RandomName();
    fd = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EEXIST);
  RequireSystem(fd >= 0, "cannot create a file in its folder");
  // Best effort: some file systems know no permissions.
  if (resolved.replaced_mode) (void)!::fchmod(fd, *resolved.replaced_mode);
  stream_ = ::fdopen(fd, "wb");
  if (stream_ == nullptr) {
    ::close(fd);
    ::unlink(temporary_.c_str());
    throw std::bad_alloc();
  }
  open_names.names.insert(temporary_);
}

AtomicFile::~AtomicFile() {
  if (stream_ != nullptr) std::fclose(stream_);
  OpenNames& open_names = TheOpenNames();
  std::lock_guard lock(open_names.mutex);
  if (open_names.names.erase(temporary_) != 0) ::unlink(temporary_.c_str());
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

  OpenNames& open_names = TheOpenNames();
  std::lock_guard lock(open_names.mutex);
  RequireSystem(::rename(temporary_.c_str(), target_.c_str()) == 0, "cannot write");
  open_names.names.erase(temporary_);
}

void AtomicFile::AbandonAll() {
  OpenNames& open_names = TheOpenNames();
  open_names.mutex.lock();  // for ever
  for (const std::filesystem::path& name : open_names.names) ::unlink(name.c_str());
}

}  // namespace tessera
