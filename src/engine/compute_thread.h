// The CPU's "stream": one thread that runs steps in the order of their launch, while the scheduler
// prepares the next and handles the last.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "engine/step.h"

namespace minisgl {

// launch() and wait() are called by one thread. A ring of two steps and wake-ups; no lock.
class ComputeThread {
 public:
  explicit ComputeThread(std::function<void(Step&)> run);
  ~ComputeThread();  // after the steps that were launched
  ComputeThread(const ComputeThread&) = delete;
  ComputeThread& operator=(const ComputeThread&) = delete;

  void launch(Step& step);
  // Errors: what running the step threw.
  void wait(Step& step);

 private:
  static constexpr uint32_t kCapacity = 2;
  void work();

  std::function<void(Step&)> run_;
  std::array<Step*, kCapacity> ring_{};
  std::atomic<uint32_t> launched_{0};  // steps since the start; the thread sleeps on it
  std::atomic<uint32_t> finished_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace minisgl
