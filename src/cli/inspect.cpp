// minisgl inspect: what is in a checkpoint, without loading its weights.
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/loading.h"
#include "cli/options.h"
#include "loader/open.h"
#include "models/model.h"
#include "utils/progress.h"

namespace minisgl {
namespace {

void line(const char* name, const std::string& value) {
  std::printf("%-26s %s\n", name, value.c_str());
}
void line(const char* name, int64_t value) { line(name, std::to_string(value)); }

const char* rope_name(RopeConfig::Type type) {
  switch (type) {
    case RopeConfig::Type::kDefault:
      return "default";
    case RopeConfig::Type::kLinear:
      return "linear";
    case RopeConfig::Type::kLlama3:
      return "llama3";
    case RopeConfig::Type::kYarn:
      return "yarn";
  }
  return "?";
}

bool is_supported(const std::string& architecture) {
  for (const std::string& known : known_architectures()) {
    if (known == architecture) return true;
  }
  return false;
}

void inspect(const LLMOptions& options) {
  const std::string path = resolve_with_progress(options.model, options.model_source);
  const OpenedModel model = open_model(path);
  const ModelConfig& config = model.config;
  line("path", path);
  line("format", model.format);
  line("architecture",
       config.architecture + (is_supported(config.architecture) ? "" : " (not supported)"));
  line("layers", config.num_layers);
  line("hidden size", config.hidden_size);
  line("intermediate size", config.intermediate_size);
  line("query / KV heads",
       fmt::format("{} / {} of {}", config.num_qo_heads, config.num_kv_heads, config.head_dim));
  if (config.num_experts > 0) {
    line("experts", fmt::format("{} of {}, intermediate size {}", config.num_experts_per_tok,
                                config.num_experts, config.moe_intermediate_size));
  }
  line("vocabulary", config.vocab_size);
  line("tied embeddings", config.tie_word_embeddings ? "yes" : "no");
  line("context", config.max_position_embeddings);
  if (config.sliding_window > 0) line("sliding window", config.sliding_window);
  line("rope", fmt::format("{}, theta {}, factor {}", rope_name(config.rope.type),
                           config.rope.theta, config.rope.factor));
  line("dtype", std::string(dtype_name(config.dtype)));
  line("weights", format_bytes(static_cast<uint64_t>(model.checkpoint->total_bytes())));
  line("KV a token (float32)", format_bytes(static_cast<uint64_t>(
                                   8 * config.num_layers * config.num_kv_heads * config.head_dim)));
  line("end-of-text ids", fmt::format("{}", fmt::join(model.generation.eos_token_ids, " ")));
}

}  // namespace

void add_inspect_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("inspect", "Show what is in a checkpoint");
  auto options = std::make_shared<LLMOptions>();
  add_model_options(*command, *options);
  command->callback([options] { inspect(*options); });
}

}  // namespace minisgl
