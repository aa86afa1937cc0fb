#include "cli/options.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <memory>

#include "utils/env.h"
#include "utils/json.h"

namespace minisgl {
namespace {

// "--page-size,--ps" -> "MINISGL_PAGE_SIZE": from the first long spelling.
std::string environment_name(const std::string& flags) {
  const size_t begin = flags.find("--") + 2;
  std::string name = "MINISGL_" + flags.substr(begin, flags.find(',', begin) - begin);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::toupper(c));
  });
  return name;
}

template <class T>
CLI::Option* option(CLI::App& app, const std::string& flags, T& value, const std::string& help) {
  return app.add_option(flags, value, help)
      ->envname(environment_name(flags))
      ->capture_default_str();
}

CLI::Option* flag(CLI::App& app, const std::string& flags, bool& value, const std::string& help) {
  return app.add_flag(flags, value, help)->envname(environment_name(flags));
}

constexpr const char* kModel = "Model";
constexpr const char* kEngine = "Engine";
constexpr const char* kSampling = "Sampling";

// "ID=BIAS"; ranges are checked with the request.
LogitBias parse_bias(const std::string& text) {
  LogitBias bias;
  const size_t equals = text.find('=');
  if (equals == std::string::npos ||
      !CLI::detail::lexical_cast(text.substr(0, equals), bias.token) ||
      !CLI::detail::lexical_cast(text.substr(equals + 1), bias.bias)) {
    throw CLI::ValidationError("--logit-bias", "expected ID=BIAS, found '" + text + "'");
  }
  return bias;
}

// Config files: a JSON object where the text begins with one, TOML otherwise. Keys outside a
// section belong to the command that was chosen.
class TomlOrJson : public CLI::ConfigTOML {
 public:
  explicit TomlOrJson(const CLI::App& root) : root_(root) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    input >> std::ws;
    auto items = input.peek() == '{' ? from_json(input) : CLI::ConfigTOML::from_config(input);
    const auto chosen = root_.get_subcommands();
    for (CLI::ConfigItem& item : items) {
      if (item.parents.empty() && !chosen.empty()) item.parents = {chosen.front()->get_name()};
    }
    return items;
  }

 private:
  static std::vector<CLI::ConfigItem> from_json(std::istream& input) {
    const std::string text(std::istreambuf_iterator<char>(input), {});
    const Json document = parse_json(text, "config file", ErrorKind::kInvalidArgument);
    std::vector<CLI::ConfigItem> items;
    for (const auto& [key, value] : document.items()) {
      CLI::ConfigItem item;
      item.name = key;
      if (value.is_array()) {
        for (const Json& element : value) item.inputs.push_back(scalar(key, element));
      } else {
        item.inputs.push_back(scalar(key, value));
      }
      items.push_back(std::move(item));
    }
    return items;
  }

  static std::string scalar(const std::string& key, const Json& value) {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_primitive() && !value.is_null()) return value.dump();
    throw_error(ErrorKind::kInvalidArgument,
                "config file: '{}' must be a text, a number, true, false or a list of them", key);
  }

  const CLI::App& root_;
};

}  // namespace

void add_model_options(CLI::App& app, LLMOptions& options) {
  option(app, "-m,--model,--model-path", options.model,
         "Folder of safetensors, .gguf file, or hub name ORG/REPO[:QUANTISATION][@REVISION]")
      ->group(kModel);
  option(app, "--model-source", options.model_source, "Hub that names refer to")
      ->check(CLI::IsMember({"huggingface", "modelscope"}))
      ->group(kModel);
  option(app, "--tokenizer", options.tokenizer, "Tokenizer's folder or file (default: the model's)")
      ->group(kModel);
  option(app, "--chat-template", options.chat_template,
         "File with a Jinja chat template (default: the model's)")
      ->group(kModel);
  flag(app, "--dummy-weight", options.dummy_weight, "Random weights; only config.json is read")
      ->group(kModel);
}

void add_engine_options(CLI::App& app, LLMOptions& options) {
  option(app, "--dtype", options.dtype,
         "Of plain weights and of the KV pool: auto (the checkpoint's), float32, bfloat16, float16")
      ->group(kEngine);
  option(app, "--device", options.device,
         "auto (a GPU where the CUDA plugin finds one), cpu, cuda or cuda:N")
      ->group(kEngine);
  option(app, "--attention-backend,--attn", options.attention_backend,
         "auto, a name, or PREFILL,DECODE")
      ->group(kEngine);
  option(app, "--isa", options.isa, "Instruction set of the CPU's kernels; auto: the best there is")
      ->group(kEngine);
  option(app, "--threads,-t", options.threads, "CPU threads; 0: every core this process may use")
      ->check(CLI::Range(0, 1024))
      ->group(kEngine);
  option(app, "--max-running-requests", options.max_running_requests,
         "Requests that are computed at the same time")
      ->group(kEngine);
  option(app, "--max-seq-len,--max-seq-len-override", options.max_seq_len,
         "Tokens of one prompt and its answer; 0: the model's context")
      ->group(kEngine);
  option(app, "--max-prefill-length,--max-extend-length", options.max_prefill_length,
         "New tokens in one step; 0: 512 on the CPU, 8192 on a GPU")
      ->group(kEngine);
  option(app, "--page-size", options.page_size, "Tokens of a page of the KV pool")->group(kEngine);
  option(app, "--num-pages", options.num_pages, "Pages of the KV pool; 0: what fits (2 GiB on CPU)")
      ->group(kEngine);
  option(app, "--memory-ratio", options.memory_ratio,
         "Share of the usable memory for weights and KV pool")
      ->group(kEngine);
  option(app, "--cuda-graph-max-bs,--graph", options.cuda_graph_max_bs,
         "Decode batches up to this size are padded and replayed as a graph; 0: none")
      ->group(kEngine);
  option(app, "--cache-type,--cache", options.cache_type, "Prefix cache: radix or naive (none)")
      ->check(CLI::IsMember({"radix", "naive"}))
      ->group(kEngine);
  option(app, "--schedule", options.schedule,
         "mixed: decode rows ride with prefill chunks; prefill-first: they wait")
      ->check(CLI::IsMember({"mixed", "prefill-first"}))
      ->group(kEngine);
  option(app, "--admission", options.admission,
         "optimistic: by expected length, may retract; reserve: by the longest")
      ->check(CLI::IsMember({"optimistic", "reserve"}))
      ->group(kEngine);
  flag(app, "--disable-overlap", options.disable_overlap,
       "Do not prepare a step while another one runs")
      ->group(kEngine);
  option(app, "--max-token-gap-ms", options.max_token_gap_ms,
         "Cuts prompts so that running answers wait no longer for a token; 0: no bound")
      ->check(CLI::Range(0, 3'600'000))
      ->group(kEngine);
  option(app, "--record", options.record_file,
         "File for requests and scheduling decisions, which `minisgl replay` plays again")
      ->group(kEngine);
  option(app, "--trace", options.trace_file,
         "File for chrome://tracing or ui.perfetto.dev: scheduler, computation, each request")
      ->group(kEngine);
  option(app, "--engine-seed", options.seed, "Seed of requests that bring none (--seed)")
      ->group(kEngine);
}

void add_sampling_options(CLI::App& app, SamplingFlags& flags) {
  SamplingParams& params = flags.params;
  option(app, "-n,--max-tokens", params.max_tokens, "Tokens of the answer at most");
  option(app, "--temperature", params.temperature, "0: always the most likely token")
      ->group(kSampling);
  option(app, "--top-k", params.top_k, "Keep the k most likely tokens; below 1: all")
      ->group(kSampling);
  option(app, "--top-p", params.top_p, "Keep the most likely tokens that together reach p")
      ->group(kSampling);
  option(app, "--min-p", params.min_p, "Drop tokens below this share of the most likely one's")
      ->group(kSampling);
  option(app, "--repetition-penalty", params.repetition_penalty,
         "Divides the logits of tokens that prompt or answer have; 1: off")
      ->group(kSampling);
  option(app, "--frequency-penalty", params.frequency_penalty,
         "Taken off a token's logit for each time that the answer has it")
      ->group(kSampling);
  option(app, "--presence-penalty", params.presence_penalty,
         "Taken off a token's logit if the answer has it at all")
      ->group(kSampling);
  app.add_option_function<std::vector<std::string>>(
         "--logit-bias",
         [&params](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) params.logit_bias.push_back(parse_bias(text));
         },
         "ID=BIAS, added to that token's logit; may be given several times")
      ->envname("MINISGL_LOGIT_BIAS");
  app.add_option("--seed", params.seed, "The same seed draws the same tokens")
      ->envname("MINISGL_SEED");
  app.add_option("--stop", params.stop, "Text that ends the answer; may be given several times")
      ->envname("MINISGL_STOP");
  app.add_option("--stop-token-ids", params.stop_token_ids, "Token ids that end the answer")
      ->envname("MINISGL_STOP_TOKEN_IDS");
  flag(app, "--include-stop", params.include_stop, "The stop text is part of the answer");
  option(app, "--min-tokens", params.min_tokens, "No token ends the answer before so many");
  flag(app, "--ignore-eos", params.ignore_eos, "Go on past the model's end-of-text tokens");
}

void add_report_options(CLI::App& app, SamplingParams& params) {
  option(app, "--samples", params.n, "Answers to the prompt, each drawn with a seed of its own");
  app.add_option("--logprobs", params.logprobs,
                 "Print each token's log-probability and the N most likely ones, as JSON lines")
      ->envname("MINISGL_LOGPROBS");
  app.add_option("--prompt-logprobs", params.prompt_logprobs, "The same of the prompt's tokens")
      ->envname("MINISGL_PROMPT_LOGPROBS");
}

void take_recommended(SamplingParams& params, const SamplingParams& recommended) {
  params.temperature = recommended.temperature;
  params.top_k = recommended.top_k;
  params.top_p = recommended.top_p;
  params.min_p = recommended.min_p;
  params.repetition_penalty = recommended.repetition_penalty;
}

void add_config_file(CLI::App& root) {
  root.set_config("--config", "",
                  "TOML or JSON file with the command's options, named without dashes in front; "
                  "flags win over it (Env:MINISGL_CONFIG)");
  root.config_formatter(std::make_shared<TomlOrJson>(root));
  root.allow_config_extras(CLI::config_extras_mode::error);
}

std::vector<std::string> reversed_arguments(int argc, const char* const* argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto names_config = [](const std::string& a) { return a.starts_with("--config"); };
  const std::optional<std::string> named = env_string("MINISGL_CONFIG");
  if (named && !arguments.empty() &&
      std::none_of(arguments.begin(), arguments.end(), names_config)) {
    arguments.insert(arguments.end(), {"--config", *named});
  }
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

bool sampling_was_given(const CLI::App& app) {
  const auto options = app.get_options();
  return std::any_of(options.begin(), options.end(), [](const CLI::Option* option) {
    return option->get_group() == kSampling && option->count() > 0;
  });
}

}  // namespace minisgl
