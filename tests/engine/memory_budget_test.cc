#include "engine/memory_budget.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <string>

#include "engine/cgroup.h"
#include "simd/aligned_buffer.h"
#include "tests/temporary_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMega = std::size_t{1} << 20;
constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();

// A system of files that the test writes.
class System {
 public:
  System& File(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    WriteBytes(folder_ / name, text);
    return *this;
  }
  std::size_t Memory() const { return AvailableMemory(folder_.path()); }

 private:
  TemporaryFolder folder_;
};

TEST(AvailableMemory, ThisSystemHasSome) {
  EXPECT_GT(AvailableMemory(), kMega);
  EXPECT_LT(AvailableMemory(), kUnknown);
}

TEST(AvailableMemory, IsUnlimitedWhereNothingIsKnown) { EXPECT_EQ(System().Memory(), kUnknown); }

TEST(AvailableMemory, IsWhatTheSystemSays) {
  System system;
  system.File("proc/meminfo", "MemTotal:  8000 kB\nMemFree:  10 kB\nMemAvailable:   5000 kB\n");
  EXPECT_EQ(system.Memory(), 5000u * 1024);
}

TEST(AvailableMemory, IsWhatTheGroupLeavesAndItsCacheCounts) {
  System system;
  system.File("proc/meminfo", "MemAvailable: 5000 kB\n").File("proc/self/cgroup", "0::/a/b\n");
  const std::string group = "sys/fs/cgroup/a/b/";
  system.File(group + "memory.max", "1000000\n").File(group + "memory.current", "700000\n");
  EXPECT_EQ(system.Memory(), 300000u);
  system.File(group + "memory.stat", "anon 600000\nfile 100000\ninactive_file 80000\n");
  EXPECT_EQ(system.Memory(), 380000u);
  // More cache than use, as the counters lag behind each other.
  system.File(group + "memory.stat", "inactive_file 900000\n");
  EXPECT_EQ(system.Memory(), 1000000u);
  system.File(group + "memory.stat", "").File(group + "memory.current", "1000001\n");
  EXPECT_EQ(system.Memory(), 0u);
  system.File(group + "memory.max", "max\n");
  EXPECT_EQ(system.Memory(), 5000u * 1024);
  // Above this the processes of the group are slowed down.
  system.File(group + "memory.high", "1200001\n");
  EXPECT_EQ(system.Memory(), 200000u);
}

TEST(AvailableMemory, GroupsAboveTheProcessLimitItToo) {
  System system;
  system.File("proc/self/cgroup", "0::/a/b/c\n");
  system.File("sys/fs/cgroup/a/b/c/memory.max", "9000\n");
  system.File("sys/fs/cgroup/a/b/memory.max", "max\n");
  system.File("sys/fs/cgroup/a/memory.max", "5000\n");
  system.File("sys/fs/cgroup/a/memory.current", "1000\n");
  EXPECT_EQ(system.Memory(), 4000u);
  // In a container its own group is the root, whatever the path of the process.
  system.File("sys/fs/cgroup/memory.max", "3000\n");
  EXPECT_EQ(system.Memory(), 3000u);
}

TEST(AvailableMemory, ReadsGroupsOfVersion1) {
  System system;
  system.File("proc/self/cgroup",
              "12:cpu,cpuacct:/other\n5:memory:/a\n1:name=systemd:/x\nnot a group\n");
  system.File("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  const std::string group = "sys/fs/cgroup/memory/a/";
  system.File(group + "memory.limit_in_bytes", "10000\n");
  system.File(group + "memory.usage_in_bytes", "4000\n");
  system.File(group + "memory.stat", "inactive_file 1\ntotal_inactive_file 1500\n");
  system.File("sys/fs/cgroup/memory/other/memory.limit_in_bytes", "5\n");
  EXPECT_EQ(system.Memory(), 7500u);
}

TEST(AvailableMemory, BrokenFilesSayNothing) {
  System system;
  system.File("proc/meminfo", "MemAvailable: many kB\n").File("proc/self/cgroup", "0::\n0:\n\n");
  system.File("sys/fs/cgroup/memory.max", "\n").File("sys/fs/cgroup/memory.stat", "inactive_file");
  EXPECT_EQ(system.Memory(), kUnknown);
}

TEST(CgroupFolders, GoFromTheProcessToTheRoot) {
  TemporaryFolder root;
  fs::create_directories(root / "proc/self");
  WriteBytes(root / "proc/self/cgroup", "4:cpu,cpuacct:/a\n3:memory:/\n0::/b/c\n");
  std::string cpu, memory;
  for (const CgroupFolder& folder : CgroupFolders("cpu", root.path())) {
    cpu += fs::relative(folder.path, root.path()).string() + (folder.v2 ? " 2;" : " 1;");
  }
  for (const CgroupFolder& folder : CgroupFolders("memory", root.path())) {
    memory += fs::relative(folder.path, root.path()).string() + (folder.v2 ? " 2;" : " 1;");
  }
  const std::string v2 = "sys/fs/cgroup/b/c 2;sys/fs/cgroup/b 2;sys/fs/cgroup 2;";
  EXPECT_EQ(cpu, "sys/fs/cgroup/cpu/a 1;sys/fs/cgroup/cpu 1;" + v2);
  EXPECT_EQ(memory, "sys/fs/cgroup/memory 1;" + v2);
}

// Available memory in a process that may take `room` bytes more than it has of what `resource`
// limits, then after it has taken `taken` of them.
std::array<std::size_t, 2> MemoryWithLimit(int resource, const char* key, std::size_t room,
                                           std::size_t taken) {
  std::array<std::size_t, 2> memory{};
  int ends[2];
  if (pipe(ends) != 0) return memory;
  const pid_t child = fork();
  if (child == 0) {
    const auto used = static_cast<rlim_t>(1024 * ReadNumber("/proc/self/status", key).value_or(0));
    const rlimit limit{used + room, used + room};
    if (setrlimit(resource, &limit) != 0) _exit(1);
    memory[0] = AvailableMemory();
    const AlignedBuffer block(taken);  // Clang leaves out what the standard library would allocate
    memory[1] = AvailableMemory();
    const bool written = write(ends[1], memory.data(), sizeof(memory)) == sizeof(memory);
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  if (read(ends[0], memory.data(), sizeof(memory)) != sizeof(memory)) memory = {};
  close(ends[0]);
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return memory;
}

TEST(AvailableMemory, LimitsOfTheProcessCount) {
  constexpr std::size_t kRoom = 64 * kMega, kTaken = 32 * kMega, kSlack = 4 * kMega;
  ASSERT_GT(AvailableMemory(), kRoom);
  const struct {
    int resource;
    const char* key;
  } limits[] = {{RLIMIT_AS, "VmSize"}, {RLIMIT_DATA, "VmData"}};
  for (const auto& [resource, key] : limits) {
    SCOPED_TRACE(key);
    const auto [before, after] = MemoryWithLimit(resource, key, kRoom, kTaken);
    EXPECT_LE(before, kRoom);
    EXPECT_GE(before, kRoom - kSlack);
    EXPECT_LE(after, kRoom - kTaken);
    EXPECT_GE(after, kRoom - kTaken - kSlack);
  }
}

}  // namespace
}  // namespace tessera
