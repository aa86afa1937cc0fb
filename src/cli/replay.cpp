// minisgl replay: plays a recording again, bit for bit.
#include "scheduler/replay.h"

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/loading.h"
#include "llm/options.h"
#include "llm/recording.h"
#include "utils/error.h"

namespace minisgl {
namespace {

struct ReplayOptions {
  std::string file;
  std::string model;
};

void run_replay(const ReplayOptions& replay_options) {
  std::ifstream recording(replay_options.file);
  if (!recording) {
    throw_error(ErrorKind::kNotFound, "{}: no such file, or not readable", replay_options.file);
  }
  LLMOptions options = options_from_setup(read_recording_setup(recording));
  if (!replay_options.model.empty()) options.model = replay_options.model;
  const std::string path = resolve_with_progress(options.model, options.model_source);
  Engine engine(engine_config(options, path));
  fmt::print("{}\n", engine.description());
  Scheduler scheduler(engine, scheduler_config(options));
  const ReplayResult result = replay(recording, scheduler);
  if (const auto& difference = result.difference) {
    throw_error(ErrorKind::kInternal,
                "line {} of {} comes out differently, after {} equal turns and {} tokens\n"
                "recorded: {}\nreplayed: {}",
                difference->line, replay_options.file, result.num_turns - 1, result.num_tokens,
                difference->recorded, difference->replayed);
  }
  fmt::print("{} turns and {} tokens, all as recorded\n", result.num_turns, result.num_tokens);
}

}  // namespace

void add_replay_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("replay", "Play a recording of --record again and compare every step");
  auto options = std::make_shared<ReplayOptions>();
  command->add_option("file", options->file, "What --record has written")->required();
  command->add_option("-m,--model", options->model, "Where the model is now, if it has moved");
  command->callback([options] { run_replay(*options); });
}

}  // namespace minisgl
