#include "pipeline/quantization/model_cache.h"

#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "ops/error.h"
#include "pipeline/atomic_file.h"
#include "pipeline/display_name.h"
#include "pipeline/input_stream.h"
#include "pipeline/quantization/sha256.h"
#include "pipeline/require_system.h"

namespace tessera {
namespace {

// What follows the model in its file: a field of ModelProto that ONNX does not have (number 1000,
// length-delimited, 32 bytes), which readers of protocol buffers pass over, with the hash of all
// that is before it.
constexpr std::string_view kSealTag("\xC2\x3E\x20", 3);
constexpr std::size_t kHashBytes = 32, kSealBytes = kSealTag.size() + kHashBytes;

constexpr std::size_t kMaxBytes = std::size_t{1} << 31;  // of an ONNX file

}  // namespace

std::optional<ModelCache> ModelCache::OfUser() {
  namespace fs = std::filesystem;
  // The specification wants relative paths ignored.
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && fs::path(cache).is_absolute())
    return ModelCache(fs::path(cache) / "tessera" / "int8");
  const char* home = std::getenv("HOME");
  if (home != nullptr && fs::path(home).is_absolute())
    return ModelCache(fs::path(home) / ".cache" / "tessera" / "int8");
  return std::nullopt;
}

std::filesystem::path ModelCache::File(std::string_view key) const {
  return folder_ / (Sha256Hex(key) + ".onnx");
}

std::optional<std::string> ModelCache::Find(std::string_view key) const {
  const std::filesystem::path path = File(key);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  try {
    const FilePtr file = OpenInput(path);
    std::string bytes = ReadToEnd(file.get(), kMaxBytes);
    if (bytes.size() < kSealBytes) return std::nullopt;
    const std::string seal = bytes.substr(bytes.size() - kSealBytes);
    bytes.resize(bytes.size() - kSealBytes);
    if (seal != std::string(kSealTag) + Sha256(bytes)) return std::nullopt;
    return bytes;
  } catch (const Error&) {  // it is made again
    return std::nullopt;
  }
}

void ModelCache::Put(std::string_view key, const std::string& onnx) const {
  const std::filesystem::path path = File(key);
  NamingFile(path, [&] {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    Require(!error, "its folder cannot be created: ", error.message());
    AtomicFile::RemoveStale(folder_);
    AtomicFile file(path);
    const std::string bytes = onnx + std::string(kSealTag) + Sha256(onnx);
    RequireSystem(std::fwrite(bytes.data(), 1, bytes.size(), file.stream()) == bytes.size(),
                  "cannot write");
    file.Commit();
  });
}

}  // namespace tessera
