// The network as the tiles see it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/session.h"
#include "ops/parallel.h"
#include "ops/tensor.h"

namespace tessera {

struct ModelTraits {
  int channels = 3;  // 3: RGB; 1: one colour plane at a time
  // Scale and alignment hold always; how far an output pixel looks only if `local`. Where it is
  // not, it may depend on the whole input.
  ReceptiveField field;
  bool local = true;
  // The only input size that the network accepts.
  struct Size {
    std::int64_t width, height;
  };
  std::optional<Size> fixed_input = std::nullopt;
};

class TileModel {
 public:
  virtual ~TileModel() = default;
  virtual const std::string& name() const = 0;  // for messages
  virtual const ModelTraits& traits() const = 0;
  // `input`: float32 [1, channels, h, w] in [0, 1]. outputs[0] becomes float32
  // [1, channels, h * scale, w * scale]; the vector is reused from run to run. Safe from several
  // threads, each with its own vector. Throws Error where the network refuses the size.
  virtual void Run(const TensorView& input, std::vector<Tensor>& outputs, Parallel& parallel) = 0;
  // Memory that a run takes, inputs and outputs included; an estimate.
  virtual std::size_t RunBytes(std::int64_t width, std::int64_t height) const = 0;
};

}  // namespace tessera
