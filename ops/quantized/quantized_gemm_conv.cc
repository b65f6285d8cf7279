#include "ops/quantized/quantized_conv.h"

namespace tessera {
// In work: quantized_conv.cc does not choose it yet.
std::unique_ptr<Kernel> MakeQuantizedGemmConv(const QuantizedConvParams&,
                                              const QuantizedConvConstants&, Layout, PackCache&) {
  return nullptr;
}
}  // namespace tessera
