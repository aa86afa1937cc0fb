// include/minisgl/llm.h on top of a scheduler that it owns.
#include "minisgl/llm.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "engine/engine.h"
#include "llm/answer.h"
#include "llm/options.h"
#include "llm/recording.h"
#include "loader/hub.h"
#include "message/samples.h"
#include "scheduler/scheduler.h"
#include "tokenizer/chat_template/chat_template.h"
#include "tokenizer/tokenizer.h"
#include "utils/files.h"

namespace minisgl {
namespace {

std::string resolve(const LLMOptions& options) {
  if (options.model.empty()) {
    throw_error(ErrorKind::kInvalidArgument,
                "no model given; name a folder, a .gguf file or a hub repository with --model");
  }
  return resolve_model(options.model,
                       hub_options_from_environment(parse_model_source(options.model_source)));
}

std::vector<int32_t> end_of_text_ids(const GenerationConfig& generation,
                                     const Tokenizer& tokenizer) {
  std::vector<int32_t> ids = generation.eos_token_ids;
  for (const int32_t id : tokenizer.info().end_ids) ids.push_back(id);
  if (tokenizer.info().eos_id >= 0) ids.push_back(tokenizer.info().eos_id);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace

struct LLM::Impl {
  std::mutex mutex;  // one call at a time drives the scheduler
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat_template;
  std::unique_ptr<Recorder> recorder;  // outlives the scheduler
  std::unique_ptr<Scheduler> scheduler;
  std::vector<int32_t> eos_token_ids;
  int64_t next_uid = 0;

  std::vector<int32_t> prompt_ids(const Prompt& prompt) const;
  std::vector<Output> run(std::vector<GenerateRequest> requests, const PieceCallback& on_piece);
};

LLM::LLM(const LLMOptions& options, const LoadCallback& on_load) : impl_(new Impl) {
  const SchedulerConfig scheduling = scheduler_config(options);
  const std::string path = resolve(options);
  impl_->engine = std::make_unique<Engine>(engine_config(options, path), on_load);
  impl_->tokenizer = load_tokenizer(options.tokenizer.empty() ? impl_->engine->tokenizer_path()
                                                              : options.tokenizer);
  if (!options.chat_template.empty()) {
    impl_->chat_template.emplace(read_file(options.chat_template));
  } else if (impl_->tokenizer->info().chat_template) {
    impl_->chat_template.emplace(*impl_->tokenizer->info().chat_template);
  }
  impl_->eos_token_ids = end_of_text_ids(impl_->engine->generation_config(), *impl_->tokenizer);
  impl_->scheduler = std::make_unique<Scheduler>(*impl_->engine, scheduling);
  if (!options.record_file.empty()) {
    impl_->recorder = std::make_unique<Recorder>(options.record_file,
                                                 recording_setup(options, impl_->engine->config()));
    impl_->scheduler->record_to(impl_->recorder.get());
  }
}

LLM::~LLM() = default;
LLM::LLM(LLM&&) noexcept = default;
LLM& LLM::operator=(LLM&&) noexcept = default;

std::vector<int32_t> LLM::Impl::prompt_ids(const Prompt& prompt) const {
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) return *ids;
  return tokenizer->encode_prompt(std::get<std::string>(prompt));
}

std::vector<Output> LLM::Impl::run(std::vector<GenerateRequest> requests,
                                   const PieceCallback& on_piece) {
  const std::lock_guard lock(mutex);
  std::vector<GenerateRequest> samples;
  std::vector<Answer> answers;
  std::unordered_map<int64_t, size_t> index;
  std::vector<Reply> replies;
  for (GenerateRequest& request : requests) {
    bool counts_prompt = true;
    for (GenerateRequest& sample : samples_of(std::move(request))) {
      sample.uid = next_uid++;
      index[sample.uid] = answers.size();
      answers.emplace_back(*tokenizer, sample.sampling_params, std::exchange(counts_prompt, false));
      samples.push_back(std::move(sample));
    }
  }
  // Only when all of them are known to be well-formed.
  for (GenerateRequest& sample : samples) scheduler->submit(std::move(sample), replies);
  bool more = true;
  while (more || !replies.empty()) {
    for (Reply& reply : std::exchange(replies, {})) {
      const auto found = index.find(reply.uid);
      if (found == index.end()) continue;
      Answer& answer = answers[found->second];
      if (answer.finished()) continue;
      const int64_t uid = reply.uid;
      const int32_t token = reply.token;
      const bool was_last = reply.finished;
      const std::string text = answer.push(std::move(reply));
      const bool wanted = !on_piece || on_piece({.index = found->second,
                                                 .text = text,
                                                 .token = token,
                                                 .finished = answer.finished()});
      if (!wanted) answer.cancel();
      // The text ended by itself before the scheduler knew.
      if (answer.finished() && !was_last) scheduler->abort(uid, replies);
    }
    more = scheduler->step(replies);
  }
  std::vector<Output> outputs;
  for (Answer& answer : answers) outputs.push_back(answer.take());
  return outputs;
}

std::vector<Output> LLM::generate(const std::vector<Prompt>& prompts, const SamplingParams& params,
                                  const PieceCallback& on_piece) {
  return generate(prompts, std::vector<SamplingParams>(prompts.size(), params), on_piece);
}

std::vector<Output> LLM::generate(const std::vector<Prompt>& prompts,
                                  std::span<const SamplingParams> params,
                                  const PieceCallback& on_piece) {
  if (params.size() != prompts.size()) {
    throw_error(ErrorKind::kInvalidArgument, "{} prompts, but sampling parameters for {}",
                prompts.size(), params.size());
  }
  std::vector<GenerateRequest> requests;
  for (size_t i = 0; i < prompts.size(); ++i) {
    requests.push_back({.input_ids = impl_->prompt_ids(prompts[i]),
                        .sampling_params = params[i],
                        .eos_token_ids = impl_->eos_token_ids});
  }
  return impl_->run(std::move(requests), on_piece);
}

Output LLM::chat(const std::vector<ChatMessage>& messages, const SamplingParams& params,
                 const PieceCallback& on_piece) {
  if (params.n != 1) {
    throw_error(ErrorKind::kInvalidArgument,
                "chat gives one answer: n must be 1, found {}; use generate() with render_chat()",
                params.n);
  }
  return generate({Prompt(encode_chat(messages))}, params, on_piece).front();
}

std::vector<int32_t> LLM::encode_chat(const std::vector<ChatMessage>& messages) const {
  // The template writes its own special tokens.
  return impl_->tokenizer->encode(render_chat(messages), {.add_special = false});
}

std::string LLM::render_chat(const std::vector<ChatMessage>& messages) const {
  if (!impl_->chat_template) {
    throw_error(ErrorKind::kUnsupported,
                "this model has no chat template; give one with --chat-template FILE, or complete "
                "plain text instead");
  }
  ChatRequest request;
  request.messages = Json::array();
  for (const ChatMessage& message : messages) {
    request.messages.push_back({{"role", message.role}, {"content", message.content}});
  }
  request.add_generation_prompt = true;
  request.special_tokens = {{"bos_token", impl_->tokenizer->bos_token()},
                            {"eos_token", impl_->tokenizer->eos_token()}};
  return minisgl::render_chat(*impl_->chat_template, request);
}

bool LLM::has_chat_template() const { return impl_->chat_template.has_value(); }

SamplingParams LLM::recommended_sampling() const {
  const GenerationConfig& config = impl_->engine->generation_config();
  SamplingParams params;
  const double penalty = config.repetition_penalty.value_or(params.repetition_penalty);
  if (penalty > 0.0 && penalty <= 10.0) params.repetition_penalty = penalty;
  // Hugging Face's reading: without do_sample the makers' temperature does not count.
  if (!config.do_sample.value_or(config.temperature.has_value())) return params;
  params.temperature = config.temperature.value_or(1.0);
  params.top_k = config.top_k.value_or(params.top_k);
  params.top_p = config.top_p.value_or(params.top_p);
  params.min_p = config.min_p.value_or(params.min_p);
  return params;
}

std::vector<int32_t> LLM::encode(std::string_view text) const {
  return impl_->tokenizer->encode_prompt(text);
}

std::string LLM::decode(const std::vector<int32_t>& ids) const {
  return impl_->tokenizer->decode(ids);
}

std::string LLM::description() const {
  return impl_->engine->description() + "\n" + impl_->engine->memory_plan().explanation;
}

}  // namespace minisgl
