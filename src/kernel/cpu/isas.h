// The instruction sets that were compiled in, and the one to use.
#pragma once

#include <span>
#include <string>

#include "kernel/cpu/table.h"

namespace minisgl::cpu {

// Tables that this machine can run, best first.
std::span<const Table* const> runnable_tables();

// "auto": MINISGL_ISA if that is set, else the best. Errors: kInvalidArgument with the list.
const Table& find_table(const std::string& isa);

}  // namespace minisgl::cpu
