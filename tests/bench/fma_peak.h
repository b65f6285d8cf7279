// What the core can do at most, to compare kernels with.
#pragma once

namespace tessera {

// Billions of floating-point operations per second (a fused multiply-add is two) in independent
// vector multiply-adds on the target in use. Measured at the first call.
double FmaPeakGflops();

}  // namespace tessera
