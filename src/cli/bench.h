// The benchmarks of `minisgl bench`: each registers a subcommand of it.
#pragma once

#include <CLI/CLI.hpp>

namespace minisgl {

void add_bench_scheduler_command(CLI::App& bench);

}  // namespace minisgl
