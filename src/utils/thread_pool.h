// parallel_for over the cores that the process really has.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace minisgl {

// Looks at a callable `void(int64_t)` for as long as a call lasts: no allocation, never owns.
class TaskRef {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, TaskRef>)
      TaskRef(F&& f)  // NOLINT: a callable is passed as what it is
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, int64_t task) {
          (*static_cast<std::remove_reference_t<F>*>(object))(task);
        }) {}
  void operator()(int64_t task) const { call_(object_, task); }

 private:
  void* object_;
  void (*call_)(void*, int64_t);
};

// A fixed team of threads; the caller of parallel_for() is one of them. Workers spin for some tens
// of microseconds after a job, then sleep. A job never waits for a worker that has not woken up:
// whoever is awake takes the tasks. One thread at a time calls; calls do not nest.
class ThreadPool {
 public:
  // num_threads >= 1, the caller included. Errors: kResource when threads cannot be started.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // Runs task(0) … task(num_tasks - 1), each exactly once, in any order on any of the threads, and
  // returns when all are done; what they wrote is visible then. An exception must not leave a task:
  // it ends the process. Does not allocate.
  void parallel_for(int64_t num_tasks, TaskRef task);

 private:
  void stop();
  void work();
  void run_tasks() noexcept;  // so that an exception ends the process on any of the threads
  bool try_join();
  void leave();

  // The job; written only while no worker is in it.
  TaskRef task_;
  int64_t num_tasks_ = 0;
  alignas(64) std::atomic<int64_t> next_task_{0};
  // kOpen while a job takes workers in, plus the number of workers inside.
  alignas(64) std::atomic<uint32_t> members_{0};
  // Rises with each job: what workers sleep on.
  alignas(64) std::atomic<uint32_t> epoch_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> busy_{false};
  std::vector<std::thread> workers_;
};

}  // namespace minisgl
