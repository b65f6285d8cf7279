// The weights of an ncnn network (.bin): one array after the other, each a multiple of four bytes.
#pragma once

#include <cstdint>
#include <istream>
#include <string>

#include "ops/tensor.h"

namespace tessera {

class NcnnWeights {
 public:
  // `in` holds `size` bytes and has to outlive the reader; `file` is for messages.
  NcnnWeights(std::istream& in, std::uint64_t size, std::string file)
      : in_(in), remaining_(size), file_(std::move(file)) {}

  // The next array, which says itself how it is stored: float32, float16 and indices into a table
  // of 256 floats become a float32 tensor, int8 an int8 tensor. Throws Error, before anything
  // is allocated, if the file is too short.
  Tensor Tagged(const Shape& shape);
  // The next array, of plain float32.
  Tensor Floats(const Shape& shape);

  std::uint64_t remaining() const { return remaining_; }
  const std::string& file() const { return file_; }

 private:
  // Throws Error if fewer than `bytes` are left.
  void Need(std::uint64_t bytes) const;
  void Read(void* to, std::uint64_t bytes);

  std::istream& in_;
  std::uint64_t remaining_;
  std::string file_;
};

}  // namespace tessera
