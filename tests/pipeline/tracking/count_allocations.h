// Whether code allocates.
#pragma once

namespace tessera {

// Calls of operator new in this program so far, on all threads.
int NumAllocations();

}  // namespace tessera
