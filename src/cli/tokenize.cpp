// minisgl tokenize: the tokenizer and the chat template alone.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/loading.h"
#include "tokenizer/tokenize_jsonl.h"
#include "tokenizer/tokenizer.h"
#include "utils/error.h"
#include "utils/log.h"

namespace minisgl {
namespace {

struct TokenizeOptions {
  std::string model;
  std::string model_source = "huggingface";
  bool ids = false;
  bool decode = false;
  bool stdin_jsonl = false;
  std::string chat;
  std::string chat_template;
  bool print_prompt = false;
};

std::unique_ptr<Tokenizer> open_tokenizer(const TokenizeOptions& options) {
  if (options.model.empty()) return nullptr;
  return load_tokenizer(resolve_with_progress(options.model, options.model_source),
                        Logger::to_stderr(log_level_from_environment(LogLevel::kWarn)));
}

void tokenize(const TokenizeOptions& options) {
  if (options.chat.empty() && options.model.empty()) {
    throw_error(ErrorKind::kInvalidArgument, "tokenize: --ids and --decode need a model (-m)");
  }
  const auto tokenizer = open_tokenizer(options);
  if (options.ids) return encode_jsonl(*tokenizer, std::cin, std::cout);
  if (options.decode) return decode_jsonl(*tokenizer, std::cin, std::cout);
  // The prompt as it is: no newline of ours behind it.
  const std::string prompt =
      chat_prompt_of_file(options.chat, options.chat_template, tokenizer.get());
  if (std::fwrite(prompt.data(), 1, prompt.size(), stdout) != prompt.size()) {
    throw_error(ErrorKind::kResource, "cannot write the prompt");
  }
}

}  // namespace

void add_tokenize_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("tokenize", "Text to token ids and back, a chat request to its prompt");
  auto options = std::make_shared<TokenizeOptions>();
  command
      ->add_option("-m,--model,--model-path", options->model,
                   "Folder with a tokenizer, GGUF file, or a hub's name")
      ->envname("MINISGL_MODEL");
  command->add_option("--model-source", options->model_source, "Hub that names refer to")
      ->envname("MINISGL_MODEL_SOURCE")
      ->check(CLI::IsMember({"huggingface", "modelscope"}))
      ->capture_default_str();
  auto* jsonl = command->add_flag("--stdin-jsonl", options->stdin_jsonl,
                                  "One JSON object a line from standard input, one answer each");
  auto* what = command->add_option_group("what", "What to do");
  what->add_flag("--ids", options->ids,
                 R"({"text", "add_special": true, "parse_special": true} -> {"ids"})")
      ->needs(jsonl);
  what->add_flag("--decode", options->decode, R"({"ids"} -> {"text"}, special tokens written out)")
      ->needs(jsonl);
  auto* print = command->add_flag("--print-prompt", options->print_prompt, "Print a chat's prompt");
  auto* chat = what->add_option("--chat", options->chat, "File with the body of a chat request");
  chat->needs(print);
  print->needs(chat);
  command
      ->add_option("--template", options->chat_template,
                   "Jinja file instead of the model's chat template; then no model is needed")
      ->needs(chat);
  what->require_option(1);
  command->callback([options] { tokenize(*options); });
}

}  // namespace minisgl
