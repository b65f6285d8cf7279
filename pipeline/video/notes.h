// What went wrong and was got over, to be shown to people.
#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

// One thread may take notes while another adds some.
class Notes {
 public:
  void Add(std::string note) {
    const std::lock_guard lock(mutex_);
    notes_.push_back(std::move(note));
  }
  // Those that came since the last call, in their order.
  std::vector<std::string> Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(notes_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> notes_;
};

}  // namespace tessera
