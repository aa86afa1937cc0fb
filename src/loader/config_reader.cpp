#include "loader/config_reader.h"

#include <cmath>

namespace minisgl {

const Json* ConfigReader::find(const char* key) const {
  const auto found = json_->find(key);
  return found == json_->end() || found->is_null() ? nullptr : &*found;
}

void ConfigReader::throw_bad(const char* key, std::string_view expected) const {
  constexpr size_t kMaxShown = 60;
  const Json* value = find(key);
  const std::string found = value == nullptr ? "missing" : value->dump(-1, ' ', true);
  throw_error(ErrorKind::kBadFile, "{}: {} is {}, expected {}", path_, key,
              found.size() > kMaxShown ? found.substr(0, kMaxShown) + "..." : found, expected);
}

std::optional<int64_t> ConfigReader::integer(const char* key, int64_t min, int64_t max) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::string expected = fmt::format("a whole number from {} to {}", min, max);
  if (!value->is_number()) throw_bad(key, expected);
  // As a double first: it holds every bound exactly, and numbers written like 4096.0 are meant.
  const auto number = value->get<double>();
  if (!(number >= static_cast<double>(min) && number <= static_cast<double>(max)) ||
      number != std::floor(number)) {
    throw_bad(key, expected);
  }
  return static_cast<int64_t>(number);
}

int64_t ConfigReader::need_integer(const char* key, int64_t min, int64_t max) const {
  const auto value = integer(key, min, max);
  if (!value) throw_bad(key, fmt::format("a whole number from {} to {}", min, max));
  return *value;
}

std::optional<double> ConfigReader::number(const char* key, double min, double max) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const double number = value->is_number() ? value->get<double>() : std::nan("");
  if (!(number >= min && number <= max)) {
    throw_bad(key, fmt::format("a number from {} to {}", min, max));
  }
  return number;
}

std::optional<bool> ConfigReader::boolean(const char* key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) throw_bad(key, "true or false");
  return value->get<bool>();
}

std::optional<std::string> ConfigReader::string(const char* key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) throw_bad(key, "a string");
  return value->get<std::string>();
}

std::optional<ConfigReader> ConfigReader::object(const char* key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) throw_bad(key, "an object");
  return ConfigReader(*value, path_ + ": " + key);
}

}  // namespace minisgl
