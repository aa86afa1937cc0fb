// Why a request is not computed right now.
#pragma once

#include <cstdint>
#include <string_view>

namespace minisgl {

enum class WaitReason : uint8_t {
  kNone,          // it is computed
  kRow,           // every row of the page table is taken
  kPages,         // the pages it is expected to need are not free, or were taken from it
  kBudget,        // this step's token budget is used
  kSharedPrefix,  // another request is computing the same prefix
  kBehind,        // another request goes first (arrival, priority) and does not fit
  kArrived,       // submitted since the last step was planned
};

constexpr std::string_view wait_reason_name(WaitReason reason) {
  constexpr std::string_view kNames[] = {"",
                                         "no free row (--max-running-requests)",
                                         "no free pages",
                                         "the step's token budget is used",
                                         "another request is computing the same prefix",
                                         "behind another request that does not fit",
                                         "submitted since the last step"};
  return kNames[static_cast<size_t>(reason)];
}

}  // namespace minisgl
