// A small network for pictures that is worth quantising.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/engine/test_model.h"

namespace tessera {

// Two 3x3 convolutions, the first with 8 channels and a Relu, to a picture twice as large: near to
// repeated pixels, with some noise. `side`: of the only input that it declares, -1: any.
inline std::string SmallUpscaler(std::int64_t side = -1, float noise = 0.02F) {
  constexpr std::int64_t kFeatures = 8, kTaps = 9, kMiddle = 4;
  TestModel m;
  m.Input("x", {1, 3, side, side}).Output("y");
  std::vector<float> w1 = TestModel::NoiseValues(kFeatures * 3 * kTaps, 1, noise);
  std::vector<float> w2 = TestModel::NoiseValues(12 * kFeatures * kTaps, 2, noise);
  const auto at = [](std::int64_t out, std::int64_t in, std::int64_t inputs) {
    return static_cast<std::size_t>((out * inputs + in) * kTaps + kMiddle);
  };
  for (std::int64_t c = 0; c < 3; ++c) {
    w1[at(c, c, 3)] = 1;
    for (std::int64_t k = 0; k < 4; ++k) w2[at(4 * c + k, c, kFeatures)] = 1;
  }
  m.Floats("w1", {kFeatures, 3, 3, 3}, w1).Floats("w2", {12, kFeatures, 3, 3}, w2);
  const std::vector<std::int64_t> pads = {1, 1, 1, 1};
  m.Node("Conv", {"x", "w1"}, {"c1"}, {{"pads", pads}})
      .Node("Relu", {"c1"}, {"r1"})
      .Node("Conv", {"r1", "w2"}, {"c2"}, {{"pads", pads}})
      .Node("DepthToSpace", {"c2"}, {"y"},
            {{"blocksize", std::int64_t{2}}, {"mode", std::string("CRD")}});
  return m.Bytes();
}

}  // namespace tessera
