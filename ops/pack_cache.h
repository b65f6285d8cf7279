// Weights reordered for a kernel, made once and shared by every plan of a session.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "ops/tensor.h"

namespace tessera {

class PackCache {
 public:
  // The packed form `kind` (which names kernel and block sizes) of `weights`; calls make() -> T
  // the first time. Thread-safe. Keeps `weights` alive, since its address is the key.
  template <typename T, typename Make>
  std::shared_ptr<const T> Get(const std::shared_ptr<const Tensor>& weights, std::string_view kind,
                               Make&& make) {
    std::lock_guard lock(mutex_);
    Entry& entry = entries_[{weights.get(), std::string(kind)}];
    if (!entry.packed) {
      entry.weights = weights;
      auto packed = std::make_shared<const T>(make());
      entry.bytes = SizeInBytes(*packed);
      entry.packed = std::move(packed);
    }
    return std::static_pointer_cast<const T>(entry.packed);
  }

  // Of all packed forms so far.
  std::size_t Bytes() const {
    std::lock_guard lock(mutex_);
    std::size_t sum = 0;
    for (const auto& [key, entry] : entries_) sum += entry.bytes;
    return sum;
  }

 private:
  struct Entry {
    std::shared_ptr<const Tensor> weights;
    std::shared_ptr<const void> packed;
    std::size_t bytes = 0;
  };
  static std::size_t SizeInBytes(const Tensor& packed) { return packed.bytes(); }
  static std::size_t SizeInBytes(const AlignedBuffer& packed) { return packed.size(); }

  mutable std::mutex mutex_;
  std::map<std::pair<const Tensor*, std::string>, Entry> entries_;
};

}  // namespace tessera
