#include "tokenizer/json_node.h"

#include "utils/error.h"
#include "utils/quote.h"

namespace minisgl {

void JsonNode::fail_expected(std::string_view expected) const {
  std::string found = simdjson::minify(element_);
  if (found.size() > 60) found = found.substr(0, 60) + "…";
  throw_error(ErrorKind::kBadFile, "{}: expected {}, found {}", path_, expected, found);
}

void JsonNode::fail_unknown(std::string_view what, std::string_view known) const {
  throw_error(ErrorKind::kUnsupported, "{}: {} is not known; known: {}", path_, quote(what), known);
}

std::optional<JsonNode> JsonNode::find(std::string_view key) const {
  simdjson::dom::element value;
  if (element_.at_key(key).get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
  return JsonNode(value, path_ + "." + std::string(key));
}

JsonNode JsonNode::at(std::string_view key) const {
  if (const auto found = find(key)) return *found;
  throw_error(ErrorKind::kBadFile, "{}: '{}' is missing", path_, key);
}

std::string_view JsonNode::as_string() const {
  std::string_view value;
  if (element_.get(value) != simdjson::SUCCESS) fail_expected("a string");
  return value;
}

bool JsonNode::as_bool() const {
  bool value = false;
  if (element_.get(value) != simdjson::SUCCESS) fail_expected("true or false");
  return value;
}

int64_t JsonNode::as_integer() const {
  int64_t value = 0;
  if (element_.get(value) != simdjson::SUCCESS) fail_expected("an integer");
  return value;
}

double JsonNode::as_number() const {
  double value = 0;
  if (element_.get(value) != simdjson::SUCCESS) fail_expected("a number");
  return value;
}

simdjson::dom::array JsonNode::as_array() const {
  simdjson::dom::array value;
  if (element_.get(value) != simdjson::SUCCESS) fail_expected("an array");
  return value;
}

simdjson::dom::object JsonNode::as_object() const {
  simdjson::dom::object value;
  if (element_.get(value) != simdjson::SUCCESS) fail_expected("an object");
  return value;
}

std::string_view JsonNode::string_or(std::string_view key, std::string_view otherwise) const {
  const auto found = find(key);
  return found ? found->as_string() : otherwise;
}

bool JsonNode::bool_or(std::string_view key, bool otherwise) const {
  const auto found = find(key);
  return found ? found->as_bool() : otherwise;
}

int64_t JsonNode::integer_or(std::string_view key, int64_t otherwise) const {
  const auto found = find(key);
  return found ? found->as_integer() : otherwise;
}

}  // namespace minisgl
