#include "utils/thread_pool.h"

#include <system_error>

#include "utils/error.h"

namespace minisgl {
namespace {

constexpr uint32_t kOpen = 1u << 31;
// About 50 microseconds: longer than the serial work between two operations of a step, shorter
// than what an idle engine should burn.
constexpr int kSpins = 1500;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns the first value of `word` for which `done` holds.
template <class Done>
uint32_t spin_then_sleep(const std::atomic<uint32_t>& word, Done done) {
  for (int i = 0; i < kSpins; ++i) {
    const uint32_t value = word.load(std::memory_order_acquire);
    if (done(value)) return value;
    pause();
  }
  while (true) {
    const uint32_t value = word.load(std::memory_order_acquire);
    if (done(value)) return value;
    word.wait(value, std::memory_order_acquire);
  }
}

}  // namespace

ThreadPool::ThreadPool(int num_threads) : task_([](int64_t) {}) {
  MINISGL_CHECK(num_threads >= 1, "a pool of {} threads", num_threads);
  workers_.reserve(static_cast<size_t>(num_threads) - 1);
  try {
    for (int i = 1; i < num_threads; ++i) workers_.emplace_back([this] { work(); });
  } catch (const std::system_error& e) {
    stop();
    throw_error(ErrorKind::kResource, "cannot start thread {} of {}: {}; use fewer --threads",
                workers_.size() + 2, num_threads, e.what());
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  stop_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::parallel_for(int64_t num_tasks, TaskRef task) {
  if (num_tasks <= 0) return;
  if (num_tasks == 1 || workers_.empty()) {
    for (int64_t i = 0; i < num_tasks; ++i) task(i);
    return;
  }
  MINISGL_CHECK(!busy_.exchange(true, std::memory_order_acquire),
                "ThreadPool::parallel_for is called while another call runs");
  task_ = task;
  num_tasks_ = num_tasks;
  next_task_.store(0, std::memory_order_relaxed);
  members_.store(kOpen, std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();

  run_tasks();

  members_.fetch_and(~kOpen, std::memory_order_acq_rel);
  spin_then_sleep(members_, [](uint32_t members) { return members == 0; });
  busy_.store(false, std::memory_order_release);
}

void ThreadPool::run_tasks() noexcept {
  while (true) {
    const int64_t i = next_task_.fetch_add(1, std::memory_order_relaxed);
    if (i >= num_tasks_) return;
    task_(i);
  }
}

bool ThreadPool::try_join() {
  uint32_t members = members_.load(std::memory_order_relaxed);
  while (members & kOpen) {
    if (members_.compare_exchange_weak(members, members + 1, std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

void ThreadPool::leave() {
  // The last one out of a closed job wakes the caller.
  if (members_.fetch_sub(1, std::memory_order_acq_rel) == 1) members_.notify_all();
}

void ThreadPool::work() {
  uint32_t seen = 0;
  while (true) {
    seen = spin_then_sleep(epoch_, [seen](uint32_t epoch) { return epoch != seen; });
    if (stop_.load(std::memory_order_relaxed)) return;
    if (try_join()) {
      run_tasks();
      leave();
    }
  }
}

}  // namespace minisgl
