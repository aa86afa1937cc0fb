// minisgl bench: what things cost on this machine.
#include "cli/bench.h"

#include "cli/commands.h"

namespace minisgl {

void add_bench_command(CLI::App& app) {
  CLI::App* bench = app.add_subcommand("bench", "Measure on this machine");
  bench->require_subcommand(1);
  add_bench_scheduler_command(*bench);
}

}  // namespace minisgl
