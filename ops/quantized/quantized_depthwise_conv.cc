#include "ops/quantized/quantized_conv.h"

namespace tessera {
// In work: quantized_conv.cc does not choose it yet.
std::unique_ptr<Kernel> MakeQuantizedDepthwiseConv(const QuantizedConvParams&,
                                                   const QuantizedConvConstants&, PackCache&) {
  return nullptr;
}
}  // namespace tessera
