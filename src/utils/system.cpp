#include "utils/system.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace minisgl {
namespace {

// The first line of a file; empty if there is none.
std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<int64_t> parse_number(const std::string& text) {
  std::istringstream in(text);
  int64_t value = 0;
  if (!(in >> value)) return std::nullopt;  // "max", or nothing
  return value;
}

template <class T>
void lower(std::optional<T>& limit, T value) {
  limit = limit ? std::min(*limit, value) : value;
}

// The group's folder and all above it, below `mount`. A container sees its own group as the root,
// while /proc may name the host's path: folders that are not there are skipped by the readers.
std::vector<std::string> levels(const std::string& mount, std::string group) {
  std::vector<std::string> folders;
  while (!group.empty() && group != "/") {
    folders.push_back(mount + group);
    group.erase(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
  folders.push_back(mount);
  return folders;
}

void read_v2(CgroupLimits& limits, const std::string& mount, const std::string& group) {
  for (const std::string& folder : levels(mount, group)) {
    std::istringstream cpu(first_line(folder + "/cpu.max"));  // "150000 100000" or "max 100000"
    double quota = 0;
    double period = 0;
    if (cpu >> quota >> period && period > 0) lower(limits.cores, quota / period);
    if (const auto bytes = parse_number(first_line(folder + "/memory.max"))) {
      lower(limits.memory_bytes, *bytes);
    }
  }
}

void read_v1_cpu(CgroupLimits& limits, const std::string& mount, const std::string& group) {
  for (const std::string& folder : levels(mount, group)) {
    const auto quota = parse_number(first_line(folder + "/cpu.cfs_quota_us"));
    const auto period = parse_number(first_line(folder + "/cpu.cfs_period_us"));
    if (quota && period && *quota > 0 && *period > 0) {
      lower(limits.cores, static_cast<double>(*quota) / static_cast<double>(*period));
    }
  }
}

void read_v1_memory(CgroupLimits& limits, const std::string& mount, const std::string& group) {
  for (const std::string& folder : levels(mount, group)) {
    // "No limit" is a huge number here, which the machine's own memory undercuts.
    if (const auto bytes = parse_number(first_line(folder + "/memory.limit_in_bytes"))) {
      lower(limits.memory_bytes, *bytes);
    }
  }
}

int affinity_cores() {
  // The kernel may know more CPUs than a plain cpu_set_t holds.
  for (int cpus = 1024; cpus <= 1 << 20; cpus *= 4) {
    cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(cpus));
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(cpus));
    CPU_ZERO_S(bytes, set);
    const bool ok = sched_getaffinity(0, bytes, set) == 0;
    const int count = ok ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (ok && count > 0) return count;
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

CgroupLimits cgroup_limits(const std::string& root) {
  CgroupLimits limits;
  const std::string mounts = root + "/sys/fs/cgroup";
  std::ifstream groups(root + "/proc/self/cgroup");
  // Lines "id:controllers:path"; v2 is "0::path".
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      read_v2(limits, mounts, group);
      read_v2(limits, mounts + "/unified", group);
      continue;
    }
    std::istringstream names(controllers);
    for (std::string name; std::getline(names, name, ',');) {
      if (name == "cpu") {
        read_v1_cpu(limits, mounts + "/" + controllers, group);
        read_v1_cpu(limits, mounts + "/cpu", group);
      } else if (name == "memory") {
        read_v1_memory(limits, mounts + "/" + controllers, group);
      }
    }
  }
  return limits;
}

int usable_cores() {
  const int cores = affinity_cores();
  const CgroupLimits limits = cgroup_limits();
  if (!limits.cores) return cores;
  return std::clamp(static_cast<int>(std::lround(std::min(*limits.cores, 1e6))), 1, cores);
}

int64_t usable_memory_bytes() {
  const int64_t machine =
      static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<int64_t>(sysconf(_SC_PAGESIZE));
  const CgroupLimits limits = cgroup_limits();
  return limits.memory_bytes ? std::min(machine, *limits.memory_bytes) : machine;
}

#if defined(__x86_64__)

CpuFeatures cpu_features() {
  CpuFeatures features;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return features;
  features.x86_64_v2 = (c & bit_SSSE3) && (c & bit_SSE4_1) && (c & bit_SSE4_2) && (c & bit_POPCNT);
  const bool fma_f16c = (c & bit_FMA) && (c & bit_F16C) && (c & bit_AVX);
  if (!(c & bit_OSXSAVE)) return features;

  // XCR0: which registers the operating system saves (1 SSE, 2 AVX, 5-7 AVX-512).
  unsigned low = 0;
  unsigned high = 0;
  asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  const bool saves_ymm = (low & 0x6) == 0x6;
  const bool saves_zmm = (low & 0xe6) == 0xe6;

  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return features;
  const unsigned needed = bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL;
  features.avx2 = saves_ymm && fma_f16c && (b & bit_AVX2) && (b & bit_BMI2);
  features.avx512 = features.avx2 && saves_zmm && (b & needed) == needed;
  features.avx512_vnni = features.avx512 && (c & bit_AVX512VNNI);
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) {
    constexpr unsigned kAvx512Bf16 = 1u << 5;
    features.avx512_bf16 = features.avx512 && (a & kAvx512Bf16);
  }
  return features;
}

#else

CpuFeatures cpu_features() { return {}; }

#endif

std::string cpu_model_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace minisgl
