#include "engine/memory_plan.h"

#include <algorithm>

#include "utils/error.h"
#include "utils/math.h"
#include "utils/progress.h"

namespace minisgl {
namespace {

constexpr int64_t kCpuPoolBytes = int64_t{2} << 30;

std::string size_text(int64_t bytes) { return format_bytes(static_cast<uint64_t>(bytes)); }

}  // namespace

MemoryPlan plan_memory(const EngineConfig& config, const KVPoolConfig& pool, int64_t max_seq_len,
                       int64_t usable_bytes, int64_t used_bytes, bool is_cpu) {
  const int64_t page_bytes = KVPool::bytes_per_page(pool);
  const int64_t pages_a_sequence = div_ceil(max_seq_len, config.page_size);
  MemoryPlan plan;
  const auto budget =
      static_cast<int64_t>(config.memory_ratio * static_cast<double>(usable_bytes)) - used_bytes;
  if (config.num_pages > 0) {
    plan.num_pages = config.num_pages;
  } else {
    const int64_t room = is_cpu ? std::min(budget, kCpuPoolBytes) : budget;
    const int64_t useful = config.max_running_requests * pages_a_sequence;
    plan.num_pages = std::clamp<int64_t>(room / page_bytes - 1, 0, useful);  // - 1: the dummy page
  }
  plan.pool_bytes = (plan.num_pages + 1) * page_bytes;
  if (plan.num_pages < 1 || plan.pool_bytes > usable_bytes) {
    throw_error(ErrorKind::kResource,
                "no room for the KV pool: {} usable, {} in use, memory ratio {}, {} pages of {} "
                "each; use a smaller model, raise --memory-ratio or lower --num-pages",
                size_text(usable_bytes), size_text(used_bytes), config.memory_ratio, plan.num_pages,
                size_text(page_bytes));
  }
  plan.explanation = fmt::format(
      "KV pool: {} pages of {} token{}, {} ({} a token); {} usable, {} in use by weights",
      plan.num_pages, config.page_size, config.page_size == 1 ? "" : "s",
      size_text(plan.pool_bytes), size_text(page_bytes / config.page_size), size_text(usable_bytes),
      size_text(used_bytes));
  return plan;
}

}  // namespace minisgl
