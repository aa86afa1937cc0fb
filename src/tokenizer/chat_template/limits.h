// What one chat template may use. Templates come with models and with requests: both are hostile.
#pragma once

#include <cstddef>
#include <cstdint>

namespace minisgl {

struct TemplateLimits {
  size_t max_source_bytes = size_t{1} << 20;  // the template's own text
  int64_t max_steps = 20'000'000;  // evaluated nodes, plus one per 64 bytes of text touched
  size_t max_output_bytes = size_t{64} << 20;   // rendered text, and any single string on the way
  size_t max_memory_bytes = size_t{512} << 20;  // strings alive plus everything in lists and dicts
  int max_depth = 600;          // nested evaluation, calls of macros included: under 1 MiB of stack
  int64_t max_range = 100'000;  // items of one range()
};

}  // namespace minisgl
