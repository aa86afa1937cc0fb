// minisgl chat: a conversation in the terminal.
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/loading.h"
#include "cli/options.h"

namespace minisgl {
namespace {

// Set by Ctrl-C; a signal handler may touch nothing else.
volatile std::sig_atomic_t interrupted = 0;

struct ChatOptions {
  LLMOptions llm;
  SamplingFlags sampling;
  std::string system;
};

constexpr const char* kHelp =
    "/reset forgets the conversation, /system TEXT sets the system prompt and starts anew,\n"
    "/stats shows what was used, /exit or Ctrl-D leaves; Ctrl-C stops an answer.\n";

class Chat {
 public:
  Chat(LLM& llm, const SamplingParams& params, const std::string& system)
      : llm_(llm), params_(params), system_(system) {
    reset();
  }

  void loop() {
    std::printf("%s", kHelp);
    std::string line;
    while (std::printf("\n> "), std::fflush(stdout), std::getline(std::cin, line)) {
      if (line.empty()) continue;
      if (line == "/exit") return;
      if (line[0] == '/') {
        command(line);
      } else {
        answer(line);
      }
    }
    std::printf("\n");
  }

 private:
  void reset() {
    messages_.clear();
    if (!system_.empty()) messages_.push_back({.role = "system", .content = system_});
  }

  void command(const std::string& line) {
    if (line == "/reset") {
      reset();
    } else if (line.starts_with("/system ")) {
      system_ = line.substr(8);
      reset();
    } else if (line == "/stats") {
      std::printf("%ld prompt tokens, %ld of them found in the prefix cache, %ld generated\n",
                  prompt_tokens_, cached_tokens_, generated_tokens_);
    } else {
      if (line != "/help") std::printf("'%s' is no command.\n", line.c_str());
      std::printf("%s", kHelp);
    }
  }

  void answer(const std::string& line) {
    messages_.push_back({.role = "user", .content = line});
    interrupted = 0;
    try {
      const Output output = llm_.chat(messages_, params_, [](const Piece& piece) {
        std::fwrite(piece.text.data(), 1, piece.text.size(), stdout);
        std::fflush(stdout);
        return interrupted == 0;
      });
      std::printf("\n");
      prompt_tokens_ += output.prompt_tokens;
      cached_tokens_ += output.cached_tokens;
      generated_tokens_ += static_cast<int64_t>(output.token_ids.size());
      messages_.push_back({.role = "assistant", .content = output.text});
    } catch (const Error& error) {
      // A message that does not fit must not end the conversation.
      messages_.pop_back();
      std::fprintf(stderr, "%s\n", error.what());
    }
  }

  LLM& llm_;
  SamplingParams params_;
  std::string system_;
  std::vector<ChatMessage> messages_;
  int64_t prompt_tokens_ = 0, cached_tokens_ = 0, generated_tokens_ = 0;
};

void chat(const ChatOptions& options, bool sampling_given) {
  const std::unique_ptr<LLM> llm = load_llm(options.llm);
  std::fprintf(stderr, "%s\n", llm->description().c_str());
  SamplingParams params = options.sampling.params;
  if (!sampling_given) take_recommended(params, llm->recommended_sampling());
  std::signal(SIGINT, [](int) { interrupted = 1; });
  Chat(*llm, params, options.system).loop();
}

}  // namespace

void add_chat_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("chat", "A conversation in the terminal");
  auto options = std::make_shared<ChatOptions>();
  command->add_option("--system", options->system, "System prompt");
  add_model_options(*command, options->llm);
  add_engine_options(*command, options->llm);
  add_sampling_options(*command, options->sampling);
  command->callback([command, options] { chat(*options, sampling_was_given(*command)); });
}

}  // namespace minisgl
