// The program's commands: each adds itself to the command line and returns what runs it.
#pragma once

#include <CLI/CLI.hpp>

namespace minisgl {

// Each registers a subcommand of `app`; when it is chosen, its callback runs it.
void add_run_command(CLI::App& app);
void add_chat_command(CLI::App& app);
void add_pull_command(CLI::App& app);
void add_inspect_command(CLI::App& app);
void add_tokenize_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_verify_command(CLI::App& app);
void add_replay_command(CLI::App& app);

}  // namespace minisgl
