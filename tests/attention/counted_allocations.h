// Counts what operator new hands out in this binary.
#pragma once

#include <cstdint>

namespace minisgl::testing {

int64_t num_allocations();

}  // namespace minisgl::testing
