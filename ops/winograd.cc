// No Winograd kernel yet: the direct kernels take everything.
#include "ops/conv.h"

namespace tessera {

std::unique_ptr<Kernel> MakeWinogradConv(const ConvParams&, const ConvConstants&, PackCache&) {
  return nullptr;
}

}  // namespace tessera
