#include "scheduler/recorder.h"

#include <cstdio>

#include "utils/error.h"

namespace minisgl {

Recorder::Recorder(const std::string& path, const Json& setup) : path_(path) {
  file_.open(path, std::ios::trunc);
  if (!file_) throw_error(ErrorKind::kResource, "--record {}: cannot write it", path);
  Json header = {{"minisgl_recording", 1}};
  header.update(setup);
  write(header.dump());
}

void Recorder::write(const std::string& line) {
  if (!file_.is_open()) return;
  file_ << line << '\n' << std::flush;
  if (file_) return;
  fmt::print(stderr, "minisgl: --record {}: cannot write to it; recording stops here\n", path_);
  file_.close();
}

void Recorder::submitted(const GenerateRequest& request) {
  if (file_.is_open()) write(Json{{"submit", to_json(request)}}.dump());
}
void Recorder::aborted(int64_t uid) { write(fmt::format(R"({{"abort":{}}})", uid)); }
void Recorder::timed_out(int64_t uid) { write(fmt::format(R"({{"timeout":{}}})", uid)); }
void Recorder::flushed() { write(R"({"flush":true})"); }

void Recorder::limited(int64_t tokens) { write(fmt::format(R"({{"limit":{}}})", tokens)); }

void Recorder::planned(int64_t uid, int64_t begin, int64_t end) {
  planned_ += fmt::format("{}[{},{},{}]", planned_.empty() ? "" : ",", uid, begin, end);
}

void Recorder::received(int64_t uid, int32_t token) {
  received_ += fmt::format("{}[{},{}]", received_.empty() ? "" : ",", uid, token);
}

void Recorder::end_turn() {
  last_turn_ = fmt::format(R"({{"turn":[{}],"tokens":[{}]}})", planned_, received_);
  planned_.clear();
  received_.clear();
  write(last_turn_);
}

Json to_json(const GenerateRequest& request) {
  const SamplingParams& params = request.sampling_params;
  Json json = {{"uid", request.uid},
               {"input_ids", request.input_ids},
               {"eos_token_ids", request.eos_token_ids},
               {"priority", request.priority},
               {"cache_salt", request.cache_salt},
               {"temperature", params.temperature},
               {"top_k", params.top_k},
               {"top_p", params.top_p},
               {"min_p", params.min_p},
               {"repetition_penalty", params.repetition_penalty},
               {"frequency_penalty", params.frequency_penalty},
               {"presence_penalty", params.presence_penalty},
               {"logit_bias", Json::array()},
               {"n", params.n},
               {"max_tokens", params.max_tokens},
               {"min_tokens", params.min_tokens},
               {"ignore_eos", params.ignore_eos},
               {"stop_token_ids", params.stop_token_ids},
               {"stop", params.stop},
               {"include_stop", params.include_stop}};
  for (const LogitBias& bias : params.logit_bias) {
    json["logit_bias"].push_back({bias.token, bias.bias});
  }
  if (params.seed) json["seed"] = *params.seed;
  if (params.logprobs) json["logprobs"] = *params.logprobs;
  if (params.prompt_logprobs) json["prompt_logprobs"] = *params.prompt_logprobs;
  return json;
}

GenerateRequest request_from_json(const Json& json) {
  GenerateRequest request;
  SamplingParams& params = request.sampling_params;
  try {
    json.at("uid").get_to(request.uid);
    json.at("input_ids").get_to(request.input_ids);
    json.at("eos_token_ids").get_to(request.eos_token_ids);
    json.at("priority").get_to(request.priority);
    json.at("cache_salt").get_to(request.cache_salt);
    json.at("temperature").get_to(params.temperature);
    json.at("top_k").get_to(params.top_k);
    json.at("top_p").get_to(params.top_p);
    json.at("min_p").get_to(params.min_p);
    json.at("repetition_penalty").get_to(params.repetition_penalty);
    json.at("frequency_penalty").get_to(params.frequency_penalty);
    json.at("presence_penalty").get_to(params.presence_penalty);
    for (const Json& bias : json.at("logit_bias")) {
      params.logit_bias.push_back({bias.at(0).get<int32_t>(), bias.at(1).get<double>()});
    }
    json.at("n").get_to(params.n);
    json.at("max_tokens").get_to(params.max_tokens);
    json.at("min_tokens").get_to(params.min_tokens);
    json.at("ignore_eos").get_to(params.ignore_eos);
    json.at("stop_token_ids").get_to(params.stop_token_ids);
    json.at("stop").get_to(params.stop);
    json.at("include_stop").get_to(params.include_stop);
    if (json.contains("seed")) params.seed = json.at("seed").get<uint64_t>();
    if (json.contains("logprobs")) params.logprobs = json.at("logprobs").get<int64_t>();
    if (json.contains("prompt_logprobs")) {
      params.prompt_logprobs = json.at("prompt_logprobs").get<int64_t>();
    }
  } catch (const Json::exception& error) {
    throw_error(ErrorKind::kBadFile, "recording: a request cannot be read: {}", error.what());
  }
  return request;
}

}  // namespace minisgl
