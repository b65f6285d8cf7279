// The memory that this process may use.
#pragma once

#include <cstddef>
#include <filesystem>

namespace tessera {

// Bytes that this process may still take without swapping or being killed, now: the least of what
// the system has available (MemAvailable of /proc/meminfo), what its control groups leave to it
// (version 1 or 2, those above its own too; the page cache that they would give up counts as free),
// and what its limits on address space and data leave (RLIMIT_AS, RLIMIT_DATA). The largest number
// if nothing of this is known. /proc and /sys are those in `root`.
std::size_t AvailableMemory(const std::filesystem::path& root = "/");

}  // namespace tessera
