#include "engine/memory_plan.h"

#include <algorithm>

#include "utils/error.h"
#include "utils/math.h"

namespace minisgl {
namespace {

constexpr int64_t kCpuPoolBytes = int64_t{2} << 30;

}  // namespace

std::string format_bytes(int64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* next : kUnits) {
    if (value < 1024.0) break;
    value /= 1024.0;
    unit = next;
  }
  return fmt::format("{:.1f} {}", value, unit);
}

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
    plan.num_pages = std::min(room / page_bytes - 1, useful);  // - 1: the dummy page
  }
  plan.pool_bytes = (plan.num_pages + 1) * page_bytes;
  if (plan.num_pages < 1 || plan.pool_bytes > usable_bytes) {
    throw_error(ErrorKind::kResource,
                "no room for the KV pool: {} usable, {} in use, memory ratio {}, {} pages of {} "
                "each; use a smaller model, raise --memory-ratio or lower --num-pages",
                format_bytes(usable_bytes), format_bytes(used_bytes), config.memory_ratio,
                plan.num_pages, format_bytes(page_bytes));
  }
  plan.explanation = fmt::format(
      "KV pool: {} pages of {} token{}, {} ({} a token); {} usable, {} in use by weights",
      plan.num_pages, config.page_size, config.page_size == 1 ? "" : "s",
      format_bytes(plan.pool_bytes), format_bytes(page_bytes / config.page_size),
      format_bytes(usable_bytes), format_bytes(used_bytes));
  return plan;
}

}  // namespace minisgl
