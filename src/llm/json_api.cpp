#include "llm/json_api.h"

#include <fmt/ranges.h>

#include <span>

#include "utils/error.h"

namespace minisgl {
namespace {

template <class T>
struct Field {
  const char* name;
  void (*read)(T& target, const Json& value);
};

// value -> target.*member, with JSON's own type check: no text for a number, no 1.5 for an integer.
template <auto member, class T>
void read_member(T& target, const Json& value) {
  using Value = std::remove_cvref_t<decltype(target.*member)>;
  if constexpr (std::is_integral_v<Value> && !std::is_same_v<Value, bool>) {
    if (!value.is_number_integer()) throw_error(ErrorKind::kInvalidArgument, "expected an integer");
  }
  if constexpr (std::is_same_v<Value, std::optional<int64_t>>) {
    if (!value.is_number_integer()) throw_error(ErrorKind::kInvalidArgument, "expected an integer");
    target.*member = value.get<int64_t>();
  } else if constexpr (std::is_same_v<Value, std::optional<uint64_t>>) {
    if (!value.is_number_unsigned()) {
      throw_error(ErrorKind::kInvalidArgument, "expected an integer of 0 or more");
    }
    target.*member = value.get<uint64_t>();
  } else {
    value.get_to(target.*member);
  }
}

using Options = LLMOptions;
constexpr Field<Options> kOptions[] = {
    {"model", read_member<&Options::model>},
    {"model_source", read_member<&Options::model_source>},
    {"dummy_weight", read_member<&Options::dummy_weight>},
    {"tokenizer", read_member<&Options::tokenizer>},
    {"chat_template", read_member<&Options::chat_template>},
    {"dtype", read_member<&Options::dtype>},
    {"device", read_member<&Options::device>},
    {"attention_backend", read_member<&Options::attention_backend>},
    {"isa", read_member<&Options::isa>},
    {"threads", read_member<&Options::threads>},
    {"max_running_requests", read_member<&Options::max_running_requests>},
    {"max_seq_len", read_member<&Options::max_seq_len>},
    {"max_prefill_length", read_member<&Options::max_prefill_length>},
    {"page_size", read_member<&Options::page_size>},
    {"num_pages", read_member<&Options::num_pages>},
    {"memory_ratio", read_member<&Options::memory_ratio>},
    {"cuda_graph_max_bs", read_member<&Options::cuda_graph_max_bs>},
    {"cache_type", read_member<&Options::cache_type>},
    {"schedule", read_member<&Options::schedule>},
    {"admission", read_member<&Options::admission>},
    {"disable_overlap", read_member<&Options::disable_overlap>},
    {"seed", read_member<&Options::seed>},
};

using Params = SamplingParams;
constexpr Field<Params> kSampling[] = {
    {"temperature", read_member<&Params::temperature>},
    {"top_k", read_member<&Params::top_k>},
    {"top_p", read_member<&Params::top_p>},
    {"min_p", read_member<&Params::min_p>},
    {"repetition_penalty", read_member<&Params::repetition_penalty>},
    {"frequency_penalty", read_member<&Params::frequency_penalty>},
    {"presence_penalty", read_member<&Params::presence_penalty>},
    {"seed", read_member<&Params::seed>},
    {"n", read_member<&Params::n>},
    {"max_tokens", read_member<&Params::max_tokens>},
    {"min_tokens", read_member<&Params::min_tokens>},
    {"ignore_eos", read_member<&Params::ignore_eos>},
    {"stop_token_ids", read_member<&Params::stop_token_ids>},
    {"include_stop", read_member<&Params::include_stop>},
    {"logprobs", read_member<&Params::logprobs>},
    {"prompt_logprobs", read_member<&Params::prompt_logprobs>},
    {"stop",
     [](Params& params, const Json& value) {
       if (value.is_string()) {
         params.stop = {value.get<std::string>()};
       } else {
         value.get_to(params.stop);
       }
     }},
    {"logit_bias",
     [](Params& params, const Json& value) {
       params.logit_bias.clear();
       for (const auto& [id, bias] : value.items()) {
         params.logit_bias.push_back(
             {.token = static_cast<int32_t>(std::stol(id)), .bias = bias.get<double>()});
       }
     }},
};

// True if `name` is one of the fields, which then has been read.
template <class T, size_t N>
bool read_field(const Field<T> (&fields)[N], T& target, const std::string& name,
                const Json& value) {
  for (const Field<T>& field : fields) {
    if (name != field.name) continue;
    try {
      field.read(target, value);
    } catch (const std::exception& error) {
      throw_error(ErrorKind::kInvalidArgument, "\"{}\" is {}: {}", name, value.dump(),
                  error.what());
    }
    return true;
  }
  return false;
}

void require_object(const Json& value, const char* what) {
  if (!value.is_object()) {
    throw_error(ErrorKind::kInvalidArgument, "{}: expected a JSON object, found {}", what,
                value.type_name());
  }
}

template <class T, size_t N>
[[noreturn]] void unknown_key(const std::string& key, const Field<T> (&fields)[N],
                              const char* others) {
  std::vector<std::string> known;
  for (const Field<T>& field : fields) known.emplace_back(field.name);
  throw_error(ErrorKind::kInvalidArgument, "unknown key \"{}\"; known are {}{}", key, others,
              fmt::join(known, ", "));
}

Prompt prompt_from_json(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) {
    std::vector<int32_t> ids;
    for (const Json& id : value) {
      if (!id.is_number_integer() || id.get<int64_t>() != static_cast<int32_t>(id.get<int64_t>())) {
        throw_error(ErrorKind::kInvalidArgument, "\"prompt\": {} is no token id", id.dump());
      }
      ids.push_back(id.get<int32_t>());
    }
    return ids;
  }
  throw_error(ErrorKind::kInvalidArgument, "\"prompt\": expected text or a list of token ids");
}

std::vector<ChatMessage> messages_from_json(const Json& value) {
  std::vector<ChatMessage> messages;
  for (const Json& message : value) {
    const bool ok = message.is_object() && message.size() == 2 && message.contains("role") &&
                    message.contains("content") && message["role"].is_string() &&
                    message["content"].is_string();
    if (!ok) {
      throw_error(ErrorKind::kInvalidArgument,
                  "\"messages\": expected objects of \"role\" and \"content\", both text");
    }
    messages.push_back({.role = message["role"], .content = message["content"]});
  }
  if (messages.empty()) throw_error(ErrorKind::kInvalidArgument, "\"messages\" is empty");
  return messages;
}

Json logprobs_to_json(const std::vector<PositionLogprobs>& positions) {
  Json list = Json::array();
  for (const PositionLogprobs& position : positions) {
    Json top = Json::array();
    for (const TokenLogprob& t : position.top) {
      top.push_back({{"token", t.token}, {"logprob", t.logprob}});
    }
    list.push_back({{"token", position.token.token},
                    {"logprob", position.token.logprob},
                    {"top", std::move(top)}});
  }
  return list;
}

}  // namespace

LLMOptions options_from_json(const Json& object) {
  require_object(object, "options");
  LLMOptions options;
  for (const auto& [key, value] : object.items()) {
    if (!read_field(kOptions, options, key, value)) unknown_key(key, kOptions, "");
  }
  return options;
}

JsonRequest request_from_json(const Json& object, const SamplingParams& defaults) {
  require_object(object, "request");
  JsonRequest request{.sampling = defaults};
  for (const auto& [key, value] : object.items()) {
    if (key == "id") {
      request.id = value;
    } else if (key == "prompt") {
      request.prompt = prompt_from_json(value);
    } else if (key == "messages") {
      request.messages = messages_from_json(value);
    } else if (!read_field(kSampling, request.sampling, key, value)) {
      unknown_key(key, kSampling, "id, prompt, messages, ");
    }
  }
  if (request.prompt.has_value() == !request.messages.empty()) {
    throw_error(ErrorKind::kInvalidArgument, "a request needs either \"prompt\" or \"messages\"");
  }
  return request;
}

Json output_to_json(const Output& output) {
  Json json = {{"text", output.text},
               {"token_ids", output.token_ids},
               {"finish_reason", output.finish_reason},
               {"prompt_tokens", output.prompt_tokens},
               {"cached_tokens", output.cached_tokens}};
  if (!output.logprobs.empty()) {
    json["logprobs"] = logprobs_to_json(output.logprobs);
    json["cumulative_logprob"] = output.cumulative_logprob;
  }
  if (!output.prompt_logprobs.empty()) {
    json["prompt_logprobs"] = logprobs_to_json(output.prompt_logprobs);
  }
  return json;
}

}  // namespace minisgl
