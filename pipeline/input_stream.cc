#include "pipeline/input_stream.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "ops/error.h"
#include "pipeline/require_system.h"

namespace tessera {
namespace {

// A stream with bytes that have been read from it already.
struct Replay {
  std::string head;
  std::size_t position = 0;  // in head
  FilePtr rest;
};

ssize_t ReadReplay(void* cookie, char* to, std::size_t size) {
  auto& replay = *static_cast<Replay*>(cookie);
  if (const std::size_t left = replay.head.size() - replay.position; left > 0) {
    size = std::min(size, left);
    std::memcpy(to, replay.head.data() + replay.position, size);
    replay.position += size;
    return static_cast<ssize_t>(size);
  }
  const std::size_t count = std::fread(to, 1, size, replay.rest.get());
  if (count == 0 && std::ferror(replay.rest.get())) return -1;
  return static_cast<ssize_t>(count);
}

struct Memory {
  std::string bytes;
  std::size_t position = 0;
};

ssize_t ReadMemory(void* cookie, char* to, std::size_t size) {
  auto& memory = *static_cast<Memory*>(cookie);
  size = std::min(size, memory.bytes.size() - memory.position);
  std::memcpy(to, memory.bytes.data() + memory.position, size);
  memory.position += size;
  return static_cast<ssize_t>(size);
}

int SeekMemory(void* cookie, off64_t* offset, int whence) {
  auto& memory = *static_cast<Memory*>(cookie);
  const auto size = static_cast<off64_t>(memory.bytes.size());
  const off64_t from = whence == SEEK_SET   ? 0
                       : whence == SEEK_CUR ? static_cast<off64_t>(memory.position)
                                            : size;
  if (*offset < -from || *offset > size - from) {
    errno = EINVAL;
    return -1;
  }
  *offset += from;
  memory.position = static_cast<std::size_t>(*offset);
  return 0;
}

template <typename T>
int Delete(void* cookie) {
  delete static_cast<T*>(cookie);
  return 0;
}

// glibc's own kind of stream; it owns `content`.
template <typename T>
FilePtr Open(std::unique_ptr<T> content, cookie_read_function_t* read,
             cookie_seek_function_t* seek) {
  FilePtr file(::fopencookie(content.get(), "rb",
                             {.read = read, .write = nullptr, .seek = seek, .close = Delete<T>}));
  if (file == nullptr) throw std::bad_alloc();
  (void)content.release();
  return file;
}

}  // namespace

FilePtr OpenInput(const std::filesystem::path& path) {
  if (path != "-") {
    FilePtr file(std::fopen(path.c_str(), "rb"));
    RequireSystem(file != nullptr, "cannot open");
    return file;
  }
  const int descriptor = ::dup(STDIN_FILENO);
  RequireSystem(descriptor >= 0, "cannot open");
  FilePtr file(::fdopen(descriptor, "rb"));
  if (file == nullptr) {
    ::close(descriptor);
    throw std::bad_alloc();
  }
  return file;
}

bool IsSeekable(std::FILE* file) {
  struct stat status = {};
  const int descriptor = ::fileno(file);
  // Streams in memory have no descriptor.
  if (descriptor < 0) return ::fseeko(file, 0, SEEK_SET) == 0;
  const bool appends = (::fcntl(descriptor, F_GETFL) & O_APPEND) != 0;
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && !appends &&
         ::ftello(file) == 0;
}

std::string Peek(FilePtr& file, std::size_t size) {
  const bool seekable = IsSeekable(file.get());
  std::string head(size, '\0');
  head.resize(std::fread(head.data(), 1, size, file.get()));
  RequireSystem(!std::ferror(file.get()), "cannot read");
  if (seekable) {
    RequireSystem(::fseeko(file.get(), 0, SEEK_SET) == 0, "cannot read");
  } else {
    auto replay = std::make_unique<Replay>();
    replay->head = head;
    replay->rest = std::move(file);
    file = Open(std::move(replay), ReadReplay, nullptr);
  }
  return head;
}

std::string ReadToEnd(std::FILE* file, std::size_t limit) {
  constexpr std::size_t kStep = std::size_t{1} << 18;
  std::string bytes;
  std::size_t size = 0;
  do {
    bytes.resize(size + std::max(kStep, size / 2));
    size += std::fread(bytes.data() + size, 1, bytes.size() - size, file);
    Require(size <= limit, "the file has more than ", limit, " bytes");
  } while (size == bytes.size());
  RequireSystem(!std::ferror(file), "cannot read");
  bytes.resize(size);
  bytes.shrink_to_fit();
  return bytes;
}

FilePtr MakeSeekable(FilePtr file, std::size_t limit) {
  if (IsSeekable(file.get())) return file;
  auto memory = std::make_unique<Memory>();
  memory->bytes = ReadToEnd(file.get(), limit);
  return Open(std::move(memory), ReadMemory, SeekMemory);
}

RepeatableStandardInput::RepeatableStandardInput() {
  struct stat status = {};
  RequireSystem(::fstat(STDIN_FILENO, &status) == 0, "cannot read");
  if (S_ISREG(status.st_mode)) {
    start_ = ::lseek(STDIN_FILENO, 0, SEEK_CUR);
    RequireSystem(start_ >= 0, "cannot read");
    return;
  }
  const int memory = ::memfd_create("input", MFD_CLOEXEC);
  RequireSystem(memory >= 0, "cannot be held in memory");
  const FilePtr copy(::fdopen(memory, "wb"));
  if (copy == nullptr) {
    ::close(memory);
    throw std::bad_alloc();
  }
  const FilePtr input = OpenInput("-");
  std::vector<char> block(std::size_t{1} << 18);
  std::size_t size = 0;
  while ((size = std::fread(block.data(), 1, block.size(), input.get())) > 0) {
    RequireSystem(std::fwrite(block.data(), 1, size, copy.get()) == size,
                  "cannot be held in memory");
  }
  RequireSystem(!std::ferror(input.get()), "cannot read");
  RequireSystem(std::fflush(copy.get()) == 0, "cannot be held in memory");
  RequireSystem(::dup2(memory, STDIN_FILENO) == STDIN_FILENO, "cannot be held in memory");
  Rewind();
}

void RepeatableStandardInput::Rewind() const {
  RequireSystem(::lseek(STDIN_FILENO, start_, SEEK_SET) == start_, "cannot read again");
}

std::size_t FileSize(std::FILE* file) {
  RequireSystem(::fseeko(file, 0, SEEK_END) == 0, "cannot read");
  const off_t size = ::ftello(file);
  RequireSystem(size >= 0 && ::fseeko(file, 0, SEEK_SET) == 0, "cannot read");
  return static_cast<std::size_t>(size);
}

}  // namespace tessera
