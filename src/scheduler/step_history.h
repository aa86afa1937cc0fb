// The last steps and the totals since the start.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "scheduler/snapshot.h"

namespace minisgl {

// A ring: allocates nothing after construction. Thread: scheduler.
class StepHistory {
 public:
  static constexpr size_t kLength = 64;

  StepSnapshot& begin_step() {
    StepSnapshot& step = ring_[num_steps_ % kLength];
    step = {.number = num_steps_++};
    return step;
  }
  // A step of the last kLength.
  StepSnapshot& at(uint64_t number) { return ring_[number % kLength]; }
  void append_to(std::vector<StepSnapshot>& steps) const {
    const uint64_t first = num_steps_ > kLength ? num_steps_ - kLength : 0;
    for (uint64_t number = first; number < num_steps_; ++number) {
      steps.push_back(ring_[number % kLength]);
    }
  }

 private:
  std::array<StepSnapshot, kLength> ring_;
  uint64_t num_steps_ = 0;
};

}  // namespace minisgl
