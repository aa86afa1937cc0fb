// How the kernels split their work: by rows if there are enough of them, with a private slot of
// scratch for tasks that need one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "utils/math.h"
#include "utils/thread_pool.h"

namespace minisgl::cpu {

class Team {
 public:
  explicit Team(ThreadPool& threads) : threads_(threads) {}
  int size() const { return threads_.size(); }
  ThreadPool& threads() const { return threads_; }

  // work(row) for rows [0, rows), each about `cost` simple element operations. Little work stays
  // on the calling thread: waking the others takes longer.
  template <class Work>
  void for_rows(int64_t rows, int64_t cost, Work work) const {
    if (rows <= 1 || rows * cost < kWorthSharing) {
      for (int64_t r = 0; r < rows; ++r) work(r);
      return;
    }
    const int64_t most = div_ceil(rows, 4 * size());
    const int64_t per_task =
        std::min(most, div_ceil(kWorthSharing / 4, std::max<int64_t>(1, cost)));
    threads_.parallel_for(div_ceil(rows, per_task), [&](int64_t task) {
      const int64_t end = std::min(rows, (task + 1) * per_task);
      for (int64_t r = task * per_task; r < end; ++r) work(r);
    });
  }

  // work(task, slot): tasks that run at the same time have different slots in [0, size()).
  template <class Work>
  void for_tasks_with_slot(int64_t tasks, Work work) const {
    std::atomic<int64_t> next{0};
    threads_.parallel_for(std::min<int64_t>(tasks, size()), [&](int64_t slot) {
      while (true) {
        const int64_t task = next.fetch_add(1, std::memory_order_relaxed);
        if (task >= tasks) return;
        work(task, slot);
      }
    });
  }

 private:
  static constexpr int64_t kWorthSharing = 16384;
  ThreadPool& threads_;
};

}  // namespace minisgl::cpu
