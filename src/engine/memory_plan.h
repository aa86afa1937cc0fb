// How many pages of KV fit, and the sentence that explains it.
#pragma once

#include <cstdint>
#include <string>

#include "engine/config.h"
#include "kvcache/kv_pool.h"

namespace minisgl {

struct MemoryPlan {
  int64_t num_pages = 0;
  int64_t pool_bytes = 0;
  std::string explanation;  // "KV pool: 34952 pages of 1 token, 2.0 GiB of 21.6 GiB …"
};

// usable_bytes: memory that the process may have in all; used_bytes: weights and what else is
// resident. On the CPU the pool is 2 GiB at most unless num_pages asks for more; it is touched
// lazily. Never more pages than max_running_requests sequences of max_seq_len can use.
// Errors: kResource when not even one sequence of a page fits, with the numbers.
MemoryPlan plan_memory(const EngineConfig& config, const KVPoolConfig& pool, int64_t max_seq_len,
                       int64_t usable_bytes, int64_t used_bytes, bool is_cpu);

}  // namespace minisgl
