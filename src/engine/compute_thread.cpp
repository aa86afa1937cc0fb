#include "engine/compute_thread.h"

#include <utility>

#include "utils/error.h"

namespace minisgl {

ComputeThread::ComputeThread(std::function<void(Step&)> run)
    : run_(std::move(run)), thread_([this] { work(); }) {}

ComputeThread::~ComputeThread() {
  stop_.store(true);
  launched_.fetch_add(1);
  launched_.notify_one();
  thread_.join();
}

void ComputeThread::launch(Step& step) {
  const uint32_t number = launched_.load(std::memory_order_relaxed);
  MINISGL_CHECK(number - finished_.load() < kCapacity, "more than {} steps launched", kCapacity);
  step.error = nullptr;
  step.ticket = number;
  ring_[number % kCapacity] = &step;
  launched_.store(number + 1, std::memory_order_release);
  launched_.notify_one();
}

void ComputeThread::wait(Step& step) {
  // Wraps around after 2^32 steps; the difference does not.
  for (uint32_t finished = finished_.load(std::memory_order_acquire);
       static_cast<int32_t>(finished - step.ticket) <= 0;
       finished = finished_.load(std::memory_order_acquire)) {
    finished_.wait(finished, std::memory_order_acquire);
  }
  if (step.error) std::rethrow_exception(std::exchange(step.error, nullptr));
}

void ComputeThread::work() {
  for (uint32_t number = 0;; ++number) {
    launched_.wait(number, std::memory_order_acquire);
    // The destructor's increment is the one without a step.
    if (stop_.load() && launched_.load() == number + 1) return;
    Step& step = *ring_[number % kCapacity];
    step.began = std::chrono::steady_clock::now();
    try {
      run_(step);
    } catch (...) {
      step.error = std::current_exception();
    }
    step.ended = std::chrono::steady_clock::now();
    finished_.store(number + 1, std::memory_order_release);
    finished_.notify_one();
  }
}

}  // namespace minisgl
