#include "loader/generation_config.h"

#include <limits>

#include "loader/config_reader.h"

namespace minisgl {
namespace {

constexpr double kMaxTemperature = 1e6;

// One id or a list of them.
std::vector<int32_t> read_eos(const ConfigReader& json) {
  constexpr const char* kKey = "eos_token_id";
  constexpr const char* kExpected = "a token id or a list of them";
  std::vector<int32_t> ids;
  const Json* value = json.find(kKey);
  if (value == nullptr) return ids;
  const auto add = [&](const Json& id) {
    if (!id.is_number_unsigned() ||
        id.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int32_t>::max())) {
      json.throw_bad(kKey, kExpected);
    }
    ids.push_back(id.get<int32_t>());
  };
  if (value->is_array()) {
    for (const Json& id : *value) add(id);
  } else {
    add(*value);
  }
  return ids;
}

}  // namespace

GenerationConfig parse_generation_config(const Json& json, const std::string& path) {
  if (!json.is_object()) throw_error(ErrorKind::kBadFile, "{}: is no JSON object", path);
  const ConfigReader reader(json, path);
  GenerationConfig config;
  config.eos_token_ids = read_eos(reader);
  config.temperature = reader.number("temperature", 0, kMaxTemperature);
  config.top_p = reader.number("top_p", 0, 1);
  config.min_p = reader.number("min_p", 0, 1);
  config.repetition_penalty = reader.number("repetition_penalty", 0, kMaxTemperature);
  config.top_k = reader.integer("top_k", 0, std::numeric_limits<int32_t>::max());
  config.do_sample = reader.boolean("do_sample");
  return config;
}

}  // namespace minisgl
