// A line on a terminal that shows how far the work is.
#pragma once

#include <chrono>
#include <string>

namespace tessera {

// On stderr, which has to be a terminal.
class StatusLine {
 public:
  // Whether the line that is shown is old enough for another one, a few times a second.
  bool Due() const { return std::chrono::steady_clock::now() >= next_; }
  // In place of the one before; cut to the terminal's width.
  void Show(std::string text);
  // To be called before anything else is printed.
  void Clear();

 private:
  bool shown_ = false;
  std::chrono::steady_clock::time_point next_ = {};
};

}  // namespace tessera
