// The CPU time that this process may use.
#pragma once

namespace tessera {

// CPUs that the affinity mask and the cgroup quota (v1 or v2, rounded up) leave to this process;
// at least 1.
int AvailableCpus();

}  // namespace tessera
