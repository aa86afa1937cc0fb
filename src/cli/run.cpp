// minisgl run: answers a prompt and leaves.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/loading.h"
#include "cli/options.h"
#include "cli/run_batch.h"
#include "utils/error.h"
#include "utils/files.h"
#include "utils/json.h"

namespace minisgl {
namespace {

using SteadyClock = std::chrono::steady_clock;

double seconds_between(SteadyClock::time_point begin, SteadyClock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

struct RunOptions {
  LLMOptions llm;
  SamplingFlags sampling;
  std::string prompt;
  std::string prompt_file;
  std::string jsonl;
  std::string output = "-";
  bool chat = false;
  bool print_ids = false;
  bool quiet = false;
};

// More than any context holds; an endless stream must not take all memory.
constexpr size_t kMaxPromptBytes = size_t{1} << 28;

std::string read_standard_input() {
  std::string text;
  char buffer[1 << 16];
  while (std::cin.read(buffer, sizeof buffer), std::cin.gcount() > 0) {
    text.append(buffer, static_cast<size_t>(std::cin.gcount()));
    if (text.size() > kMaxPromptBytes) {
      throw_error(ErrorKind::kInvalidArgument,
                  "standard input is larger than the {} bytes expected of a prompt",
                  kMaxPromptBytes);
    }
  }
  return text;
}

std::string read_prompt(const RunOptions& options) {
  if (!options.prompt.empty()) return options.prompt;
  if (!options.prompt_file.empty()) return read_file(options.prompt_file, kMaxPromptBytes);
  if (::isatty(STDIN_FILENO) != 0) {
    std::fprintf(stderr, "Type the prompt; Ctrl-D on a line of its own ends it.\n");
  }
  std::string text = read_standard_input();
  if (text.empty()) {
    throw_error(ErrorKind::kInvalidArgument,
                "no prompt: give one with -p TEXT, -f FILE or on standard input");
  }
  return text;
}

Json logprob_json(const LLM& llm, const TokenLogprob& entry) {
  return {{"token", entry.token}, {"text", llm.decode({entry.token})}, {"logprob", entry.logprob}};
}

// A line a token: {"of":"answer","token":5,"text":" a","logprob":-0.1,"top":[{…},…]}. A token may
// be a part of a character: its text shows U+FFFD then.
void print_logprobs(const LLM& llm, const char* of, const std::vector<PositionLogprobs>& all) {
  for (const PositionLogprobs& position : all) {
    Json line = logprob_json(llm, position.token);
    line["of"] = of;
    line["top"] = Json::array();
    for (const TokenLogprob& entry : position.top) line["top"].push_back(logprob_json(llm, entry));
    std::printf("%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  }
}

void print_timings(const std::vector<Output>& outputs, SteadyClock::time_point start,
                   SteadyClock::time_point loaded, SteadyClock::time_point first,
                   SteadyClock::time_point end) {
  const double prefill = seconds_between(loaded, first), decode = seconds_between(first, end);
  const Output& output = outputs.front();
  size_t generated = 0;
  for (const Output& each : outputs) generated += each.token_ids.size();
  std::fprintf(stderr,
               "\nload %.2f s | prompt %ld tokens, %.1f tok/s | answer %zu tokens, %.1f tok/s | "
               "first token %.2f s after start | ended by %s\n",
               seconds_between(start, loaded), output.prompt_tokens,
               static_cast<double>(output.prompt_tokens) / prefill, generated,
               decode > 0 ? (static_cast<double>(generated) - 1) / decode : 0.0,
               seconds_between(start, first), output.finish_reason.c_str());
}

void run(const RunOptions& options, bool sampling_given) {
  const SteadyClock::time_point start = SteadyClock::now();
  const bool is_batch = !options.jsonl.empty();
  const std::string prompt = is_batch ? "" : read_prompt(options);
  const std::unique_ptr<LLM> llm = load_llm(options.llm);
  if (!options.quiet) std::fprintf(stderr, "%s\n", llm->description().c_str());
  SamplingParams params = options.sampling.params;
  if (!sampling_given) take_recommended(params, llm->recommended_sampling());
  if (is_batch) return run_jsonl(*llm, options.jsonl, options.output, params);

  const SteadyClock::time_point loaded = SteadyClock::now();
  SteadyClock::time_point first = loaded;
  bool begun = false;
  const auto on_piece = [&](const Piece& piece) {
    if (!begun) first = SteadyClock::now();
    begun = true;
    if (params.n > 1) return true;  // they come at the same time: printed one after another
    std::fwrite(piece.text.data(), 1, piece.text.size(), stdout);
    std::fflush(stdout);
    return true;
  };
  const std::vector<Output> outputs =
      options.chat ? std::vector{llm->chat({{.role = "user", .content = prompt}}, params, on_piece)}
                   : llm->generate({Prompt(prompt)}, params, on_piece);
  const SteadyClock::time_point end = SteadyClock::now();
  for (const Output& output : outputs) {
    if (outputs.size() > 1) std::fwrite(output.text.data(), 1, output.text.size(), stdout);
    std::printf("\n");
    print_logprobs(*llm, "prompt", output.prompt_logprobs);
    print_logprobs(*llm, "answer", output.logprobs);
    if (options.print_ids) {
      for (const int32_t id : output.token_ids) std::printf("%d ", id);
      std::printf("\n");
    }
  }
  if (!options.quiet) print_timings(outputs, start, loaded, first, end);
}

}  // namespace

void add_run_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("run", "Answer a prompt and leave");
  auto options = std::make_shared<RunOptions>();
  command->add_option("-p,--prompt", options->prompt, "The prompt; else standard input is read");
  command->add_option("-f,--prompt-file", options->prompt_file, "File with the prompt")
      ->excludes("--prompt");
  command
      ->add_option(
          "--jsonl", options->jsonl,
          "File of requests, one JSON object a line, answered in one batch; -: standard input")
      ->excludes("--prompt")
      ->excludes("--prompt-file");
  command
      ->add_option("-o,--output", options->output,
                   "Where the answers to --jsonl go; -: standard output")
      ->needs("--jsonl")
      ->capture_default_str();
  command->add_flag("--chat", options->chat,
                    "The prompt is a user's message: apply the model's chat template");
  command->add_flag("--print-ids", options->print_ids, "Print the answer's token ids too");
  command->add_flag("-q,--quiet", options->quiet, "Nothing but the answer");
  add_model_options(*command, options->llm);
  add_engine_options(*command, options->llm);
  add_sampling_options(*command, options->sampling);
  add_report_options(*command, options->sampling.params);
  command->callback([command, options] { run(*options, sampling_was_given(*command)); });
}

}  // namespace minisgl
