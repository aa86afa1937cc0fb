// What the process may really use of the machine: cores, memory, instruction sets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace minisgl {

// Limits that control groups (v1 and v2) put on this process; every level up to the root counts.
struct CgroupLimits {
  std::optional<double> cores;  // CPU time a second
  std::optional<int64_t> memory_bytes;
};
// `root` stands before /proc and /sys: "" on a real machine, a folder in tests.
CgroupLimits cgroup_limits(const std::string& root = "");

// Cores in this process's affinity mask, no more than the cgroup's quota (rounded), at least 1.
int usable_cores();
// The machine's memory, or the cgroup's limit if that is lower.
int64_t usable_memory_bytes();

// Instruction sets that the processor has and the operating system saves the registers of.
// All false on other architectures than x86-64.
struct CpuFeatures {
  bool x86_64_v2 = false;  // SSE4.2, SSSE3, POPCNT
  bool avx2 = false;       // with FMA and F16C: x86-64-v3
  bool avx512 = false;     // F, BW, CD, DQ, VL: x86-64-v4
  bool avx512_vnni = false;
  bool avx512_bf16 = false;
};
CpuFeatures cpu_features();
// "AMD EPYC 9B14", as the system names it; "unknown" where it does not.
std::string cpu_model_name();

}  // namespace minisgl
